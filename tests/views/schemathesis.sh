#!/bin/sh
# Sends the requests that schemathesis makes of the OpenAPI document to a built crewlog: no answer is a server error, and none is of a
# status, type or form that the document does not name. Installs schemathesis below the target folder.
# Usage: tests/views/schemathesis.sh BINARY FOLDER
set -eu
binary=$(realpath "$1")
folder=$(realpath -m "$2")
version=4.32.5
if [ ! -x "$folder/bin/st" ] || ! "$folder/bin/st" --version | grep -q " $version\$"; then
    rm -rf "$folder"
    python3 -m venv "$folder" || { echo 'Python 3 with venv is needed: python3 and python3-venv' >&2; exit 1; }
    "$folder/bin/pip" install -q --disable-pip-version-check "schemathesis==$version"
fi
scene=$(mktemp -d)
git init -q "$scene"
(
    cd "$scene"
    printf '# Work\n1. Run `true`\n2. Look at it\n' >plan.md
    "$binary" run --detach --yes -q plan.md >plan
    "$binary" serve tokens add tester --scope read,write,execute,operator -o json | sed 's/.*"token":"\([^"]*\)".*/\1/' >token
)
(cd "$scene" && exec "$binary" -o jsonl serve --listen 127.0.0.1:0 >serve.json 2>serve.log) &
server=$!
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null; rm -rf "$scene"' EXIT
until [ -s "$scene/serve.json" ]; do kill -0 $server || { cat "$scene/serve.log" >&2; exit 1; }; sleep 0.1; done
base=$(sed 's|.*"mcp":"\([^"]*\)/mcp".*|\1|' "$scene/serve.json")
# A stream does not end. A document cannot say which fields exclude each other, so valid requests may be refused.
cd "$scene"
"$folder/bin/st" run "$base/api/openapi.json" -H "Authorization: Bearer $(cat token)" --exclude-path /api/events/stream \
    --max-examples "${SCHEMATHESIS_EXAMPLES:-20}" --seed 1 --request-timeout 10 --no-color \
    --exclude-checks positive_data_acceptance,unsupported_method,use_after_free,ensure_resource_availability >st.log 2>&1 || { cat st.log >&2; exit 1; }
grep -E 'Test cases:|generated' st.log
