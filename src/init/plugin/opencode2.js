// Made by `crewlog init`, which overwrites it: changes are lost. For opencode 2; version 1 has another file.
import { spawn } from "node:child_process"

const HOOK_MS = 5_000
// The names and members of version 1, which `crewlog hook` knows.
const NAMES = { shell: "bash", patch: "apply_patch" }
const ENDS = ["session.idle", "session.execution.succeeded", "session.execution.failed", "session.execution.interrupted"]

export default {
  id: "crewlog",
  async setup(ctx) {
    const { directory } = ctx.location
    const contexts = new Map() // what crewlog said at the start of each session

    const hook = (event, session, told) =>
      new Promise((resolve) => {
        const program = spawn("crewlog", ["hook"], { cwd: directory, stdio: ["pipe", "pipe", "ignore"], timeout: HOOK_MS })
        let output = ""
        program.stdout.setEncoding("utf8").on("data", (data) => (output += data))
        program.stdin.on("error", () => {})
        program.on("error", () => resolve({}))
        program.on("close", (code) => {
          try {
            resolve(code === 0 && output.trim() ? JSON.parse(output) : {})
          } catch {
            resolve({}) // as the other agent programs: an answer that cannot be read allows
          }
        })
        program.stdin.end(JSON.stringify({ hook_event_name: event, session_id: session, cwd: directory, ...told }))
      })
    const tool = async (event, { tool, sessionID, input }) => {
      const tool_input = input?.path && !input.filePath ? { ...input, filePath: input.path } : input
      return (await hook(event, sessionID, { tool_name: NAMES[tool] ?? tool, tool_input })).hookSpecificOutput ?? {}
    }

    await ctx.tool.hook("execute.before", async (event) => {
      const said = await tool("PreToolUse", event)
      if (said.permissionDecision === "deny") throw new Error(said.permissionDecisionReason)
    })
    await ctx.tool.hook("execute.after", async (event) => {
      await tool("PostToolUse", event)
    })
    await ctx.session.hook("context", async (event) => {
      const session = event.sessionID
      if (!contexts.has(session)) {
        const said = (await hook("SessionStart", session, { source: "startup" })).hookSpecificOutput ?? {}
        contexts.set(session, said.additionalContext)
      }
      if (contexts.get(session)) event.system.push({ type: "text", text: contexts.get(session) })
    })

    const stopped = new AbortController()
    const follow = async () => {
      for await (const event of ctx.event.subscribe({ signal: stopped.signal })) {
        const session = event.properties?.sessionID ?? event.data?.sessionID
        // The turn has ended, which a refusal would not change.
        if (session && ENDS.includes(event.type)) await hook("Stop", session, { stop_hook_active: true })
      }
    }
    follow().catch(() => {})
    return async () => {
      stopped.abort()
      for (const session of contexts.keys()) await hook("SessionEnd", session)
    }
  },
}
