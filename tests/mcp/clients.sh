#!/usr/bin/env bash
# Calls a built crewlog with clients that were not written here: the official Python and TypeScript SDKs of MCP, and the scenarios of
# the official conformance suite that need no test server. Installs them below a folder, by default target/mcp-clients.
# Usage: tests/mcp/clients.sh BINARY [FOLDER]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
binary=$(realpath "$1")
clients=$(realpath -m "${2-$here/../../target/mcp-clients}")
python=2.3.0 sdk=1.32.2 conformance=0.1.16
# The suite needs Node 22.
packages=("@modelcontextprotocol/sdk@$sdk" "@modelcontextprotocol/conformance@$conformance" node@22)
installed="mcp $python ${packages[*]}"
scenarios=(server-initialize ping tools-list tools-call-error resources-list server-sse-multiple-streams dns-rebinding-protection)

mkdir -p "$clients"
if [ "$(cat "$clients/installed" 2>/dev/null)" != "$installed" ]; then
    python3 -m venv --clear "$clients/python" || { echo 'Python 3 with venv is needed: python3 and python3-venv' >&2; exit 1; }
    "$clients/python/bin/pip" install -q --disable-pip-version-check "mcp==$python"
    npm install --prefix "$clients" --no-audit --no-fund --loglevel=error "${packages[@]}"
    echo "$installed" >"$clients/installed"
fi
# They import from the folder that they are in.
cp "$here"/*.mjs "$clients"
node=$clients/node_modules/.bin/node

scene=$(mktemp -d)
started=()
trap 'kill "${started[@]}" 2>/dev/null; wait; rm -rf "$scene"' EXIT
mkdir "$scene/tree" "$scene/home"
export HOME="$scene/home"
git init -q "$scene/tree"
# Without a log the server offers no tools.
(cd "$scene/tree" && "$binary" init --no-hosts >/dev/null)
"$clients/python/bin/python" "$here/python_client.py" "$binary" "$scene/tree"
"$node" "$clients/typescript_client.mjs" "$binary" "$scene/tree"

# Waits until a process that was just started has written its first line into a file.
said() {
    until [ -s "$1" ]; do
        kill -0 "${started[-1]}" || { cat "$scene"/*.log >&2; exit 1; }
        sleep 0.1
    done
}

(cd "$scene/tree" && exec "$binary" -o jsonl serve --listen 127.0.0.1:0 >"$scene/server" 2>"$scene/server.log") &
started+=($!)
said "$scene/server"
url=$(sed 's|.*"mcp":"\([^"]*\)".*|\1|' "$scene/server")
token=$(cat "$scene/tree/.crewlog/agent-token")
"$node" "$clients/typescript_client.mjs" "$binary" "$scene/tree" "$url" "$token"

port=${url#http://127.0.0.1:}
"$node" "$clients/proxy.mjs" "${port%/mcp}" "$token" >"$scene/proxy" 2>"$scene/proxy.log" &
started+=($!)
said "$scene/proxy"
for scenario in "${scenarios[@]}"; do
    "$node" "$clients/node_modules/@modelcontextprotocol/conformance/dist/index.js" server --url "$(cat "$scene/proxy")/mcp" \
        --scenario "$scenario" -o "$scene/results" >"$scene/suite.log" 2>&1 || { cat "$scene/suite.log" >&2; exit 1; }
done
echo "conformance suite: ${#scenarios[@]} scenarios"
