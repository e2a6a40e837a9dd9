# An idle session of Claude Code is woken by a message of a person, and by a step of a plan that the person gave to sessions.
. "$here/crew.sh"
crewlog_init
play claude "$(turns "$(turn "$(tool claude join '{}')")" "$done_turn" \
    "$(turn "$(tool claude read_inbox '{"mark_read": true}')")" "$done_turn" \
    "$(turn "$(tool claude next_task '{}')")" \
    "$(turn "$(tool claude update_task '{"id": "{{id}}", "status": "done", "note": "looked"}')")" "$done_turn" "$done_turn")"

# It waits for input, like a session whose person is away.
mkfifo "$stage/input"
AGENT_INPUT=$stage/input "$here/run" claude claude "" "$stage/claude.jsonl" --input-format stream-json &
session=$!
exec 4>"$stage/input"
echo '{"type":"user","message":{"role":"user","content":"Join."}}' >&4
ends() {
    [ "$(timeout 60 tail -n +1 -f "$stage/claude.jsonl" 2>/dev/null | grep -m"$1" -c "\"type\":\"result\"")" = "$1" ] || fail "turn $1 does not end"
}
ends 1
crewlog send claude --subject "Freeze" --body "Stop editing." >/dev/null
ends 2
told claude "1 unread message" || fail "it was not woken by the message"
told claude "Stop editing." || fail "it did not read the message"
echo '- [ ] Look at a.txt' >plan.md
plan=$(crewlog --yes run plan.md --detach --quiet)
crewlog plan set "$plan" sessions=true >/dev/null
ends 3
told claude "1 ready step" || fail "it was not woken by the step"
[ "$(count_events TaskCompleted)" = 1 ] || fail "the step is not done"
exec 4>&-
wait "$session" || true
judge
