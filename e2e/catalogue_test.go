//go:build e2e && linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// project writes files below the folder that the server works in.
func (w *world) project(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(w.home, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// agentDefinition is a sound agent with one more line.
func agentDefinition(name, version, more string) string {
	return "name: " + name + "\ntype: agent\ndescription: The agent " + name +
		"\nllm: {provider: anthropic, model: claude-sonnet}\ntools: []\nversion: " +
		version + "\ntags: [demo]\nsystem_prompt: Do it.\n" + more + "\n"
}

func definitionsOfADemo() map[string]string {
	return map[string]string{
		".fractary/agents/base.yaml":   agentDefinition("base", "1.0.0", ""),
		".fractary/agents/child.yaml":  agentDefinition("child", "1.1.0", "extends: base"),
		".fractary/agents/orphan.yaml": agentDefinition("orphan", "1.0.0", "extends: nobody"),
		".fractary/agents/broken.yaml": "name: broken\n\tversion: 1\n",
		".fractary/agents/fork.yaml": agentDefinition("fork", "1.0.0",
			"fork_of: {name: team, version: 1.0.0}"),
		".fractary/registry/agents/team@1.0.0/agent.yaml": agentDefinition("team", "1.0.0", ""),
		".fractary/registry/agents/team@2.0.0/agent.yaml": agentDefinition("team", "2.0.0", ""),
		".fractary/agents/a-long-name-for-narrow-pages.yaml": agentDefinition("a-long-name-for-narrow-pages", "1.0.0",
			"extra: 1"),
	}
}

func TestCatalogueIsAccessible(t *testing.T) {
	axe, err := os.ReadFile(installed(t, "axe-core/axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	d := newDashboard(t, "CLAUDEOPS_TOOLSETS=pr,definitions")
	d.world.project(t, definitionsOfADemo())
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{390, 1200} {
			d.run(
				emulation.SetDeviceMetricsOverride(width, 800, 1, width < 500),
				emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
			)
			for _, address := range []string{
				"/catalogue", "/catalogue?broken=1", "/catalogue/forks", "/catalogue/definitions/agent/child",
				"/catalogue/definitions/agent/orphan",
				"/catalogue/definitions/agent/fork",
			} {
				about := fmt.Sprintf("%s, %s, %d wide", address, scheme, width)
				d.run(chromedp.Navigate(d.url + address))
				d.examine(about, string(axe))
				if wide := d.value(`document.documentElement.scrollWidth`).(float64); int64(wide) > width {
					t.Errorf("%s: the page is %.0f wide", about, wide)
				}
				if found := d.value(`document.querySelector("nav [aria-current]").textContent`); found != "Procedures" {
					t.Errorf("%s: the navigation shows %v", about, found)
				}
			}
		}
	}
	for name, address := range map[string]string{"catalogue": "/catalogue",
		"definition": "/catalogue/definitions/agent/child",
		"forks":      "/catalogue/forks"} {
		d.run(chromedp.Navigate(d.url + address))
		d.picture(name)
	}
	d.quiet("the catalogue")
}
