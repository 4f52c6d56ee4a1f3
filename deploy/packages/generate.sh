#!/usr/bin/env bash
# Makes what the packages hold beside the program, in dist-files: manual pages, completions, licences of others, the systemd unit with the path
# of the packages, and the Dockerfile with the programs of the release. goreleaser runs it first; see .goreleaser.yaml.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=dist-files
rm -rf "$out"
mkdir -p "$out/man" "$out/completions"

program=$(mktemp -d)
trap 'rm -rf "$program"' EXIT
# For this machine, whatever the release is built for.
env -u GOOS -u GOARCH CGO_ENABLED=0 go build -trimpath -o "$program/claudeops" ./cmd/claudeops
run() { env -i HOME="$program" PATH="$PATH" "$program/claudeops" "$@"; }

run completion bash > "$out/completions/claudeops.bash"
run completion zsh > "$out/completions/_claudeops"
run completion fish > "$out/completions/claudeops.fish"

env -u GOOS -u GOARCH CGO_ENABLED=0 go run -trimpath ./deploy/packages/man "$out/man"
gzip -9 -n "$out"/man/*.1

env -u GOOS -u GOARCH go run -trimpath ./deploy/packages/notices "$out/THIRD_PARTY_NOTICES.txt"

sed -e 's,/usr/local/bin/claudeops,/usr/bin/claudeops,' deploy/claudeops.service > "$out/claudeops.service"
sed -f deploy/packages/dockerfile.sed Dockerfile > "$out/Dockerfile"
