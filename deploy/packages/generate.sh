#!/usr/bin/env bash
# Makes what the packages hold beside the program, in dist-files: manual pages, completions, licences of others, the systemd unit with the path
# of the packages, and the Dockerfile with the programs of the release. goreleaser runs it first; see .goreleaser.yaml. A program of this source
# that was built for this machine may be given.
#
#   deploy/packages/generate.sh [PROGRAM]
set -euo pipefail
program=${1:+$(realpath "$1")}
cd "$(dirname "$0")/../.."
out=dist-files
rm -rf "$out"
mkdir -p "$out/man" "$out/completions"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "$program" ]; then
  program=$work/claudeops
  # For this machine, whatever the release is built for.
  env -u GOOS -u GOARCH CGO_ENABLED=0 go build -trimpath -o "$program" ./cmd/claudeops
fi
run() { env -i HOME="$work" PATH="$PATH" "$program" "$@"; }

run completion bash > "$out/completions/claudeops.bash"
run completion zsh > "$out/completions/_claudeops"
run completion fish > "$out/completions/claudeops.fish"

(
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
  export SOURCE_DATE_EPOCH
  cd tools/man && env -u GOOS -u GOARCH CGO_ENABLED=0 go run -trimpath . "../../$out/man"
)
gzip -9 -n "$out"/man/*.1

env -u GOOS -u GOARCH go run -trimpath ./deploy/packages/notices "$out/THIRD_PARTY_NOTICES.txt"

sed -e 's,/usr/local/bin/claudeops,/usr/bin/claudeops,' deploy/claudeops.service > "$out/claudeops.service"
sed -f deploy/packages/dockerfile.sed Dockerfile > "$out/Dockerfile"
