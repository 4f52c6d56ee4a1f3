#!/bin/sh
# After the files are gone: systemd forgets the unit. Records and secrets stay, also when the package is purged: /var/lib/private/claudeops holds
# the audit, and nobody can make it again. The users of agents stay, so that no other user gets their numbers and files.
set -e
[ -z "$DPKG_ROOT" ] || exit 0 # for a root that is not this machine's
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
