#!/usr/bin/env bash
# Makes the Debian package of a release for this machine alone, as .goreleaser.yaml describes it: a minute, where a release of all systems takes ten.
# The programs are built, or taken from a folder.
#
#   deploy/packages/deb.sh FILE.deb [PROGRAMS]
set -euo pipefail
out=$(realpath -m "$1")
built=${2:+$(realpath "$2")}
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ -z "$built" ]; then
  built=$work
  for program in claudeops claudeops-connect; do
    CGO_ENABLED=0 go build -trimpath -buildvcs=true -ldflags='-s -w' -o "$built/$program" "./cmd/$program"
  done
fi
./deploy/packages/generate.sh "$built/claudeops"
(cd tools/release && CGO_ENABLED=0 go build -trimpath -o "$work/deb" ./deb)
mkdir -p "$(dirname "$out")"
"$work/deb" "$built" "0.0.0~$(git rev-parse --short HEAD)" "$out"
