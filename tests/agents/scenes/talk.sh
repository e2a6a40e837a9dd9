# A question that the person answers, and a message that the next hook of its recipient announces.
. "$here/crew.sh"
crewlog_init

play gemini "$(turns "$(turn "$(tool gemini ask_person '{"text": "Which port?", "wait_seconds": 40}')")" "$done_turn")" \
    claude-one "$(turns "$(turn "$(tool claude join '{}')")" \
    "$(AFTER='{"opencode": 2}' turn "$(write claude note.txt noted)")" "$(turn "$(tool claude read_inbox '{}')")" "$done_turn")" \
    opencode "$(turns "$(AFTER='{"claude-one": 2}' turn "$(tool opencode send_message '{"to": ["claude-one"], "subject": "the build is red", "body": "since noon"}')")" "$done_turn")"

agent gemini gemini &
asked=$!
await_event PersonAsked
crewlog inbox >"$stage/inbox"
grep -q 'Which port?' "$stage/inbox" || fail "the question is not in the inbox"
crewlog answer a1 "Port 8080, as ever" >/dev/null
wait "$asked"
told gemini "Port 8080, as ever" || fail "gemini was not told the answer"

agent claude claude-one &
reader=$!
agent opencode opencode
wait "$reader"
told claude-one "1 unread" || fail "no hook told claude-one of its message"
told claude-one "since noon" || fail "claude did not read the message"
judge
