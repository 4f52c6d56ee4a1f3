#!/usr/bin/env bash
# Runs a command with a PostgreSQL server of its own: e2e/postgres.sh go test -tags postgres ./internal/records/store
#
# The server listens on loopback only, on a random free port, with its data in a temporary folder. The command finds its
# URL, as an administrator, in CLAUDEOPS_TEST_POSTGRES. However the command or this script ends, the server is stopped
# and its folder removed. The status is that of the command.
#
# Debian's postgresql and pgbouncer are installed if they are missing, which takes root. The server leaves its files to the kernel, as tests
# kill clients, and neither the server nor the machine: set FSYNC=on to measure what a real one does. It does not look after
# the hundreds of databases that tests leave again at once.
set -euo pipefail

[ $# -gt 0 ] || { echo "usage: $0 command [argument...]" >&2; exit 2; }

# bindir prints the folder of the newest server that Debian's packages have installed.
bindir() { find /usr/lib/postgresql -mindepth 3 -maxdepth 3 -path '*/bin/initdb' 2>/dev/null | sort -V | tail -n 1 | xargs -r dirname; }

install_postgresql() {
  [ "$(id -u)" = 0 ] || { echo "$0: PostgreSQL is not installed; install Debian's postgresql and pgbouncer, or run this as root" >&2; exit 1; }
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -qq -y --no-install-recommends postgresql-common
  # Debian would make and start a server on the default port.
  sed -i 's/^#\?create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf
  apt-get install -qq -y --no-install-recommends postgresql pgbouncer
} >&2

[ -n "$(bindir)" ] && [ -n "$(command -v pgbouncer)" ] || install_postgresql
bin=$(bindir)

# PostgreSQL does not run as root.
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid postgres --regid postgres --init-groups)

work=$(mktemp -d "${TMPDIR:-/tmp}/claudeops-postgres.XXXXXX")
server=
command=
cleanup() {
  trap '' INT TERM HUP
  if [ -n "$command" ]; then kill -- "-$command" 2>/dev/null || true; fi
  if [ -n "$server" ]; then
    kill -INT "$server" 2>/dev/null || true # a fast shutdown
    wait "$server" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
printf '%s\n' "$password" >"$work/password"
if [ ${#as[@]} -gt 0 ]; then chown -R postgres:postgres "$work"; fi
(cd "$work" && "${as[@]}" "$bin/initdb" --pgdata="$work/data" --username=claudeops_admin --pwfile="$work/password" \
  --auth=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8) >"$work/initdb.log" 2>&1 || { cat "$work/initdb.log" >&2; exit 1; }

# start tries one port; the server ends if it is taken. It also ends if this script is killed without a chance to stop it.
start() {
  local safe=${FSYNC:-off}
  (cd "$work" && exec setpriv --pdeathsig INT "${as[@]:1}" "$bin/postgres" -D "$work/data" -c listen_addresses=127.0.0.1 -c port="$1" \
    -c unix_socket_directories="$work" -c max_connections=200 -c fsync="$safe" -c synchronous_commit="$safe" -c full_page_writes="$safe" \
    -c autovacuum=off -c wal_level=minimal -c max_wal_senders=0) >"$work/server.log" 2>&1 &
  server=$!
  while kill -0 "$server" 2>/dev/null; do
    if "$bin/pg_isready" -q -h "$work" -p "$1"; then return 0; fi
    sleep 0.1
  done
  server=
  return 1
}

for _ in $(seq 20); do
  port=$((10000 + RANDOM % 10000)) # below those of e2e/inspector_test.go, and of connections that go out
  if start "$port"; then break; fi
done
[ -n "$server" ] || { cat "$work/server.log" >&2; exit 1; }

export CLAUDEOPS_TEST_POSTGRES="postgres://claudeops_admin:$password@127.0.0.1:$port/postgres?sslmode=disable"
# Not in the foreground, where it would keep this script from heeding signals; a session of its own ends with all it started.
setsid "$@" <&0 &
command=$!
status=0
wait "$command" || status=$?
command=
exit "$status"
