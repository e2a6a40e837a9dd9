# An agent is killed at its task: another takes it over at the step that the first one named.
. "$here/crew.sh"
crewlog_init
crewlog task add "Write the parser" >/dev/null

play claude "$(turns "$(turn "$(tool claude next_task '{}')")" \
    "$(turn "$(tool claude update_task '{"id": "backlog/1", "status": "progress", "step": "lexer", "next_step": "now the grammar"}')")" \
    '{"delay_ms": 60000, "text": "Never."}')" \
    codex "$(turns "$(turn "$(tool codex next_task '{}')")" \
    "$(turn "$(tool codex update_task '{"id": "backlog/1", "status": "done", "note": "parsed"}')")" "$done_turn")"

# In a session of its own, so that all of it is killed at once: the program and the server that it has started.
setsid "$here/run" claude claude "Work." "$stage/claude.jsonl" &
killed=$!
await_event TaskProgressed
kill -KILL -- "-$killed"
wait "$killed" || true
agent codex codex
told codex "now the grammar" || fail "codex was not told where to go on"
[ "$(count_events TaskCompleted)" = 1 ] || fail "the task was completed $(count_events TaskCompleted) times"
judge
