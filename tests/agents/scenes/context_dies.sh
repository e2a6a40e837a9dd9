# Claude's context is nearly full: it writes down where to continue and dies. Gemini, of another vendor, goes on by the brief.
. "$here/crew.sh"
crewlog_init
crewlog task add "Write the parser" >/dev/null

play claude "$(turns "$(turn "$(tool claude next_task '{}')")" "$(turn "$(tool claude report '{"state": "working", "context_usage": 86}')")" \
    "$(turn "$(tool claude update_task '{"id": "backlog/1", "status": "progress", "step": "lexer", "next_step": "now the grammar", "note": "tokens have positions"}')")" \
    '{"delay_ms": 60000, "text": "Never."}')" \
    gemini "$(turns "$(turn "$(tool gemini next_task '{}')")" "$(turn "$(tool gemini get_brief '{"of": "backlog/1"}')")" \
    "$(turn "$(tool gemini update_task '{"id": "backlog/1", "status": "done", "note": "parsed"}')")" "$done_turn")"

setsid "$here/run" claude claude "Work." "$stage/claude.jsonl" &
killed=$!
await_event TaskProgressed
told claude "your context is nearly full" || fail "claude was not asked to write down where to continue"
kill -KILL -- "-$killed"
wait "$killed" || true
crewlog brief claude >"$stage/brief"
grep -q 'next step: "now the grammar"' "$stage/brief" || fail "the brief has no next step"
agent gemini gemini
told gemini "tokens have positions" || fail "gemini did not read the brief"
[ "$(count_events TaskCompleted)" = 1 ] || fail "the task was completed $(count_events TaskCompleted) times"
judge
