//go:build e2e && linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// barrier is what axe-core says of a rule that does not hold.
type barrier struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

func (v barrier) String() string {
	text := fmt.Sprintf("%s (%s): %s", v.ID, v.Impact, v.Help)
	for _, n := range v.Nodes {
		text += fmt.Sprintf("\n    %.200s\n    %s", n.HTML, strings.ReplaceAll(n.FailureSummary, "\n", " "))
	}
	return text
}

// examine runs axe-core on the page that is shown.
func (d *dashboard) examine(about, axe string) {
	d.Helper()
	var found string
	d.run(chromedp.Evaluate(axe+"; 0", nil), chromedp.Evaluate(
		`axe.run(document, {resultTypes: ["violations"]}).then((r) => JSON.stringify(r.violations))`, &found, awaited))
	var violations []barrier
	if err := json.Unmarshal([]byte(found), &violations); err != nil {
		d.Fatalf("%s: %v in %s", about, err, found)
	}
	for _, v := range violations {
		if v.Impact == "serious" || v.Impact == "critical" {
			d.Errorf("%s: %s", about, v)
		} else {
			d.Logf("%s: %s", about, v)
		}
	}
}

func TestDashboardIsAccessible(t *testing.T) {
	axe, err := os.ReadFile(installed(t, "axe-core/axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{390, 1200} {
			t.Run(fmt.Sprintf("%s %d", scheme, width), func(t *testing.T) {
				d := newDashboard(t)
				addresses := append(d.history(), "/tokens", "/tokens/people", "/nothing", "/docs")
				d.run(
					emulation.SetDeviceMetricsOverride(width, 800, 1, width < 500),
					emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme",
						Value: scheme}}),
				)
				for _, address := range addresses {
					d.run(chromedp.Navigate(d.url + address))
					d.examine(address, string(axe))
				}
			})
		}
	}
}

// The evaluation of a test is not the page's: a page that loses its scripts must still be read to its end.
func TestDashboardIsReadWithoutJavaScript(t *testing.T) {
	d := newDashboard(t)
	addresses := d.history()
	shown := func() map[string]string {
		pages := map[string]string{}
		for _, address := range addresses {
			var main string
			d.run(chromedp.Navigate(d.url+address), chromedp.Text("main", &main, chromedp.ByQuery))
			pages[address] = main
		}
		return pages
	}
	with := shown()
	d.quiet("with scripts")
	d.run(emulation.SetScriptExecutionDisabled(true))
	for address, text := range shown() {
		if len(text) < 50 || len(text) < len(with[address])*9/10 {
			t.Errorf("%s: %d characters without scripts, %d with them", address, len(text), len(with[address]))
		}
	}
	d.quiet("without scripts")
}

func TestDashboardByKeyboard(t *testing.T) {
	d := newDashboard(t)
	d.history()
	d.run(chromedp.Navigate(d.url + "/changes"))
	var order []string
	for range 17 {
		d.run(chromedp.KeyEvent(kb.Tab))
		name, _ := d.value(`document.activeElement.textContent.trim() || document.activeElement.id`).(string)
		order = append(order, name)
	}
	// as it is seen
	const want = "Skip to content, Claude Ops, Overview, Changes, Agents, Records, Settings, Healthy, OYou are " +
		"operator, Ask the forges now, All 3, Waiting for you 2, With the agent 0, Refused 1, Merged 0, Closed 0, q"
	if got := strings.Join(order, ", "); got != want {
		t.Errorf("the focus goes %s; want %s", got, want)
	}
	d.run(chromedp.Navigate(d.url+"/changes"), chromedp.KeyEvent(kb.Tab))
	if got := d.value(`document.activeElement.getBoundingClientRect().left >= 0`); got != true {
		t.Error("the link to the content is not seen when it has the focus")
	}
	d.run(chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Tab))
	if got := d.value(`document.activeElement.textContent.trim()`); got != "Ask the forges now" {
		t.Errorf("after skipping, the focus goes to %v", got)
	}
}
