#!/bin/sh
# The official MCP conformance suite against `qmd server`, both protocol eras: the scenarios
# that apply to any server, whatever its tools. Needs Node 22 or newer, or npm to fetch it.
#
#   tests/conformance.sh [PYTHON]      PYTHON: one that has qmd installed, default python3
#
# server-stateless alone calls tools that exist for the suite's sake; for it the server gets
# them (tests/support/conformance_server.py).
set -eu
python=${1:-python3}
here=$(cd "$(dirname "$0")" && pwd)
suite=@modelcontextprotocol/conformance@0.2.0-alpha.12
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT INT TERM

command -v npm >/dev/null || { echo "conformance: no npm here; install Node 22" >&2; exit 77; }
mkdir "$work/node"
printf '{"private": true}' >"$work/node/package.json"
major=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/')
if [ "${major:-0}" -ge 22 ]; then
    npm install --silent --prefix "$work/node" "$suite" >&2
    node=node
else
    npm install --silent --prefix "$work/node" node@22 "$suite" >&2
    node=$(find "$work/node/node_modules" -path '*/bin/node' -type f | head -n 1)
fi
cli=$work/node/node_modules/@modelcontextprotocol/conformance/dist/index.js

mkdir "$work/notes"
printf '# Plan\n\nBuy a boat.\n' >"$work/notes/plan.md"
"$python" -m qmd --db "$work/index.sqlite" collection add "$work/notes" >&2

start() { # command of a server
    : >"$work/log"
    "$@" </dev/null 2>"$work/log" &
    server=$!
    url=
    for _ in $(seq 300); do
        url=$(sed -n 's/.* mcp=\([^ ]*\).*/\1/p' "$work/log")
        [ -z "$url" ] || return 0
        kill -0 "$server" || break
        sleep 0.1
    done
    cat "$work/log" >&2
    exit 1
}
stop() {
    kill "$server"
    wait "$server"
    server=
}

failed=0
try() { # revision scenario
    if "$node" "$cli" server --url "$url" --scenario "$2" --spec-version "$1" \
        -o "$work/out" >"$work/report" 2>&1; then
        echo "passed  $1  $2"
    else
        echo "FAILED  $1  $2"
        cat "$work/report"
        failed=1
    fi
}
start "$python" -m qmd --db "$work/index.sqlite" server --transport http --port 0
for scenario in server-initialize ping tools-list resources-list prompts-list \
    completion-complete dns-rebinding-protection server-sse-multiple-streams \
    server-session-lifecycle; do
    try 2025-11-25 "$scenario"
done
for scenario in caching sep-2164-resource-not-found http-header-validation tools-list \
    resources-list prompts-list completion-complete dns-rebinding-protection \
    server-sse-multiple-streams; do
    try 2026-07-28 "$scenario"
done
stop
start "$python" "$here/support/conformance_server.py" "$work/index.sqlite"
try 2026-07-28 server-stateless
stop
exit $failed
