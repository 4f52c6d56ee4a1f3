#!/bin/sh
# Installs the pinned MCP clients of the end-to-end tests into e2e/node_modules. Does nothing when they are up to date.
# Needs npm. The clients want Node 22; it is one of the packages, so the Node that runs npm may be older.
# The tests of the dashboard need Chromium, that of the container image bubblewrap, those of the docs curl, those of the alerts
# promtool and Alertmanager, that of the boundary Python, those of agents elsewhere nginx, Caddy and tinyproxy,
# that of managed settings socat, that of programs' documents ip, that of the package debootstrap; as root they are
# installed from Debian's packages if they are missing. No service is started by that.
set -eu
cd "$(dirname "$0")"

missing=
for program in /usr/bin/chromium-headless-shell /usr/bin/bwrap /usr/bin/curl /usr/bin/promtool /usr/bin/prometheus-alertmanager /usr/bin/python3 /usr/sbin/nginx /usr/bin/caddy /usr/bin/tinyproxy /usr/bin/socat /usr/bin/ip; do
    [ -x "$program" ] || missing="$missing $program"
done
[ "$(id -u)" != 0 ] || [ -x /usr/sbin/debootstrap ] || missing="$missing /usr/sbin/debootstrap" # is of no use to others
if [ -n "$missing" ]; then
    [ "$(id -u)" = 0 ] || { echo "$0: lacks$missing: install Debian's chromium-headless-shell, bubblewrap, curl, prometheus, prometheus-alertmanager, python3, nginx, caddy, tinyproxy-bin, socat and iproute2, or run this as root" >&2; exit 1; }
    policy=/usr/sbin/policy-rc.d
    if ! [ -e "$policy" ]; then
        trap 'rm -f "$policy"' EXIT
        printf '#!/bin/sh\nexit 101\n' > "$policy"
        chmod 755 "$policy"
    fi
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends chromium-headless-shell fonts-dejavu-core bubblewrap curl prometheus prometheus-alertmanager python3 nginx caddy tinyproxy-bin socat iproute2 debootstrap
fi

stamp=node_modules/.installed-lock.json
if cmp -s package-lock.json "$stamp"; then
    exit 0
fi
# Install scripts stay off: the tests run the packages' programs directly and need none of them.
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
cp package-lock.json "$stamp"
