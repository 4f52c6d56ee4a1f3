//go:build e2e && linux

package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

func TestDeploymentsAreAccessibleAndRolledBackByAClick(t *testing.T) {
	axe, err := os.ReadFile(installed(t, "axe-core/axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	d := newDashboard(t, "CLAUDEOPS_TOOLSETS=pr,deploy")
	w := d.world
	w.vars["CLAUDEOPS_TOOLSETS"], w.vars["CLAUDEOPS_ALLOW_WRITE"], w.vars["CLAUDEOPS_TIER"] = "pr,deploy", "true", "3"
	const header = "---\ndescription: d\n---\n"
	w.project(t, map[string]string{
		"work/.keep": "", ".agentpack/repo/a.md": header + "one\n", ".agentpack/repo/b.md": header,
		".agentpack/repo/agentpack.yaml": "version: 1\nprofiles: {default: {include_tags: [x]}, first: {include_modules: " +
			"[a]}}\ntargets: {claude_code: {scope: user}}\nmodules:\n" +
			"- {id: a, type: command, tags: [x], source: {local_path: {path: a.md}}}\n- {id: b, type: command, tags: [x], " +
			"source: {local_path: {path: b.md}}}\n",
	})
	w.deploys(t, "apply", "--yes", "--profile", "first")
	w.deploys(t, "apply", "--yes")
	w.project(t, map[string]string{".claude/commands/a.md": header + "drifted\n"})
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{390, 1200} {
			d.run(
				emulation.SetDeviceMetricsOverride(width, 800, 1, width < 500),
				emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
				chromedp.Navigate(d.url+"/deployments"),
			)
			d.examine("deployments, "+scheme, string(axe))
			if wide := d.value(`document.documentElement.scrollWidth`).(float64); int64(wide) > width {
				t.Errorf("%s, %d: the page is %.0f wide", scheme, width, wide)
			}
		}
	}
	d.picture("deployments")
	d.run(chromedp.Click(`main a.btn[href*="rollback"]`), chromedp.WaitVisible(`#yes`))
	d.picture("rollback")
	d.examine("the plan of a rollback", string(axe))
	d.run(chromedp.Click(`#yes`), chromedp.Click(`form[action$="rollback"] button`), chromedp.WaitVisible(`.answer.yes`))
	if text, err := os.ReadFile(filepath.Join(w.home, ".claude/commands/a.md")); err != nil || string(text) != header+
		"one\n" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(w.home, ".claude/commands/b.md")); err == nil {
		t.Error("b.md is still there")
	}
}
