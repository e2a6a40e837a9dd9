#!/usr/bin/env bash
# Installs what the tests of pages need, once: Chromium and a font with symbols and right-to-left letters, from the
# distribution; and axe-core in a folder: `install.sh [FOLDER]`, by default target/browser. 15 s.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=${1-$here/../../target/browser}
package=axe-core@4.14.1
system=(chromium fonts-dejavu-core)

missing() {
    echo "install: $*" >&2
    exit 1
}

has_browser() {
    [ -n "${CREWLOG_TEST_CHROMIUM:-}" ] || command -v chromium || command -v chromium-browser || command -v google-chrome
}

if ! has_browser >/dev/null && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${system[@]}"
fi
has_browser >/dev/null ||
    missing "no browser is installed: run \`apt-get install ${system[*]}\`, or name one in CREWLOG_TEST_CHROMIUM"

if [ "$(cat "$folder/installed" 2>/dev/null)" = "$package" ]; then exit; fi
command -v npm >/dev/null || missing "npm is missing: it comes with Node, see https://nodejs.org"
npm install --prefix "$folder" --ignore-scripts --no-audit --no-fund --loglevel=error "$package"
echo "$package" >"$folder/installed"
