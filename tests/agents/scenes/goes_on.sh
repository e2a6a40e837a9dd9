# Four agents work on a plan when their worker is killed. After `resume` each goes on in its own session, and is told so.
. "$here/crew.sh"
echo "sixteen herons" >a.txt
scripts=()
for program in "${programs[@]}"; do
    scripts+=("$program" "$(turns "$(turn "$(look $program)")" '{"delay_ms": 60000, "text": "Never."}' "$done_turn")")
done
play "${scripts[@]}"
for program in "${programs[@]}"; do
    "$here/run" config "$program" "$program"
    echo "- [ ] [P] Look at a.txt with $program @$program" >>plan.md
done >crewlog.toml

crewlog --yes run plan.md --detach >"$stage/run" 2>&1 || fail "run: $(cat "$stage/run")"
plan=$(crewlog ls -o json | node -p 'JSON.parse(require("fs").readFileSync(0)).plans[0].plan')
crewlog --yes resume "$plan" -j 4 >"$stage/killed" 2>&1 &
killed=$!
# Each has a session, and waits for its model, which has the first result.
grep -m4 '"TaskProgressed".*"session":' < <(exec timeout 60 crewlog events --follow -o jsonl) >"$stage/sessions" || fail "no four sessions"
for program in "${programs[@]}"; do
    grep -m1 "^{\"agent\":\"$program\",.*\"turn\":2" < <(exec timeout 60 tail -n +1 -f "$stage/requests.jsonl") >/dev/null ||
        fail "$program did not go on"
done
kill -KILL "$killed"
wait "$killed" || true

crewlog --yes resume "$plan" -j 4 >"$stage/resume" 2>&1 || fail "resume: $(cat "$stage/resume")"
for program in "${programs[@]}"; do
    last=$(grep -F "{\"agent\":\"$program\"," "$stage/requests.jsonl" | grep -F '"is_side":false' | tail -n 1)
    grep -F herons <<<"$last" >/dev/null || fail "$program began a new session"
    grep -F "cut short" <<<"$last" >/dev/null || fail "$program was not told that its run was cut short"
done
judge
