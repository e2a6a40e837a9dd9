# A session of opencode with a lease continues once after each prompt, but not after its person has ended the turn. An idle
# session is woken by a message of a person.
. "$here/crew.sh"
crewlog_init
slow='{"delay_ms": 60000, "text": "Never."}'
play opencode "$(turns "$(turn "$(tool opencode reserve_paths '{"paths": ["a.txt"], "reason": "the parser"}')")" \
    "$done_turn" "$done_turn" "$done_turn" "$done_turn" "$slow" \
    "$(turn "$(tool opencode release_paths '{}')")" "$(turn "$(write opencode c.txt cee)")" "$done_turn" \
    "$(turn "$(tool opencode read_inbox '{"mark_read": true}')")" "$done_turn" "$done_turn")"

serve_opencode
prompt_opencode "Reserve."
asked_model opencode 3
prompt_opencode "Again."
asked_model opencode 5
prompt_opencode "Slow."
asked_model opencode 6
opencode "session/$session/abort" '{}' >/dev/null
prompt_opencode "Last."
# The end of the turn releases the file that it has written.
nth_event LeasesReleased 2 >/dev/null
tail -n 1 "$stage/requests.jsonl" >"$stage/last"
[ "$(grep -o 'you still hold' "$stage/last" | wc -l)" = 2 ] || fail "it did not continue once after each of two prompts"

crewlog send opencode --subject "Freeze" --body "Stop editing." >/dev/null
grep -m1 -q "for you: 1 unread message;" < <(exec timeout 60 tail -n +1 -f "$stage/requests.jsonl") || fail "it was not woken"
grep -m1 -q "Stop editing." < <(exec timeout 60 tail -n +1 -f "$stage/requests.jsonl") || fail "it did not read the message"
stop_opencode
judge
