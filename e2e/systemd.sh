#!/usr/bin/env bash
# Makes the Debian package of this source, and tries it in a booted Debian (deploy/packages/systemd.sh). Where that cannot be it says what is
# missing, and does not fail. Programs that are built already are taken from a folder.
#
#   e2e/systemd.sh [PROGRAMS]
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
[ "$(id -u)" = 0 ] || missing+=("root")
command -v debootstrap > /dev/null || missing+=("debootstrap")
for program in unshare nsenter setpriv findmnt; do
  command -v "$program" > /dev/null || missing+=("$program")
done
groups=$(findmnt -rn -t cgroup2 -o TARGET | head -1 || true)
[ -n "$groups" ] && [ -w "$groups" ] || missing+=("control groups of version 2 that can be written")
if [ ${#missing[@]} -gt 0 ]; then
  printf 'make e2e-systemd: SKIPPED, no Debian was booted with the package. Missing:%s\n' "$(printf ' %s;' "${missing[@]}")" >&2
  exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
./deploy/packages/deb.sh "$work/claudeops.deb" "$@"
./deploy/packages/systemd.sh "$work/claudeops.deb"
