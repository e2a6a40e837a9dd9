#!/usr/bin/env node
// Judges a log of a crew, from `crewlog events -o jsonl`: no lease granted within another's, no edit under another's lease,
// no task held twice at once, no message lost. It shares no code with the program that wrote the log.
import { readFileSync } from "node:fs"

const events = readFileSync(process.argv[2], "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line))
const faults = []
const fault = (event, text) => faults.push(`${event.position} ${event.event_type}: ${text}`)
const isBelow = (agent, parent) => agent === parent || agent.startsWith(`${parent}/`)
const live = new Map(), claims = new Map(), unread = new Set()

// True where two targets surely overlap: one path, or a file below a folder. Patterns are left to the property tests.
const overlap = (a, b) => {
  if (a.is_pattern || b.is_pattern) return a.path === b.path
  return a.path === b.path || a.path.startsWith(`${b.path}/`) || b.path.startsWith(`${a.path}/`)
}

for (const event of events) {
  const data = event.data
  switch (`${event.stream_id}/${event.event_type}`) {
    case "leases/LeasesGranted": {
      const { holder, targets, is_exclusive } = data.request
      targets.forEach((target, index) => {
        for (const [number, lease] of live) {
          const isStranger = !isBelow(holder.agent, lease.holder.agent)
          const isOne = lease.holder.worktree === holder.worktree
          if (isStranger && isOne && (is_exclusive || lease.is_exclusive) && overlap(target, lease.target))
            fault(event, `${target.path} for ${holder.agent}, while lease ${number} of ${lease.holder.agent} is live`)
        }
        live.set(data.first + index, { holder, target, is_exclusive })
      })
      break
    }
    case "leases/LeasesReleased":
    case "leases/LeasesExpired":
    case "leases/LeasesAbandoned":
    case "leases/LeasesForced":
      for (const number of data.leases) live.delete(number)
      break
    case "leases/UnleasedEdit":
      if (data.agent && data.lease) fault(event, `${data.agent} changed ${data.path} under lease ${data.lease}`)
      break
    case "task/TaskClaimed": {
      const held = claims.get(event.aggregate_id)
      if (held && held.epoch >= data.epoch) fault(event, `epoch ${data.epoch} after ${held.epoch}`)
      claims.set(event.aggregate_id, { epoch: data.epoch, is_open: true })
      break
    }
    case "task/TaskCompleted":
    case "task/TaskFailed": {
      const held = claims.get(event.aggregate_id)
      if (!held || held.epoch !== data.epoch || !held.is_open) fault(event, `${event.aggregate_id} ended twice, or by a stranger`)
      if (held) held.is_open = false
      break
    }
    case "messages/MessageSent":
      data.message.to.forEach((agent) => unread.add(`${event.position} ${agent}`))
      break
    case "messages/MessagesRead":
      for (const message of data.messages)
        if (!unread.has(`${message} ${data.agent}`)) fault(event, `${data.agent} read ${message}, which is not its own`)
      break
  }
}
faults.forEach((text) => console.error(`judge: ${text}`))
console.log(`judge: ${events.length} events, ${faults.length} faults`)
process.exit(faults.length === 0 ? 0 : 1)
