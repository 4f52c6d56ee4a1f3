#!/bin/sh
# What a session's CLI waits for: from the spawn of the connector to the answer of tools/list, through the session's own door, and the connector's
# memory. A script plays the CLI and measures. usage: bench/connect.sh BINARY SPAWN [NAME=COMMAND...]
#
# Other servers are measured in turn with it, with SPAWN_ENV=NAME=VALUE in their environment. There is no boundary, so that the script may run them.
set -eu
binary=$(realpath "$1") spawn=$(realpath "$2")
shift 2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for other; do echo "$other"; done > "$scratch/others"
cat > "$scratch/claude" <<'CLI'
#!/bin/sh
[ "$1" = --version ] && { echo "2.1.329 (Claude Code)"; exit 0; }
cat >/dev/null
while [ $# -gt 0 ]; do
    case $1 in --mcp-config) config=$2;; esac
    shift
done
entry() { sed "s/.*\"$1\":\(\[[^]]*\]\|\"[^\"]*\"\).*/\1/; s/[]\",[]/ /g" "$config"; }
set -- "connector=$(entry command) $(entry args)" "claudeops=$BINARY mcp-server"
while read -r other; do set -- "$@" "$other"; done < "$SCRATCH/others"
"$SPAWN" -n "$ROUNDS" -env "${SPAWN_ENV:-}" "$@" > "$SCRATCH/table" 2>&1
echo '{"type":"system","subtype":"init","mcp_servers":[{"name":"claudeops","status":"connected"}]}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"done","num_turns":1,"total_cost_usd":0}'
CLI
chmod +x "$scratch/claude"
BINARY=$binary SPAWN=$spawn SCRATCH=$scratch ROUNDS=${ROUNDS:-100} SPAWN_ENV=${SPAWN_ENV:-} CLAUDEOPS_AGENT_ENV=BINARY,SPAWN,SCRATCH,ROUNDS,SPAWN_ENV \
  CLAUDEOPS_BOUNDARY=none CLAUDEOPS_STATE_DIR="$scratch/state" CLAUDEOPS_CLAUDE_BIN="$scratch/claude" CLAUDEOPS_TIER=2 "$binary" run --tier 2 > "$scratch/run" 2>&1 || cat "$scratch/run"
cat "$scratch/table"
