#!/bin/sh
# Runs clients that were not written here against a built crewlog: the official Python and TypeScript SDKs, and the scenarios of
# the official conformance suite that need no test server. Installs them below target/. Usage: tests/mcp/clients.sh BINARY
set -eu
binary=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
clients=${CARGO_TARGET_DIR:-$here/../../target}/mcp-clients
mkdir -p "$clients"
cd "$clients"
[ -d python ] || { python3 -m venv python && python/bin/pip install -q 'mcp==2.3.0'; }
# The suite needs Node 22.
[ -d node_modules ] || npm install --silent --no-save @modelcontextprotocol/sdk @modelcontextprotocol/conformance@0.1.16 node@22
cp "$here"/*.mjs .
node=node_modules/.bin/node

scene=$(mktemp -d)
git init -q "$scene"
python/bin/python "$here/python_client.py" "$binary" "$scene"
"$node" typescript_client.mjs "$binary" "$scene"

cd "$scene"
"$binary" -o jsonl serve --listen 127.0.0.1:17777 >serve.json 2>serve.log &
server=$!
trap 'kill $server ${proxy:-} 2>/dev/null; rm -rf "$scene"' EXIT
until [ -s serve.json ]; do sleep 0.1; done
token=$(cat .crewlog/agent-token)
cd "$clients"
"$node" typescript_client.mjs "$binary" "$scene" http://127.0.0.1:17777/mcp "$token"
"$node" proxy.mjs 17778 17777 "$token" &
proxy=$!
sleep 1
for scenario in server-initialize ping tools-list tools-call-error resources-list server-sse-multiple-streams dns-rebinding-protection; do
  "$node" node_modules/@modelcontextprotocol/conformance/dist/index.js server \
    --url http://localhost:17778/mcp --scenario "$scenario" >"$scenario.log" 2>&1 || { cat "$scenario.log"; exit 1; }
  echo "conformance: $scenario"
done
