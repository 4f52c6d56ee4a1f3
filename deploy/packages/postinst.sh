#!/bin/sh
# After the files are there: makes the users of agents, tells systemd of the unit, and has a running service take the new program. A first
# installation starts nothing: settings and secrets come first. deb: configure VERSION-BEFORE; rpm: 1, or 2 for an upgrade.
set -e
[ -z "$DPKG_ROOT" ] || exit 0 # for a root that is not this machine's
if command -v systemd-sysusers > /dev/null; then
  systemd-sysusers claudeops.conf
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  case "$1:$2" in
    configure:?* | 2:*) systemctl try-restart claudeops.service ;;
  esac
fi
