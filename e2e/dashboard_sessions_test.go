//go:build e2e && linux

package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// waitingAgent is a CLI that says something, waits until the file beside it exists, says something else, and goes on
// until it is ended.
const waitingAgent = `#!/bin/sh
[ "$1" = --version ] && { echo "2.1.329 (Claude Code)"; exit 0; }
cat > /dev/null
echo '{"type":"system","subtype":"init","mcp_servers":[{"name":"claudeops","status":"connected"}]}'
echo '{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"I am <b>looking</b>."},{"type":"tool_use","name":"Read","input":{"file_path":"/repos/a"}}]}}'
while [ ! -e "$0.go" ]; do sleep 0.1; done
echo '{"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"The disk is full."}]}}'
while :; do sleep 1; done
`

func TestDashboardFollowsASessionAndStopsIt(t *testing.T) {
	agent := filepath.Join(t.TempDir(), "claude")
	writeProgram(t, agent, waitingAgent)
	d := newDashboard(t, "CLAUDEOPS_CLAUDE_BIN="+agent)
	d.signIn("/sessions", "read", "operate")
	d.run(chromedp.Click(`button[popovertarget="start"]`, chromedp.ByQuery),
		chromedp.SendKeys("#note", "Look at the disk.", chromedp.ByQuery))
	d.press(`form[action="/sessions"][method="post"] button:not([type])`)
	d.becomes(statusIs + `"live"`)
	d.run(chromedp.Evaluate(`window.marker = "still the same page"`, nil))
	d.becomes(`document.querySelector("main").innerText.includes("I am <b>looking</b>.")`)
	if err := os.WriteFile(agent+".go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d.becomes(
		`document.querySelector("main").innerText.includes("The disk is full.") && document.querySelector("main").innerText.includes("2, with 1 tool call")`)
	if got := d.value(`window.marker`); got != "still the same page" {
		t.Errorf("the page was loaded again: %v", got)
	}
	d.shoot("session-runs")
	d.press(`form[action$="/stop"] button`)
	d.becomes(`document.querySelector("main").innerText.includes("A person stopped it")`)
	d.says("Stopped", "Look at the disk.", "Read")
	d.run(chromedp.Navigate(d.url + "/sessions"))
	d.says("Tier 1, by ann", "Stopped")
	d.shoot("sessions")
}

// shoot keeps pictures of the page, and fails if it is wider than the window or axe-core finds a barrier, in both
// schemes and on a phone.
func (d *dashboard) shoot(name string) {
	d.Helper()
	axe, err := os.ReadFile(installed(d.T, "axe-core/axe.min.js"))
	if err != nil {
		d.Fatal(err)
	}
	d.picture(name)
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{390, 1200} {
			var wide int64
			d.run(
				emulation.SetDeviceMetricsOverride(width, 800, 1, width < 500),
				emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
				chromedp.Evaluate(`document.documentElement.scrollWidth`, &wide),
			)
			if wide > width {
				d.Errorf("%s %s: %d wide in a window of %d", name, scheme, wide, width)
			}
			d.examine(name, string(axe))
		}
	}
}
