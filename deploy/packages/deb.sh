#!/usr/bin/env bash
# Makes the Debian package of a release for this machine alone, as .goreleaser.yaml describes it: a minute, where a release of all systems takes ten.
#
#   deploy/packages/deb.sh FILE.deb
set -euo pipefail
out=$(realpath -m "$1")
cd "$(dirname "$0")/../.."
programs=$(mktemp -d)
trap 'rm -rf "$programs"' EXIT

./deploy/packages/generate.sh
for program in claudeops claudeops-connect; do
  CGO_ENABLED=0 go build -trimpath -buildvcs=true -ldflags='-s -w' -o "$programs/$program" "./cmd/$program"
done
(cd tools/release && CGO_ENABLED=0 go build -trimpath -o "$programs/deb" ./deb)
mkdir -p "$(dirname "$out")"
"$programs/deb" "$programs" "0.0.0~$(git rev-parse --short HEAD)" "$out"
