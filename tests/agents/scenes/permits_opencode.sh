# opencode asks for permissions, which a person gives and refuses from crewlog's inbox, or gives in opencode.
. "$here/crew.sh"
crewlog_init
bash() {
    echo '{"name": "bash", "args": {"command": "'"$1"'", "description": "d"}}'
}
play opencode "$(turns "$(turn "$(bash 'touch made')")" "$(turn "$(bash 'touch never')")" "$(turn "$(bash 'touch there')")" "$done_turn")"

export AGENT_ASKS=1
serve_opencode
prompt_opencode "Work."
nth_event PersonAsked 1 | grep -F 'bash: touch made' >/dev/null || fail "the first permission is not asked for"
crewlog answer a1 allow >/dev/null
nth_event PersonAsked 2 | grep -F 'bash: touch never' >/dev/null || fail "the second permission is not asked for"
crewlog answer a2 deny "not in this repository" >/dev/null
nth_event PersonAsked 3 | grep -F 'bash: touch there' >/dev/null || fail "the third permission is not asked for"
request=$(curl -sSf http://127.0.0.1:4998/permission | node -p 'JSON.parse(require("fs").readFileSync(0))[0].id')
opencode "permission/$request/reply" '{"reply": "once"}' >/dev/null
nth_event AskWithdrawn 1 >/dev/null
asked_model opencode 4
[ -e made ] || fail "the permitted command did not run"
[ ! -e never ] || fail "the refused command ran"
[ -e there ] || fail "the command that was permitted in opencode did not run"
told opencode "not in this repository" || fail "the model was not told why"
stop_opencode
judge
