# The four programs join one after another, and each sees those that joined before it.
. "$here/crew.sh"
crewlog_init

scripts=()
for program in "${programs[@]}"; do
    scripts+=("$program-one" "$(turns "$(turn "$(tool $program join '{"capabilities": ["review"]}')")" \
        "$(turn "$(tool $program reserve_paths '{"paths": ["'$program'/**"], "reason": "mine"}')")" \
        "$(turn "$(tool $program get_status '{}')")" "$done_turn")")
done
play "${scripts[@]}"

for program in "${programs[@]}"; do agent "$program" "$program-one"; done
told codex-one claude-one || fail "codex did not see claude"
told gemini-one codex-one || fail "gemini did not see codex"
told opencode-one gemini-one || fail "opencode did not see gemini"
[ "$(count_events AgentJoined)" -ge 4 ] || fail "$(count_events AgentJoined) agents joined"
judge
