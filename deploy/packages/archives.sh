#!/usr/bin/env bash
# Unpacks archives of a release, looks whether each holds what belongs to the program, and runs that of this machine.
# Needs Go, tar, and unzip for those of Windows.
#
#   deploy/packages/archives.sh dist/claudeops_*.tar.gz dist/claudeops_*.zip
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "$archive: $*" >&2; exit 1; }
here=$(uname -s | tr '[:upper:]' '[:lower:]')_$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')

for archive in "$@"; do
  root=$folder/$(basename "$archive")
  mkdir "$root"
  case $archive in
    *.zip) unzip -q "$archive" -d "$root" || fail "cannot be unpacked"; end=.exe ;;
    *) tar -xzf "$archive" -C "$root" || fail "cannot be unpacked"; end= ;;
  esac
  for file in "claudeops$end" "claudeops-connect$end" LICENSE THIRD_PARTY_NOTICES.txt README.md CHANGELOG.md .env.example \
    completions/claudeops.bash completions/_claudeops completions/claudeops.fish man/claudeops.1.gz man/claudeops-serve.1.gz; do
    [ -s "$root/$file" ] || fail "lacks $file"
  done
  # What the linker has put in, by the programs' own account.
  for module in $(go version -m "$root/claudeops$end" "$root/claudeops-connect$end" | awk '$1 == "dep" {print $2 "@" $3}' | sort -u); do
    grep -qF "${module/@/ } (" "$root/THIRD_PARTY_NOTICES.txt" || fail "the notices lack $module"
  done
  diff -r docs "$root/docs" > /dev/null || fail "holds other pages than docs"
  [ "$(find "$root" -name '*.1.gz' | wc -l)" -gt 100 ] || fail "lacks manual pages"
  case $archive in
    *_"$here".*)
      env -i HOME="$folder" "$root/claudeops" version || fail "the program does not run"
      (cd "$folder" && env -i HOME="$folder/none" PATH="$PATH" TMPDIR="$folder" "$root/claudeops" demo > "$folder/demo.log") || fail "the demo fails"
      ;;
  esac
  rm -rf "$root"
done
echo "$#: unpacked, and whole"
