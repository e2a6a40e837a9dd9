# The steps of a plan go to two open sessions: each hears of its own at its start, and of the next one at the end of its turn.
. "$here/crew.sh"
crewlog_init
printf -- '- [ ] [P] Write the lexer @claude\n- [ ] [P] Write the parser @codex\n- [ ] [P] Write the tests @claude\n- [ ] [P] Write the page @codex\n' >p.md
plan=$(crewlog run p.md --yes --detach --quiet)

does() {
    echo "$(turn "$(tool "$1" next_task '{}')"),$(turn "$(tool "$1" update_task '{"id": "'"$plan/$2"'", "status": "done", "note": "done"}')"),$done_turn"
}
play claude "$(turns "$(does claude 1)" "$(does claude 3)")" codex "$(turns "$(does codex 2)" "$(does codex 4)")"
agent claude claude &
claude=$!
agent codex codex
wait "$claude"
told claude "ready for you: $plan/1" || fail "claude did not hear of its first step"
told codex "ready for you: $plan/2" || fail "codex did not hear of its first step"
told claude "ready for you: $plan/3" || fail "the end of a turn did not offer claude the next step"
told codex "ready for you: $plan/4" || fail "the end of a turn did not offer codex the next step"
[ "$(count_events TaskCompleted)" = 4 ] || fail "the plan is not done: $(crewlog show "$plan")"
judge
