// Made by `crewlog init`, which overwrites it: changes are lost.
import { spawnSync } from "node:child_process"

export const Crewlog = async ({ directory }) => {
  const contexts = new Map() // what crewlog said at the start of each session

  const hook = (told) => {
    const input = JSON.stringify({ ...told, cwd: directory })
    const ran = spawnSync("crewlog", ["hook"], { input, cwd: directory, encoding: "utf8", timeout: 5000 })
    if (ran.status !== 0 || !ran.stdout.trim()) return {}
    try {
      return JSON.parse(ran.stdout).hookSpecificOutput ?? {}
    } catch {
      return {} // as the other agent programs: an answer that cannot be read allows
    }
  }
  const tool = (event, input, args) =>
    hook({ hook_event_name: event, tool_name: input.tool, tool_input: args, session_id: input.sessionID })

  return {
    "tool.execute.before": async (input, output) => {
      const said = tool("PreToolUse", input, output.args)
      if (said.permissionDecision === "deny") throw new Error(said.permissionDecisionReason)
    },
    "tool.execute.after": async (input, output) => {
      const said = tool("PostToolUse", input, input.args)
      if (said.additionalContext) output.output += `\n${said.additionalContext}`
    },
    "experimental.chat.system.transform": async (input, output) => {
      const session = input.sessionID
      if (!session) return
      if (!contexts.has(session)) {
        const said = hook({ hook_event_name: "SessionStart", session_id: session, source: "startup" })
        contexts.set(session, said.additionalContext)
      }
      const context = contexts.get(session)
      if (context) output.system.push(context)
    },
  }
}
