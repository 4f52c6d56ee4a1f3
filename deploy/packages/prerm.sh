#!/bin/sh
# Before the files go: ends the service, which would run from a deleted file. An upgrade leaves it alone. deb: remove; rpm: 0.
set -e
[ -z "$DPKG_ROOT" ] || exit 0 # for a root that is not this machine's
case "$1" in
  remove | deconfigure | 0)
    if [ -d /run/systemd/system ]; then
      systemctl disable --now claudeops.service || systemctl stop claudeops.service
    fi
    ;;
esac
