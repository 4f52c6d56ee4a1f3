#!/usr/bin/env bash
# Boots a Debian's systemd as process 1 of namespaces of its own, installs a deb while it runs, and looks whether the unit does what
# docs/guides/deployment.md says: it waits for an address that is late, a session of it has the boundary `user`, its agent reaches nothing of the unit,
# nothing outlives the unit's stop, an upgrade restarts it, and the removal ends it.
# Needs root, debootstrap and cgroups of version 2; the first time Debian's mirror, too. What debootstrap made is kept in the folder of Go's build
# cache (76 MB), or in the folder that is named: it takes a minute of processor time, all else a few seconds.
#
#   deploy/packages/systemd.sh dist/claudeops_VERSION_linux_ARCH.deb [FOLDER]
set -euo pipefail
deb=$(realpath "$1")
cache=${2:-$(go env GOCACHE)/debian}
work=$(mktemp -d)
root=$work/root
groups=$(findmnt -rn -t cgroup2 -o TARGET | head -1)
group=$groups/claudeops-boot-$$
booted=
namespace=
finish() {
  trap '' INT TERM HUP
  [ -z "$namespace" ] || { kill -KILL "$namespace" && wait "$namespace"; } 2> /dev/null || true # all processes of it end with it
  for _ in $(seq 50); do
    [ -e "$group" ] || break
    find "$group" -depth -type d -exec rmdir {} + 2> /dev/null || sleep 0.1
  done
  rm -rf --one-file-system "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP
fail() { echo "$deb: $*" >&2; exit 1; }
for left in "$groups"/claudeops-boot-*; do # by a run that was killed
  [ ! -e "$left" ] || [ -e "/proc/${left##*-}" ] || find "$left" -depth -type d -exec rmdir {} +
done

# The root of a Debian, unpacked from what an earlier run has kept.
debian=(--variant=minbase --include=systemd,systemd-sysv,dbus,git,curl,iproute2,procps bookworm)
kept=$cache/$(echo "${debian[*]} $(uname -m)" | sha256sum | cut -c 1-16).tar.gz
mkdir -p "$root" "$cache"
if ! tar -C "$root" -xzf "$kept" 2> /dev/null; then
  rm -rf --one-file-system "$root"
  debootstrap "${debian[@]}" "$root" > "$work/debootstrap.log" || { tail "$work/debootstrap.log"; fail "no Debian"; }
  made=$(mktemp "$cache/.debian.XXXXXX")
  (cd "$root" && tar -cf - --exclude='./dev/*' --exclude=./var/cache/apt --exclude=./var/lib/apt/lists \
    --exclude=./usr/share/doc --exclude=./usr/share/locale --exclude=./usr/share/man .) | gzip -1 > "$made" && mv "$made" "$kept"
fi
cp "$deb" "$root/root/claudeops.deb"
mkdir -p "$root/etc/claudeops" "$root/mnt"
printf 'CLAUDEOPS_TIER=1\nCLAUDEOPS_MAX_TIER=1\nCLAUDEOPS_CLAUDE_BIN=/usr/local/bin/claude\nCLAUDEOPS_ADDR=10.77.0.1:8080\nCLAUDEOPS_START_WAIT=2s\n' \
  > "$root/etc/claudeops/environment"

# In place of the Claude CLI: connects as it does, tries what it must not reach, leaves a process behind, and says what came of it.
cat > "$root/usr/local/bin/claude" << 'CLI'
#!/bin/sh
[ "$1" = --version ] && { echo "2.1.329 (Claude Code)"; exit 0; }
cat > /dev/null
while [ $# -gt 0 ]; do [ "$1" = --mcp-config ] && config=$2; shift; done
address=$(tr -d '\n' < "$config" | sed 's/.*"\(unix:[^"]*\)".*/\1/')
server=$(tr -d '\n' < "$config" | sed 's/.*"command": *"\([^"]*\)".*/\1/')
main=$(pgrep -o -x claudeops)
{
  echo "user $(id -un)"
  ls /var/lib/claudeops/ && echo OPEN state
  cat /run/credentials/claudeops.service/claudeops_api_tokens && echo OPEN secrets
  cat "/proc/$main/environ" && echo OPEN environment
  touch /var/lib/claudeops/x && echo OPEN writing
  kill "$main" && echo OPEN signals
} > seen 2> /dev/null
setsid sh -c 'trap "" TERM; sleep 4242' > /dev/null 2>&1 &
sleep 1000 | "$server" --connect "$address" > /dev/null 2> /dev/null &
echo '{"type":"system","subtype":"init","mcp_servers":[{"name":"claudeops","status":"connected"}]}'
sleep 1000
CLI
chmod 755 "$root/usr/local/bin/claude"

# Its mounts, its processes, its network and its control groups are its own.
mkdir "$group"
(
  echo "$BASHPID" > "$group/cgroup.procs"
  # shellcheck disable=SC2016 # it is the inner shell that expands
  exec setpriv --pdeathsig KILL unshare --mount --pid --uts --ipc --net --cgroup --kill-child -- bash -c '
    set -e
    mount --make-rprivate / && mount --bind "$0" "$0" && cd "$0"
    mount -t proc proc proc && mount -t sysfs -o ro sysfs sys && mount -t cgroup2 cgroup2 sys/fs/cgroup
    mount -t tmpfs -o mode=755 tmpfs dev && mkdir dev/pts dev/shm && mount -t tmpfs tmpfs dev/shm
    for device in null zero full random urandom tty; do touch "dev/$device" && mount --bind "/dev/$device" "dev/$device"; done
    mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts && ln -s pts/ptmx dev/ptmx && ln -s /proc/self/fd dev/fd
    mount -t tmpfs -o mode=755 tmpfs run && mount -t tmpfs tmpfs tmp
    pivot_root . mnt && umount -l /mnt && mount --make-rshared / # credentials are mounted by propagation
    exec env -i container=claudeops PATH=/usr/sbin:/usr/bin /lib/systemd/systemd --system --unit=multi-user.target --show-status=no
  ' "$root"
) > "$work/boot.log" 2>&1 &
namespace=$!
inside() {
  nsenter -t "$booted" -m -p -u -i -n -C --root env -i PATH=/usr/sbin:/usr/bin timeout 60 bash -euo pipefail -c "cd /; $1" 2> "$work/said"
}
for _ in $(seq 300); do
  booted=$(pgrep -P "$namespace" -x systemd) && inside 'systemctl is-active multi-user.target' > /dev/null && break
  sleep 0.2
done
inside 'dpkg --install /root/claudeops.deb' > /dev/null || { cat "$work/boot.log" "$work/said"; fail "it cannot be installed"; }
inside 'getent passwd claudeops-agent-1 claudeops-agent-16' > /dev/null || fail "the users of agents are not there until the machine boots again"
! inside 'systemctl is-active claudeops' > /dev/null || fail "it was started without settings"
inside '/usr/share/doc/claudeops/secrets.sh /etc/claudeops/secrets'
# The address comes late, as that of a VPN does. The unit tries again and again, far more often than systemd would by itself.
inside 'systemctl enable --now claudeops' || { cat "$work/said"; fail "the unit is not enabled"; }
for _ in $(seq 300); do
  [ "$(inside 'systemctl show -p NRestarts --value claudeops')" -ge 2 ] && break
  sleep 0.2
done
inside 'journalctl -u claudeops --no-pager' | grep -q 'code=exited, status=5' || fail "a late address has another exit code"
inside 'ip link set lo up && ip address add 10.77.0.1/32 dev lo'
for _ in $(seq 300); do
  inside 'curl -sf http://10.77.0.1:8080/readyz' > /dev/null && break
  sleep 0.2
done
inside 'systemctl is-active claudeops' > /dev/null || { inside 'journalctl -u claudeops --no-pager'; fail "the unit was not started when its address came"; }
inside 'journalctl -u claudeops --no-pager' > "$work/log"
! grep "cannot be read" "$work/log" || fail "the unit does not get its secrets"
inside 'systemd-analyze verify /usr/lib/systemd/system/claudeops.service' || { cat "$work/said"; fail "systemd finds fault with the unit"; }
ask='curl -sS -H "Authorization: Bearer $(cat /etc/claudeops/secrets/claudeops_api_tokens)" -H "Content-Type: application/json" http://10.77.0.1:8080/api/v1/sessions'
inside "$ask -d '{\"tier\":1}'" > /dev/null
for _ in $(seq 300); do
  seen=$(inside 'cd "/proc/$(systemctl show -p MainPID --value claudeops)/root" && cat tmp/claudeops-session-*/*/seen') && inside 'pgrep -x claudeops-conne' > /dev/null && break
  sleep 0.1
done
echo "$seen" | grep -qx "user claudeops-agent-[0-9]*" || { inside "$ask"; fail "no agent came so far: $seen"; }
! echo "$seen" | grep OPEN || fail "the agent reaches what is the unit's"
! inside "$ask" | grep -q '"missing"' || fail "the boundary lacks something"
inside "$ask" | grep -q '"boundary":{"kind":"user","user":"claudeops-agent-[0-9]*"' || fail "the record says nothing of the boundary"
inside 'systemctl status --no-pager claudeops' | grep -q claudeops-session- || fail "the session has no control group"
inside 'systemctl stop claudeops'
[ "$(inside 'systemctl show -p Result --value claudeops')" = success ] || fail "the unit did not end well"
! inside 'pgrep -u "$(seq -s , -f claudeops-agent-%g 16)"' || fail "processes of the agent outlived the unit"
# An upgrade has a running service take the new program; the removal ends it, and keeps the records.
inside 'systemctl start claudeops'
before=$(inside 'systemctl show -p MainPID --value claudeops')
inside 'dpkg --install /root/claudeops.deb' > /dev/null || { cat "$work/said"; fail "it cannot be upgraded"; }
after=$(inside 'systemctl show -p MainPID --value claudeops')
[ "$after" != 0 ] && [ "$after" != "$before" ] || fail "after an upgrade the old program runs on ($before, $after)"
inside 'systemd-run -q --pipe --wait -p DynamicUser=yes -p User=claudeops -p StateDirectory=claudeops -E CLAUDEOPS_STATE_DIR=/var/lib/claudeops claudeops audit verify' ||
  { cat "$work/said"; fail "the audit is not whole"; }
inside 'dpkg --remove claudeops' > /dev/null || { cat "$work/said"; fail "it cannot be removed"; }
! inside 'pgrep -x claudeops' || fail "the service outlived its package"
! inside 'systemctl cat claudeops' > /dev/null || fail "systemd knows the unit still"
inside 'test -s /var/lib/private/claudeops/claudeops.db' || fail "the records went with the package"
echo "$deb: installed in a running systemd, started late, a session run by the unit, upgraded, stopped and removed"
