# What scenes of a crew share; sourced by them. The repository is prepared by `crewlog init`, as a person would.

programs=(claude codex gemini opencode)

# As a person: without the identity of an agent.
crewlog_init() {
    local hosts=()
    for program in "${programs[@]}"; do hosts+=(--host "$program"); done
    crewlog init --yes "${hosts[@]}" >"$stage/init" || fail "crewlog init: $(cat "$stage/init")"
    git add -A && git commit -qm 'The crew' --no-verify
}

# A call of a tool of crewlog's server, as the model of a program makes it: `tool PROGRAM TOOL ARGUMENTS`.
tool() {
    case $1 in
        claude) echo '{"name": "mcp__crewlog__'"$2"'", "args": '"$3"'}' ;;
        codex) echo '{"namespace": "mcp__crewlog", "name": "'"$2"'", "args": '"$3"'}' ;;
        gemini) echo '{"name": "mcp_crewlog_'"$2"'", "args": '"$3"'}' ;;
        opencode) echo '{"name": "crewlog_'"$2"'", "args": '"$3"'}' ;;
    esac
}

# A turn of calls, and one of text: `turn CALL...`, with the member AFTER before its calls where that is set.
turn() {
    local IFS=,
    echo '{'"${AFTER:+\"after\": $AFTER, }"'"calls": ['"$*"']}'
}

# Writes a file: `write PROGRAM FILE TEXT`. Claude must have read a file that is there.
write() {
    case $1 in
        claude) echo '{"name": "Write", "args": {"file_path": "'"$repository/$2"'", "content": "'"$3"'\n"}}' ;;
        codex) echo '{"name": "apply_patch", "input": "*** Begin Patch\n*** Add File: '"$2"'\n+'"$3"'\n*** End Patch\n"}' ;;
        gemini) echo '{"name": "write_file", "args": {"file_path": "'"$2"'", "content": "'"$3"'\n"}}' ;;
        opencode) echo '{"name": "write", "args": {"filePath": "'"$repository/$2"'", "content": "'"$3"'\n"}}' ;;
    esac
}

# Changes a text in a.txt: `change PROGRAM OLD NEW`; what must be read first is read in a turn of its own.
change() {
    case $1 in
        claude) echo '{"name": "Edit", "args": {"file_path": "'"$repository"'/a.txt", "old_string": "'"$2"'", "new_string": "'"$3"'"}}' ;;
        codex) echo '{"name": "apply_patch", "input": "*** Begin Patch\n*** Update File: a.txt\n@@\n-'"$2"'\n+'"$3"'\n*** End Patch\n"}' ;;
        gemini) echo '{"name": "replace", "args": {"file_path": "a.txt", "instruction": "i", "old_string": "'"$2"'", "new_string": "'"$3"'"}}' ;;
        opencode) echo '{"name": "edit", "args": {"filePath": "'"$repository"'/a.txt", "oldString": "'"$2"'", "newString": "'"$3"'"}}' ;;
    esac
}

look() {
    case $1 in
        claude) echo '{"name": "Read", "args": {"file_path": "'"$repository"'/a.txt"}}' ;;
        codex) echo '{"name": "exec_command", "args": {"cmd": "cat a.txt"}}' ;;
        gemini) echo '{"name": "read_file", "args": {"file_path": "a.txt"}}' ;;
        opencode) echo '{"name": "read", "args": {"filePath": "'"$repository"'/a.txt"}}' ;;
    esac
}

done_turn='{"text": "Done."}'

# Starts the model with the turns of several agents: `play AGENT 'TURN,TURN' AGENT 'TURN,TURN' ...`.
play() {
    # No pipe: the model belongs to this shell.
    model < <(script "$@")
}

script() {
    local sep='' text='{"agents": {'
    while [ $# -gt 0 ]; do
        text+="$sep\"$1\": [$2]" sep=', '
        shift 2
    done
    echo "$text}}"
}

# Joins turns.
turns() {
    local IFS=,
    echo "$*"
}

# Judges the log: no live exclusive lease within another's, no edit under another's lease, no task held twice.
judge() {
    crewlog events -o jsonl >"$stage/events.jsonl"
    node "$here/judge.mjs" "$stage/events.jsonl" || fail "the judge found a fault"
    crewlog db check >"$stage/check" || fail "the log is not sound: $(cat "$stage/check")"
}

# How many events of a type the log has.
count_events() {
    crewlog events -o jsonl | grep -c '"event_type":"'"$1"'"' || true
}

# Waits for an event of a type. The follower ends when it writes again, or after a minute.
await_event() {
    grep -m1 -q '"event_type":"'"$1"'"' < <(exec timeout 60 crewlog events --follow -o jsonl)
}
