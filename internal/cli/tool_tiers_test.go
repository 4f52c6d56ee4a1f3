package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/records/record"
)

const cacheClear = "fractary_forge_cache_clear"

// cached writes a download into the cache of definitions.
func (d *doors) cached() (file string) {
	d.Helper()
	sum := sha256.Sum256([]byte("content"))
	name := "downloads/" + hex.EncodeToString(sum[:])
	folder := filepath.Join(d.env["FRACTARY_CACHE_DIR"], "claudeops")
	if err := os.MkdirAll(filepath.Join(folder, "registries"), 0o700); err != nil {
		d.Fatal(err)
	}
	operationtest.WriteFiles(d, folder, map[string]string{"files": name + "\n", name: "content"})
	return filepath.Join(folder, name)
}

// rows are the attempts of an action that the audit has, newest first.
func (d *doors) rows(action string) (out []record.RecordedAttempt) {
	d.Helper()
	all, err := d.app("", new(bytes.Buffer)).program().Wire(app.Needs{}).Store.Audit.Page(d.Context(),
		record.AuditQuery{Limit: 100})
	if err != nil {
		d.Fatal(err)
	}
	for _, row := range all {
		if row.Action == action {
			out = append(out, row)
		}
	}
	return out
}

func (d *doors) policy(text string) {
	d.Helper()
	d.env["CLAUDEOPS_POLICY"] = filepath.Join(d.TempDir(), "rules.yaml")
	if err := os.WriteFile(d.env["CLAUDEOPS_POLICY"], []byte("version: 1\n"+text), 0o600); err != nil {
		d.Fatal(err)
	}
}

func TestThePolicyRaisesTheTierOfAToolAtEveryWayIn(t *testing.T) {
	t.Parallel()
	var clear operation.Operation
	for _, o := range operation.List(new(app.App).Toolsets()...) {
		if o.Name == cacheClear {
			clear = o
		}
	}
	ways := map[string]func(*doors) outcome{
		"mcp":  func(d *doors) outcome { return d.throughMCP(clear, `{}`) },
		"cli":  func(d *doors) outcome { return d.throughCLI(clear, `{}`) },
		"rest": func(d *doors) outcome { o, _ := d.throughREST(clear, `{}`); return o },
	}
	for door, call := range ways {
		for _, c := range []struct {
			tier, tools string
			refused     bool
		}{
			{"2", "", false},
			{"2", "tools: {tiers: {fractary_forge_cache_clear: 3}}\n", true},
			{"3", "tools: {tiers: {fractary_forge_cache_clear: 3}}\n", false},
			{"1", "tools: {tiers: {fractary_forge_cache_clear: 2}}\n", true},
			{"2", "tools: {tiers: {fractary_forge_cache_clear: 2, fractary_forge_cache_stats: 3}}\n", false},
		} {
			d := newDoors(t)
			d.env["CLAUDEOPS_TIER"], d.env["FRACTARY_CACHE_DIR"] = c.tier, d.TempDir()
			d.policy(c.tools)
			file := d.cached()
			got := call(d)
			_, gone := os.Stat(file)
			if refused := strings.Contains(got.Form, "PERMISSION_DENIED"); refused != c.refused ||
				os.IsNotExist(gone) == c.refused {
				t.Errorf("%s, tier %s, %q: %s; the file of the cache: %v", door, c.tier, c.tools, got.Form, gone)
			}
			rows := d.rows(cacheClear)
			if len(rows) != 1 || (rows[0].Code == fault.TierDenied) != c.refused {
				t.Errorf("%s, tier %s, %q: recorded as %+v", door, c.tier, c.tools, rows)
			}
		}
	}
}

func TestAToolThatReadsCanBeKeptForAHigherTier(t *testing.T) {
	t.Parallel()
	d := newDoors(t)
	d.env["CLAUDEOPS_TIER"] = "1"
	d.policy("tools: {tiers: {fractary_forge_cache_stats: 2}}\n")
	for _, o := range operation.List(new(app.App).Toolsets()...) {
		if o.Name != "fractary_forge_cache_stats" {
			continue
		}
		if got := d.throughMCP(o, `{}`); !strings.Contains(got.Form, "PERMISSION_DENIED") {
			t.Errorf("not refused: %+v", got)
		}
	}
	if rows := d.rows("fractary_forge_cache_stats"); len(rows) != 1 || rows[0].Code != fault.TierDenied {
		t.Errorf("recorded as %+v", rows)
	}
}
