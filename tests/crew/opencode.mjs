// Stands for opencode: `node opencode.mjs PLUGIN SOCKET CREWLOG` loads the plugin with a client that only reports, and has
// `crewlog mcp` as a child, on its own standard streams. On the socket it gets lines `[HOOK, ARGUMENT...]`, and sends
// what the plugin asks of the client, and `{done}` after each hook.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { copyFileSync } from "node:fs"
import { createConnection } from "node:net"
import { createInterface } from "node:readline"

const [plugin, socket, crewlog] = process.argv.slice(2)
const stream = createConnection(socket)
await once(stream, "connect")
const say = (value) => stream.write(`${JSON.stringify(value)}\n`)
const client = {
  session: {
    get: async ({ path }) => ({ data: { id: path.id, parentID: path.id === "child" ? "root" : undefined } }),
    promptAsync: async ({ path, body }) => {
      say({ prompt: path.id, text: body.parts[0].text })
      await hooks["chat.message"]({ sessionID: path.id }, { parts: body.parts })
    },
  },
  _client: { post: async ({ path, body }) => say({ id: path.requestID, body }) },
}
copyFileSync(plugin, `${socket}.mjs`)
const { Crewlog } = await import(`${socket}.mjs`)
const load = () => Crewlog({ client, directory: process.cwd() })
let hooks = await load()
// opencode loads it twice.
hooks = await load()
spawn(crewlog, ["mcp"], { stdio: "inherit" }).on("exit", () => process.exit())
for await (const line of createInterface({ input: stream })) {
  const [hook, ...args] = JSON.parse(line)
  await hooks[hook](...args)
  say({ done: hook, args })
}
