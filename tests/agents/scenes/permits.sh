# Claude Code asks for two permissions, which a person gives and refuses from crewlog's inbox.
. "$here/crew.sh"
crewlog_init
bash() {
    echo '{"name": "Bash", "args": {"command": "'"$1"'", "description": "d"}}'
}
play claude "$(turns "$(turn "$(bash 'touch made')")" "$(turn "$(bash 'touch never')")" "$done_turn")"

# The next open question, once there is one.
asked() {
    grep -m"$1" '"event_type":"PersonAsked"' < <(exec timeout 60 crewlog events --follow -o jsonl) | tail -n 1
}
AGENT_ASKS=1 agent claude claude &
running=$!
asked 1 | grep -F 'Bash: touch made' >/dev/null || fail "the first permission is not asked for"
crewlog answer a1 allow >/dev/null
asked 2 | grep -F 'Bash: touch never' >/dev/null || fail "the second permission is not asked for"
crewlog answer a2 deny "not in this repository" >/dev/null
wait "$running"
[ -e made ] || fail "the permitted command did not run"
[ ! -e never ] || fail "the refused command ran"
told claude "not in this repository" || fail "the model was not told why"
judge
