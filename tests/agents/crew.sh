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
    crewlog events -o jsonl 2>/dev/null | grep -c '"event_type":"'"$1"'"' || true
}

# Waits for an event of a type. The follower ends when it writes again, or after a minute.
await_event() {
    grep -m1 -q '"event_type":"'"$1"'"' < <(exec timeout 60 crewlog events --follow -o jsonl)
}

# Waits for the event of a type, and prints it: `nth_event TYPE N`. Unlike a follower, nothing has the log open afterwards.
nth_event() {
    local deadline=$((SECONDS + 60))
    until [ "$(count_events "$1")" -ge "$2" ]; do [ "$SECONDS" -lt "$deadline" ] || fail "event $2 of $1 does not come"; done
    crewlog events -o jsonl | grep '"event_type":"'"$1"'"' | sed -n "$2p"
}

# Starts opencode as a server with a session, as a person in its terminal has one. Its requests: `opencode PATH JSON`.
serve_opencode() {
    AGENT_PORT=4998 "$here/run" opencode opencode "" "$stage/opencode.jsonl" &
    served=$!
    # A request that comes earlier is never answered.
    grep -m1 -q listening < <(exec timeout 60 tail -n +1 -F "$stage/opencode.jsonl" 2>/dev/null) || fail "opencode does not start"
    opencode session '{"title": "A scene"}' >"$stage/session" || fail "opencode has no session"
    session=$(node -p 'JSON.parse(require("fs").readFileSync(0)).id' <"$stage/session")
}

opencode() {
    curl -sSf --max-time 60 -H 'content-type: application/json' -d "$2" "http://127.0.0.1:4998/$1"
}

# A prompt of its person.
prompt_opencode() {
    opencode "session/$session/prompt_async" '{"parts": [{"type": "text", "text": "'"$1"'"}]}'
}

# Waits until the model of an agent was asked so often: `asked_model ID COUNT`.
asked_model() {
    local request="^{\"agent\":\"$1\",.*\"is_side\":false"
    [ "$(timeout 60 tail -n +1 -f "$stage/requests.jsonl" 2>/dev/null | grep -m"$2" -c "$request")" = "$2" ] ||
        fail "the model of $1 is not asked $2 times"
}

# Ends it, and waits for all processes below it: they have the log open.
stop_opencode() {
    local below
    below=$(descendants "$served")
    kill "$served"
    wait "$served" || true
    for pid in $below; do timeout 60 tail --pid="$pid" -f /dev/null || fail "$pid does not end"; done
}

descendants() {
    for pid in $(cat "/proc/$1/task/"*/children 2>/dev/null); do
        echo "$pid"
        descendants "$pid"
    done
}
