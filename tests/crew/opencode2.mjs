// Stands for opencode 2, by the form of its plugins: prints what the plugin did as JSON.
import plugin from "./plugin.mjs"

const hooks = {}
const on = (domain) => ({ hook: async (name, callback) => void (hooks[`${domain}.${name}`] = callback) })
let publish
const published = new Promise((resolve) => (publish = resolve))
const subscribe = async function* () {
  yield await published
}
const ctx = { location: { directory: process.cwd() }, tool: on("tool"), session: on("session"), event: { subscribe } }
const cleanup = await plugin.setup(ctx)
const context = { sessionID: "s1", system: [] }
await hooks["session.context"](context)
const edit = (filePath) => ({ tool: "write", sessionID: "s1", input: { filePath, content: "x" } })
const refused = await hooks["tool.execute.before"](edit("a.txt")).then(() => "", (error) => error.message)
await hooks["tool.execute.before"](edit("b.txt"))
await hooks["tool.execute.after"]({ ...edit("b.txt"), status: "completed", result: { content: "" } })
publish({ type: "session.idle", properties: { sessionID: "s1" } })
await cleanup()
console.log(JSON.stringify({ refused, allowed: plugin.id === "crewlog", system: context.system }))
