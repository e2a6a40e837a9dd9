#!/usr/bin/env bash
# Installs the real agent programs, once: `install.sh [FOLDER]`, by default target/agents. 15 s and 1.1 GB.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=${1-$here/../../target/agents}
claude=2.1.332 codex=0.171.0 gemini=0.61.0 opencode=1.18.33
packages=("@anthropic-ai/claude-code@$claude" "@openai/codex@$codex" "@google/gemini-cli@$gemini" "opencode-ai@$opencode")

missing() {
    echo "install: $*" >&2
    exit 1
}

node -e 'process.exit(process.versions.node.split(".")[0] >= 20 ? 0 : 1)' 2>/dev/null ||
    missing "Node 20 or later is missing: see https://nodejs.org"
command -v npm >/dev/null || missing "npm is missing: it comes with Node"
if ! command -v ip >/dev/null && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends iproute2
fi
command -v ip >/dev/null || missing "ip is missing: install iproute2"
"$here/run" offline true 2>/dev/null ||
    missing "\`unshare -rn\` is refused: allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, or" \
        "kernel.apparmor_restrict_unprivileged_userns=0), or run as root"

if [ "$(cat "$folder/installed" 2>/dev/null)" = "${packages[*]}" ]; then exit; fi
mkdir -p "$folder"
# The scripts of the packages would compile parts that nothing here needs; two only choose the binary of this machine.
npm install --prefix "$folder" --ignore-scripts --no-audit --no-fund --loglevel=error "${packages[@]}"
(cd "$folder/node_modules/@anthropic-ai/claude-code" && node install.cjs)
(cd "$folder/node_modules/opencode-ai" && node postinstall.mjs)
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
for program in claude codex gemini opencode; do
    said=$(HOME=$home "$here/run" offline "$folder/node_modules/.bin/$program" --version 2>&1) || true
    [[ $said == *"${!program}"* ]] || missing "$program says \`$said\`, not version ${!program}"
done
echo "${packages[*]}" >"$folder/installed"
