// Made by `crewlog init`, which overwrites it: changes are lost.
import { spawn } from "node:child_process"
import { lstatSync, mkdirSync, realpathSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { isAbsolute, join } from "node:path"

const HOOK_MS = 5_000
const PERMISSION_MS = 600_000
const ANSWERED_AT_ONCE_MS = 250 // by a rule of a program: nobody needs to be asked
const LINE_CHARS_MAX = 65_536
// `opencode run` ends with its turn: nothing can follow it.
const endsWithTurn = process.argv.slice(2).includes("run")

// opencode may load this file more than once in a process; only the last instance gets events.
const shared = (globalThis[Symbol.for("crewlog")] ??= { rooms: new Map() })

// `crewlog mcp`, a child of this process, derives the same path.
const listen = () => {
  const base = [process.env.XDG_RUNTIME_DIR, process.env.TMPDIR].find((folder) => folder && isAbsolute(folder)) ?? "/tmp"
  const folder = join(base, `crewlog-${process.getuid()}`)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const found = lstatSync(folder)
  // In a folder of another user, that user could replace the socket.
  if (!found.isDirectory() || found.uid !== process.getuid() || found.mode & 0o077) return undefined
  const path = join(folder, `opencode-${process.pid}.sock`)
  rmSync(path, { force: true })
  const server = createServer((stream) => {
    let line = ""
    stream.setEncoding("utf8")
    stream.on("data", (data) => (line += data).length > LINE_CHARS_MAX && stream.destroy())
    stream.on("end", () => wake(line))
    stream.on("error", () => {})
  })
  server.on("error", () => {})
  server.listen(path).unref()
  const close = () => rmSync(path, { force: true })
  process.once("exit", close)
  return () => {
    server.close()
    close()
    process.off("exit", close)
  }
}

const wake = (line) => {
  try {
    const { directory, text } = JSON.parse(line)
    shared.rooms.get(directory)?.wake(text)
  } catch {} // a line that is cut wakes nobody
}

export const Crewlog = async ({ client, directory }) => {
  const folder = realpathSync(directory)
  const contexts = new Map() // what crewlog said at the start of each session
  const parents = new Map() // of each session, or null
  const prompts = new Set() // those of this plugin, until opencode shows them
  const continued = new Set() // sessions whose turn was continued, until the next prompt
  const failed = new Set() // sessions whose turn a person or a fault has ended, until the next prompt
  const asked = new Map() // open permissions
  let last // the session that was used last

  const start = (told, ms) => {
    const program = spawn("crewlog", ["hook"], { cwd: directory, stdio: ["pipe", "pipe", "ignore"], timeout: ms })
    const answer = new Promise((resolve) => {
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
    })
    program.stdin.end(JSON.stringify({ ...told, cwd: directory }))
    return { program, answer }
  }
  const hook = (event, session, told) =>
    start({ hook_event_name: event, session_id: session, ...told }, HOOK_MS).answer
  const tool = async (event, input, args) =>
    (await hook(event, input.sessionID, { tool_name: input.tool, tool_input: args })).hookSpecificOutput ?? {}

  // A child session belongs to a call of its parent, which continues with its answer.
  const isChild = async (session) => {
    if (!parents.has(session)) {
      const { data } = await client.session.get({ path: { id: session } })
      if (!data) return true
      parents.set(session, data.parentID ?? null)
    }
    return parents.get(session) !== null
  }
  const prompt = async (session, text) => {
    prompts.add(session + text)
    await client.session.promptAsync({ path: { id: session }, body: { parts: [{ type: "text", text }] } })
  }

  const stop = async (session) => {
    // A turn that its person has ended does not continue; opencode reports its end twice.
    if (endsWithTurn || failed.has(session) || (await isChild(session))) return
    // With this sign crewlog does not refuse again.
    const { decision, reason } = await hook("Stop", session, { stop_hook_active: continued.has(session) })
    if (decision !== "block") return
    continued.add(session)
    await prompt(session, reason)
  }

  // The dialog stays usable meanwhile.
  const ask = (request) => {
    const { command, filepath } = request.metadata ?? {}
    const shown = { bash: command && { command }, edit: filepath && { filePath: filepath } }[request.permission]
    const tool_input = shown ?? { patterns: request.patterns, metadata: request.metadata }
    const told = { session_id: request.sessionID, tool_name: request.permission, tool_input }
    const open = { told }
    asked.set(request.id, open)
    open.timer = setTimeout(async () => {
      open.hook = start({ hook_event_name: "PermissionRequest", ...told }, PERMISSION_MS)
      const decision = (await open.hook.answer).hookSpecificOutput?.decision
      if (decision && asked.delete(request.id)) await reply(request, decision)
    }, ANSWERED_AT_ONCE_MS)
  }
  // The typed call of this client takes no words.
  const reply = (request, { behavior, message }) =>
    client._client.post({
      url: "/permission/{requestID}/reply",
      path: { requestID: request.id },
      body: behavior === "allow" ? { reply: "once" } : { reply: "reject", message },
      headers: { "Content-Type": "application/json" },
    })
  // Its person has answered in opencode. Once the hook has ended, it cannot ask any more.
  const answered = async (request) => {
    const open = asked.get(request)
    if (!open) return
    asked.delete(request)
    clearTimeout(open.timer)
    if (!open.hook) return
    open.hook.program.kill()
    await open.hook.answer
    await hook("PermissionReplied", open.told.session_id, open.told)
  }

  const room = { wake: (text) => last && prompt(last, text).catch(() => {}) }
  shared.rooms.set(folder, room)
  try {
    shared.close ??= listen()
  } catch {} // without a socket, hooks still count the news

  const on = {
    "session.error": ({ sessionID }) => failed.add(sessionID),
    "session.idle": ({ sessionID }) => stop(sessionID),
    "session.deleted": ({ info }) => info.id === last && (last = undefined),
    "permission.asked": ask,
    "permission.replied": ({ requestID }) => answered(requestID),
  }
  return {
    // The plugin for all folders of the user has no file that names the server.
    config: async (config) => {
      config.mcp ??= {}
      config.mcp.crewlog ??= { type: "local", command: ["crewlog", "mcp"], enabled: true, timeout: 60_000 }
    },
    event: async ({ event }) => {
      await Promise.resolve(on[event.type]?.(event.properties)).catch(() => {})
    },
    "chat.message": async (input, output) => {
      const session = input.sessionID
      if (await isChild(session)) return
      last = session
      failed.delete(session)
      const text = output.parts.find((part) => part.type === "text")
      if (prompts.delete(session + text?.text)) return
      continued.delete(session)
      const said = (await hook("UserPromptSubmit", session)).hookSpecificOutput?.additionalContext
      if (said && text) output.parts.push({ ...text, id: `${text.id}c`, text: said, synthetic: true })
    },
    "tool.execute.before": async (input, output) => {
      const said = await tool("PreToolUse", input, output.args)
      if (said.permissionDecision === "deny") throw new Error(said.permissionDecisionReason)
    },
    "tool.execute.after": async (input, output) => {
      const said = await tool("PostToolUse", input, input.args)
      if (said.additionalContext) output.output += `\n${said.additionalContext}`
    },
    "experimental.chat.system.transform": async (input, output) => {
      const session = input.sessionID
      if (!session) return
      if (!contexts.has(session)) {
        const said = (await hook("SessionStart", session, { source: "startup" })).hookSpecificOutput ?? {}
        contexts.set(session, said.additionalContext)
      }
      const context = contexts.get(session)
      if (context) output.system.push(context)
    },
    dispose: async () => {
      if (shared.rooms.get(folder) === room) shared.rooms.delete(folder)
      if (shared.rooms.size === 0) {
        shared.close?.()
        shared.close = undefined
      }
      for (const open of asked.values()) {
        clearTimeout(open.timer)
        open.hook?.program.kill()
      }
      const [session] = contexts.keys()
      if (session) await hook("SessionEnd", session)
    },
  }
}
