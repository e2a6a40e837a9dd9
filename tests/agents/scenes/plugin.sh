# The four programs install the plugin in place of hooks in the files of the repository: their hooks and servers run, and are gone
# after `init --remove`. Its form for Claude Code is valid.
. "$here/crew.sh"
PATH="$AGENT_PROGRAMS/node_modules/.bin:$PATH"
crewlog_init
[ -e .codex/hooks.json ] || fail "the hooks are not in files"
crewlog init --yes --plugin >"$stage/plugin" 2>&1 || fail "crewlog init --plugin: $(cat "$stage/plugin")"
for file in .mcp.json .claude/settings.json .codex/hooks.json .codex/config.toml .gemini/settings.json opencode.json .opencode; do
    [ ! -e "$file" ] || fail "$file still connects a program: $(cat "$stage/plugin")"
done
folder=$home/.local/share/crewlog/plugin
for valid in "$folder" "$folder/crewlog"; do
    claude plugin validate "$valid" >"$stage/validated" 2>&1 </dev/null || fail "$(cat "$stage/validated")"
done
gemini extensions validate "$folder/gemini" >"$stage/validated" 2>&1 </dev/null || fail "$(cat "$stage/validated")"
crewlog doctor >"$stage/doctor" || fail "doctor with the plugin: $(cat "$stage/doctor")"

# Claude Code names the plugin in the names of its tools.
sends() {
    tool "$1" send_message '{"to": ["everyone"], "subject": "I am here", "body": "Hello"}' | sed 's/mcp__crewlog__/mcp__plugin_crewlog_crewlog__/'
}
scripts=()
for program in "${programs[@]}"; do
    scripts+=("$program-one" "$(turns "$(turn "$(sends "$program")")" "$(turn "$(write "$program" "$program.txt" new)")" "$done_turn" "$done_turn")")
done
play "${scripts[@]}"
granted=0
for program in "${programs[@]}"; do
    agent "$program" "$program-one"
    [ "$(cat "$program.txt")" = new ] || fail "$program did not write"
    # A hook of the plugin leases what it edits.
    granted=$((granted + 1))
    [ "$(count_events LeasesGranted)" = "$granted" ] || fail "no lease for the edit of $program"
    # Its server answers; nobody else is here.
    told "$program-one" 'there is no agent or role' || fail "$program has no server"
done
judge
crewlog init --remove --yes >"$stage/removed" 2>&1 || fail "crewlog init --remove: $(cat "$stage/removed")"
if claude plugin list </dev/null 2>/dev/null | grep crewlog; then fail "claude still has the plugin"; fi
for left in "$home/.gemini/extensions/crewlog" "$home/.config/opencode/plugin/crewlog.js"; do
    [ ! -e "$left" ] || fail "$left is left: $(cat "$stage/removed")"
done
if grep crewlog "$home/.codex/config.toml"; then fail "codex still has the plugin"; fi
if crewlog doctor >"$stage/doctor"; then fail "doctor finds nothing wrong after init --remove"; fi
