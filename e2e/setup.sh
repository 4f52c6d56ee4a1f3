#!/bin/sh
# Installs the pinned MCP clients of the end-to-end tests into e2e/node_modules. Does nothing when they are up to date.
# Needs npm. The clients want Node 22; it is one of the packages, so the Node that runs npm may be older.
# The tests of the dashboard need Chromium, that of the container image bubblewrap, those of the docs curl, those of the alerts
# promtool, that of the boundary Python; as root they are installed from Debian's packages if they are missing.
set -eu
cd "$(dirname "$0")"

if ! [ -x /usr/bin/chromium ] || ! [ -x /usr/bin/bwrap ] || ! [ -x /usr/bin/curl ] || ! [ -x /usr/bin/promtool ] || ! [ -x /usr/bin/python3 ]; then
    [ "$(id -u)" = 0 ] || { echo "$0: install Debian's chromium, bubblewrap, curl, prometheus and python3, or run this as root" >&2; exit 1; }
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends chromium fonts-dejavu-core bubblewrap curl prometheus python3
fi

stamp=node_modules/.installed-lock.json
if cmp -s package-lock.json "$stamp"; then
    exit 0
fi
# Install scripts stay off: the tests run the packages' programs directly and need none of them.
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
cp package-lock.json "$stamp"
