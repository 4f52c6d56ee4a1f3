#!/usr/bin/env bash
# The benchmarks of docs/explain/benchmarks.md. usage: bench/run.sh BINARY
set -euo pipefail
cd "$(dirname "$0")/.."
binary=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

go version
uname -srm
grep -m1 'model name' /proc/cpuinfo || true
nproc

echo; echo "## From spawn to the answer of tools/list, and memory"
go build -ldflags='-s -w' -o "$scratch/baseline" ./bench/baseline
go build -o "$scratch/spawn" ./bench/spawn
ls -l "$binary" "$scratch/baseline" | awk '{printf "%s %.1f MB\n", $NF, $5/1e6}' | sed "s#$scratch/##; s#.*/bin/#bin/#"
"$scratch/spawn" -n 100 "claudeops=$binary mcp-server" "baseline=$scratch/baseline"

echo; echo "## The same through a session's door, with the connector beside the binary"
bench/connect.sh "$binary" "$scratch/spawn"

echo; echo "## claudeops serve over 100,000 attempts"
go build -o "$scratch/http" ./bench/http
"$scratch/http" "$binary"

echo; echo "## JSON that is made to cost time: processor time for a mebibyte"
go test -run '^$' -bench Hostile -benchtime 20x ./internal/base/strictjson ./internal/mcpserver/stdio ./internal/web | grep -E '^(Benchmark|pkg:)'

echo; echo "## The use case, the local provider, the records, the stdio loop"
go test -run '^$' -bench . -benchmem ./internal/cli ./internal/proposals/prflow ./internal/records/store ./internal/mcpserver/stdio \
  ./internal/base/textscan ./internal/testkit/resilience | grep -E '^(Benchmark|pkg:)'
