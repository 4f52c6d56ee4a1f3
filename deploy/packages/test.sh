#!/usr/bin/env bash
# Installs a deb in an empty root, runs the program there, and removes it again. Needs dpkg, and root for chroot.
#
#   deploy/packages/test.sh dist/claudeops_VERSION_linux_ARCH.deb
set -euo pipefail
deb=$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/var/lib/dpkg/{info,updates,triggers} "$root/var/log" "$root/tmp" "$root/root"
touch "$root"/var/lib/dpkg/{status,available}

fail() { echo "$deb: $*" >&2; exit 1; }

# Dependencies are those of the machine, which an empty root has not.
dpkg --root="$root" --force-depends --force-script-chrootless --install "$deb"
for file in usr/bin/claudeops usr/bin/claudeops-connect usr/lib/systemd/system/claudeops.service usr/lib/sysusers.d/claudeops.conf usr/share/man/man1/claudeops.1.gz \
  usr/share/bash-completion/completions/claudeops usr/share/zsh/vendor-completions/_claudeops usr/share/fish/vendor_completions.d/claudeops.fish \
  usr/share/doc/claudeops/{copyright,THIRD_PARTY_NOTICES.txt,README.md,CHANGELOG.md,environment.example,secrets.sh} usr/share/doc/claudeops/docs/reference/configuration.md; do
  [ -s "$root/$file" ] || fail "lacks $file"
done
[ -z "$(find "$root/usr" -perm /022 -not -type l -print -quit)" ] || fail "others than root may write to what it installs"
gzip -dc "$root/usr/share/man/man1/claudeops.1.gz" | head -1 | grep -q '^\.' || fail "the manual page is none"
bash -n "$root/usr/share/bash-completion/completions/claudeops" || fail "the completion for bash is not a script"
program=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$root/usr/lib/systemd/system/claudeops.service")
[ -x "$root$program" ] || fail "the unit starts $program, which is not there"

in_root() { env -i HOME=/root PATH=/usr/bin:/usr/sbin CLAUDEOPS_STATE_DIR=/root/state CLAUDEOPS_TIER=2 "$(command -v chroot)" "$root" "$@"; }
version=$(dpkg-deb --field "$deb" Version)
in_root /usr/bin/claudeops version
in_root /usr/bin/claudeops policy check checks/disk.md
in_root /usr/bin/claudeops doctor > /dev/null || [ $? -eq 3 ] || fail "doctor did not run"
in_root /usr/bin/claudeops audit verify

dpkg --root="$root" --force-script-chrootless --remove claudeops
[ -z "$(find "$root" -path "$root/usr/*" -not -type d -print -quit)" ] || fail "leaves files behind"
echo "$deb ($version): installed, run and removed"
