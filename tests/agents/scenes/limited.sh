# The model refuses Claude's requests for a while. Its task waits until the time that the message names, and is then done.
. "$here/crew.sh"
limit='{"fault": "rate_limited", "message": "You have reached your usage limit. Try again in 5 seconds.", "times": 2}'
play claude "$(turns "$limit" "$done_turn")"
"$here/run" config claude claude >crewlog.toml
echo '- [ ] Look at a.txt @claude' >plan.md

code=0
crewlog --yes run plan.md >"$stage/run" 2>&1 || code=$?
[ "$code" = 5 ] || fail "the run ended with code $code: $(cat "$stage/run")"
grep -F "waits until" "$stage/run" >/dev/null || fail "it does not say until when: $(cat "$stage/run")"
[ "$(count_events BreakerOpened)" = 1 ] || fail "the limit was met $(count_events BreakerOpened) times"
crewlog work >"$stage/work" 2>&1 &
worker=$!
await_event PlanningCompleted || fail "the task did not go on: $(cat "$stage/work")"
kill -TERM "$worker"
wait "$worker" || true
[ "$(count_events TaskFailed)" = 1 ] || fail "it failed $(count_events TaskFailed) times"
[ "$(count_events BreakerClosed)" = 1 ] || fail "the limit did not end"
judge
