# A hook's denial stops an edit of each program: the file is unchanged, the model got the reason, and the agent goes elsewhere.

model <<'END'
{"agents": {
  "claude": [
    {"calls": [{"name": "Read", "args": {"file_path": "@repository@/a.txt"}}]},
    {"calls": [{"name": "Edit", "args": {"file_path": "@repository@/a.txt", "old_string": "base", "new_string": "lost"}}]},
    {"calls": [{"name": "Write", "args": {"file_path": "@repository@/claude.txt", "content": "elsewhere"}}]},
    {"text": "Done."}],
  "codex": [
    {"calls": [{"name": "apply_patch", "input": "*** Begin Patch\n*** Update File: a.txt\n@@\n-base\n+lost\n*** End Patch\n"}]},
    {"calls": [{"name": "exec_command", "args": {"cmd": "apply_patch <<'E'\n*** Begin Patch\n*** Update File: a.txt\n@@\n-base\n+lost\n*** End Patch\nE"}}]},
    {"calls": [{"name": "apply_patch", "input": "*** Begin Patch\n*** Add File: codex.txt\n+elsewhere\n*** End Patch\n"}]},
    {"text": "Done."}],
  "gemini": [
    {"calls": [{"name": "replace", "args": {"file_path": "a.txt", "instruction": "i", "old_string": "base", "new_string": "lost"}}]},
    {"calls": [{"name": "write_file", "args": {"file_path": "gemini.txt", "content": "elsewhere"}}]},
    {"text": "Done."}],
  "opencode": [
    {"calls": [{"name": "read", "args": {"filePath": "@repository@/a.txt"}}]},
    {"calls": [{"name": "edit", "args": {"filePath": "@repository@/a.txt", "oldString": "base", "newString": "lost"}}]},
    {"calls": [{"name": "write", "args": {"filePath": "@repository@/opencode.txt", "content": "elsewhere"}}]},
    {"text": "Done."}]
}}
END

mkdir -p .claude .codex .gemini .opencode/plugin
group='{"hooks":[{"type":"command","command":"sh '$here/scenes/deny'"}]}'
echo '{"hooks":{"PreToolUse":['"$group"']}}' | tee .claude/settings.json >.codex/hooks.json
echo '{"hooks":{"BeforeTool":['"$group"']}}' >.gemini/settings.json
sed "s#@deny@#$here/scenes/deny#" >.opencode/plugin/deny.js <<'END'
import { spawnSync } from "node:child_process"
export const Deny = async ({ directory }) => ({
  "tool.execute.before": async (input, output) => {
    const told = JSON.stringify({ hook_event_name: "PreToolUse", tool_name: input.tool, tool_input: output.args })
    const said = spawnSync("sh", ["@deny@"], { input: told, cwd: directory, encoding: "utf8" }).stdout
    if (said) throw new Error(JSON.parse(said).hookSpecificOutput.permissionDecisionReason)
  },
})
END

for program in claude codex gemini opencode; do
    trust=()
    if [ $program = codex ]; then trust=(--dangerously-bypass-hook-trust); fi
    agent $program $program "${trust[@]+"${trust[@]}"}"
    [ "$(cat a.txt)" = base ] || fail "$program changed a.txt in spite of its hook"
    told $program "a.txt is reserved by another agent" || fail "the model of $program was not told the reason"
    [ "$(cat $program.txt)" = elsewhere ] || fail "$program did not go elsewhere"
done
