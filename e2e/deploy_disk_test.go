//go:build e2e && linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fullDisk mounts a file system of 1 MiB over a folder, in a name space of its own, fills it up to so many KiB, and
// deploys and rolls back with it; the folder's files come along.
const fullDisk = `set -u
mkdir -p "$FULL" "$KEPT"; cp -a "$FULL/." "$KEPT/"; mount -t tmpfs -o size=1m,mode=755 none "$FULL"; cp -a "$KEPT/." "$FULL/"
find "$WORK" "$CODEX" -type f -not -path '*/state/*' -exec sha256sum {} + | sort > "$KEPT.before"
head -c 2000000 /dev/zero > "$FULL/.filler" 2>/dev/null
"$PROGRAM" deploy apply --yes --json && echo "APPLIED on a full disk"
find "$WORK" "$CODEX" -type f -not -path '*/state/*' -not -name .filler -exec sha256sum {} + | sort > "$KEPT.after"
cmp "$KEPT.before" "$KEPT.after" || echo "CHANGED by a deployment that failed"
rm "$FULL/.filler"
"$PROGRAM" deploy apply --yes --json > "$KEPT.first" || { cat "$KEPT.first"; echo "NOT APPLIED with room"; }
first=$(sed -n 's/.*"snapshot_id": "\([0-9]*\)".*/\1/p' "$KEPT.first")
cp "$NEXT" "$MODULE"
"$PROGRAM" deploy apply --yes --json > /dev/null || echo "NOT APPLIED again"
find "$WORK" "$CODEX" -type f -not -path '*/state/*' -exec sha256sum {} + | sort > "$KEPT.before"
head -c 2000000 /dev/zero > "$FULL/.filler" 2>/dev/null
"$PROGRAM" deploy rollback --yes --to "$first" --json && echo "ROLLED BACK on a full disk"
find "$WORK" "$CODEX" -type f -not -path '*/state/*' -not -name .filler -exec sha256sum {} + | sort > "$KEPT.after"
cmp "$KEPT.before" "$KEPT.after" || echo "CHANGED by a rollback that failed"
rm "$FULL/.filler"
"$PROGRAM" deploy rollback --yes --to "$first" --json > /dev/null || echo "NOT ROLLED BACK with room"
cmp "$CODEX/AGENTS.md" "$ORIGINAL" || echo "OTHER bytes after the rollback"
echo finished
`

// TestAFullDiskChangesNothing fills a real file system: that of the targets, and that of the state.
func TestAFullDiskChangesNothing(t *testing.T) {
	for name, full := range map[string]string{"of the targets": ".codex", "of the state": ".agentpack/state"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "3")
			text := strings.Repeat("Never restart the kitchen host.\n", 6000)
			w.project(t, map[string]string{
				"work/.keep": "", ".codex/config.toml": "model = \"gpt-5\"\n", ".agentpack/state/.keep": "", "next.md": "Short.\n",
				"original.md": text,
				".agentpack/repo/agentpack.yaml": "version: 1\nprofiles: {default: {include_tags: [base]}}\ntargets: " +
					"{codex: {scope: user}}\nmodules:\n  - {id: rules, type: instructions, tags: [base], source: {local_path: " +
					"{path: modules/rules}}}\n",
				".agentpack/repo/modules/rules/AGENTS.md": text,
			})
			in := func(name string) string { return filepath.Join(w.home, filepath.FromSlash(name)) }
			w.vars["CLAUDEOPS_TOOLSETS"], w.vars["CLAUDEOPS_ALLOW_WRITE"] = "pr,deploy", "true"
			args := []string{"--mount", "sh", "-c", fullDisk}
			if os.Geteuid() != 0 {
				args = append([]string{"--user", "--map-root-user"}, args...)
			}
			got := run(t, program{path: "/usr/bin/unshare", args: args, dir: in("work"), env: w.environment(
				"PROGRAM="+claudeops(t), "FULL="+in(full), "KEPT="+in("kept"), "WORK="+in("work"), "CODEX="+in(".codex"),
				"NEXT="+in("next.md"),
				"MODULE="+in(".agentpack/repo/modules/rules/AGENTS.md"), "ORIGINAL="+in("original.md"))})
			if got.code != 0 || !strings.HasSuffix(got.stdout, "finished\n") ||
				strings.Count(got.stdout, "no space left on device") != 2 {
				t.Errorf("exit %d\n%s%s", got.code, got.stdout, got.stderr)
			}
			for _, bad := range []string{"APPLIED", "CHANGED", "ROLLED BACK", "OTHER", "mount:"} {
				if strings.Contains(got.stdout+got.stderr, bad) {
					t.Errorf("%s", got.stdout)
				}
			}
		})
	}
}
