# The four programs join, each while the one before it is at work, and each sees that one. The first end of a turn is refused,
# since leases are left; opencode cannot be kept from it.
. "$here/crew.sh"
crewlog_init

# The end of a turn, once the next agent has seen this one.
stay() {
    if [ -n "$1" ]; then echo '{"after": {"'"$1"'-one": 4}, "text": "Done."}'; else echo "$done_turn"; fi
}

scripts=() before=
for program in "${programs[@]}"; do
    case $program in
        claude) next=codex ;;
        codex) next=gemini ;;
        gemini) next=opencode ;;
        opencode) next= ;;
    esac
    scripts+=("$program-one" "$(turns "$(AFTER=${before:+"{\"$before-one\": 3}"} turn "$(tool $program join '{"capabilities": ["review"]}')")" \
        "$(turn "$(tool $program reserve_paths '{"paths": ["'$program'/**"], "reason": "mine"}')")" \
        "$(turn "$(tool $program get_status '{"view": "agents"}')")" \
        "$(stay "$next")" "$done_turn")")
    before=$program
done
play "${scripts[@]}"

running=()
for program in "${programs[@]}"; do
    agent "$program" "$program-one" &
    running+=($!)
done
for job in "${running[@]}"; do wait "$job"; done
told codex-one claude-one || fail "codex did not see claude"
told gemini-one codex-one || fail "gemini did not see codex"
told opencode-one gemini-one || fail "opencode did not see gemini"
[ "$(count_events AgentJoined)" -ge 4 ] || fail "$(count_events AgentJoined) agents joined"
judge
