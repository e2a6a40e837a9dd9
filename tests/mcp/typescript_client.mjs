// The official TypeScript SDK calls a server over standard streams, or over HTTP if it is given an address and a token.
import assert from 'node:assert';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [command, cwd, url, token] = process.argv.slice(2);
const transport = url
  ? new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } })
  : new StdioClientTransport({ command, args: ['mcp'], cwd, env: { AGENT_ID: 'typescript' } });
const client = new Client({ name: 'typescript', version: '1' });
await client.connect(transport);
// The client checks each result against the schema of its tool.
assert.equal((await client.listTools()).tools.length, 20);
const joined = (await client.callTool({ name: 'join', arguments: {} })).structuredContent;
const agent = url ? { agent: joined.agent } : {};
const scene = [
  ['reserve_paths', { paths: ['b'] }, 'granted'],
  ['reserve_paths', { paths: ['../..'] }, 'invalid'],
  ['reserve_paths', {}, 'invalid'],
  ['list_leases', {}, 'ok'],
  ['list_tasks', {}, 'ok'],
  ['read_inbox', {}, 'ok'],
  ['wait_for_events', { timeout_seconds: 0 }, 'timed_out'],
  ['get_status', { view: 'agents' }, 'ok'],
  ['leave', {}, 'left'],
];
for (const [name, values, status] of scene) {
  const result = await client.callTool({ name, arguments: { ...agent, ...values } });
  assert.equal(result.structuredContent.status, status, JSON.stringify(result));
}
await client.close();
console.log(`typescript SDK, ${url ? 'HTTP' : 'stdio'}: ${scene.length} calls`);
