#!/bin/sh
# Installs the pinned MCP clients of the end-to-end tests into e2e/node_modules. Does nothing when they are up to date.
# Needs npm. The clients want Node 22; it is one of the packages, so the Node that runs npm may be older.
set -eu
cd "$(dirname "$0")"

stamp=node_modules/.installed-lock.json
if cmp -s package-lock.json "$stamp"; then
    exit 0
fi
# Install scripts stay off: the tests run the packages' programs directly and need none of them.
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
cp package-lock.json "$stamp"
