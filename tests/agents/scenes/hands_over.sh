# Claude hands a task with its leases over to Codex; opencode asks Gemini for a file, which hands it over.
. "$here/crew.sh"
crewlog_init
crewlog task add "Write the parser (files: note.txt)" >/dev/null

play claude "$(turns "$(turn "$(tool claude next_task '{}')")" \
    "$(AFTER='{"codex": 1}' turn "$(tool claude handoff '{"action": "offer", "to": "codex", "task": "backlog/1", "next_step": "now the grammar"}')")" "$done_turn" "$done_turn" "$done_turn")" \
    codex "$(turns "$(turn "$(tool codex join '{}')")" "$(AFTER='{"claude": 3}' turn "$(tool codex get_status '{}')")" \
    "$(turn "$(tool codex handoff '{"action": "accept", "number": 1}')")" "$(turn "$(write codex note.txt parsed)")" \
    "$(turn "$(tool codex update_task '{"id": "backlog/1", "status": "done", "note": "parsed"}')")" "$done_turn")" \
    gemini "$(turns "$(turn "$(tool gemini reserve_paths '{"paths": ["b.txt"], "reason": "tests"}')")" \
    "$(AFTER='{"opencode": 2}' turn "$(tool gemini get_status '{}')")" \
    "$(turn "$(tool gemini answer_release '{"request": 1, "answer": "hand_over"}')")" "$done_turn")" \
    opencode "$(turns "$(AFTER='{"gemini": 2}' turn "$(tool opencode request_release '{"paths": ["b.txt"], "reason": "the grammar"}')")" \
    "$(turn "$(tool opencode wait_for_events '{"kinds": ["lease"], "timeout_seconds": 45}')")" "$(turn "$(write opencode b.txt mine)")" "$done_turn")"

running=()
for program in claude codex gemini opencode; do
    agent $program $program &
    running+=($!)
done
for one in "${running[@]}"; do wait "$one"; done
told codex "claude offers you backlog/1" || fail "codex did not hear of the offer"
told codex "now the grammar" || fail "codex was not told where to go on"
told gemini "opencode asks you to release b.txt" || fail "gemini did not hear of the request"
told opencode "your waiting request was granted: b.txt" || fail "opencode did not hear of its grant"
[ "$(cat note.txt)" = parsed ] || fail "codex did not edit under the leases that it got"
[ "$(cat b.txt)" = mine ] || fail "opencode did not edit the file that it got"
[ "$(count_events LeasesTransferred)" = 1 ] && [ "$(count_events TaskCompleted)" = 1 ] || fail "the task did not go over"
judge
