//go:build e2e && linux

package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// becomes waits until a script's expression is true. It asks again and again from here: what waits in the page ends
// with the page, and is never heard of again.
func (d *dashboard) becomes(expression string) {
	d.Helper()
	var got any
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err := d.evaluate(chromedp.Evaluate(expression, &got)); err != nil {
			d.Fatalf("%s: %v", expression, err)
		}
		if got == true {
			return
		}
	}
	d.Fatalf("%s is %v; the page is %q and says %s", expression, got,
		d.value(`document.getElementById("status")?.textContent`), d.value(`document.querySelector("main").innerText`))
}

// loads loads a page until a script's expression is true there: lists that are shown stay as they are.
func (d *dashboard) loads(path, expression string) {
	d.Helper()
	for end := time.Now().Add(patience); ; {
		d.run(chromedp.Navigate(d.url + path))
		switch {
		case d.value(expression) == true:
			return
		case time.Now().After(end):
			d.Fatalf("%s is not true of %s: %s", expression, path, d.text())
		}
	}
}

func (d *dashboard) value(expression string) (v any) {
	d.Helper()
	if err := d.evaluate(chromedp.Evaluate(expression, &v)); err != nil {
		d.Fatal(err)
	}
	return v
}

// evaluate runs an action that evaluates a script.
func (d *dashboard) evaluate(action chromedp.Action) error {
	return d.patiently(func(ctx context.Context) error { return chromedp.Run(ctx, action) })
}

// patiently does something in the browser, and does it again where the driver still meant what the browser has
// forgotten: the page before the one that it was led to, or an element that a live update has replaced since it was
// found. Nothing was done then.
func (d *dashboard) patiently(do func(context.Context) error) error {
	const lost, most = -32000, 20 // the code of the DevTools protocol for a server's error
	for try := 1; ; try++ {
		ctx, cancel := context.WithTimeout(d.ctx, patience)
		err := do(ctx)
		cancel()
		var refused *cdproto.Error
		if try == most || !errors.As(err, &refused) || refused.Code != lost ||
			!strings.Contains(refused.Message, "context") && !strings.Contains(refused.Message, "find node") {
			return err
		}
	}
}

const statusIs = `document.getElementById("status")?.textContent === `

func TestDashboardShowsAProposalWithoutBeingLoadedAgain(t *testing.T) {
	d := newDashboard(t)
	d.history()
	d.run(chromedp.Navigate(d.url + "/changes"))
	d.becomes(statusIs + `"live"`)
	d.run(chromedp.Evaluate(`window.marker = "still the same page"`, nil),
		chromedp.SendKeys("#q", "half a wor", chromedp.ByQuery))
	if status, answer := d.propose(d.api, map[string]any{"title": "Watch the clock",
		"files": []any{file("checks/clock.md", "create", "# Clock\n")}}); status != 201 {
		t.Fatalf("%d %v", status, answer)
	}
	d.becomes(`document.querySelector("#fresh").innerText === "1 new, show"`)
	if got, _ := d.value(`document.querySelector("main .rows").innerText`).(string); strings.Contains(got, "Watch") {
		t.Errorf("the list changed under its reader: %s", got)
	}
	d.run(chromedp.Evaluate(`document.querySelector("#fresh button").click()`, nil))
	d.becomes(`document.querySelector("main").innerText.includes("Watch the clock")`)
	if got := d.value(
		`[window.marker, document.querySelector("#q").value, document.activeElement.innerText].join()`); got != "still the same page,half a wor,Watch the clock" {
		t.Errorf("after the refresh: %v", got)
	}
	if got, _ := d.value(`performance.getEntriesByType("resource").map((e) => e.name).join(" ")`).(string); strings.Contains(got, "half") || strings.Contains(got, "?q") {
		t.Errorf("the refresh sent what was typed: %s", got)
	}
	if got := d.value(
		`JSON.stringify([localStorage, sessionStorage])`); got != `[{},{"htmx-current-path-for-history":"/changes"}]` {
		t.Errorf("the browser stores %v", got)
	}
	d.quiet("a listing that follows")

	d.signIn("/", "propose", "review", "read")
	d.follows("/pulls/local/demo/home-cluster/1")
	d.run(chromedp.KeyEvent("c"), chromedp.SendKeys("#do-comment textarea", "I am still thinking", chromedp.ByQuery))
	d.refreshes(d.refuses)
	if got := d.value(`document.querySelector("#do-comment:popover-open textarea").value`); got != "I am still thinking" {
		t.Errorf("the review is %q now", got)
	}
	d.quiet("pages that follow")
}

// refused is an EventSource that the server turns away.
const refused = `window.EventSource = class {
  static CLOSED = 2;
  constructor() { this.readyState = 2; setTimeout(() => this.onerror(), 0); }
  addEventListener() {}
  close() {}
}`

func TestDashboardIsRefreshedWithoutEventsAndSaysSo(t *testing.T) {
	const token = "a-token-for-end-to-end"
	d := newDashboard(t, "CLAUDEOPS_API_TOKENS="+token)
	d.run(chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(refused).Do(ctx)
		return err
	}), chromedp.Navigate(d.url+"/sign-in?next=%2Faudit"), chromedp.SendKeys("#token", token, chromedp.ByQuery))
	d.press("main form button")
	d.becomes(statusIs + `"refreshing every 30 s"`)
	d.quiet("a page without events")

	d.run(chromedp.Evaluate(`fetch("/sign-out", {method: "POST"}).then(() => true)`, nil, awaited),
		chromedp.Evaluate(
			`htmx.ajax("GET", "/audit", {source: "#live", target: "#live", select: "#live"}).then(() => document.querySelectorAll("main h1").length)`, nil, awaited))
	if got := d.value(
		`document.querySelector("main h1").textContent + document.querySelectorAll("#token").length`); got != "Records0" {
		t.Errorf("after signing out, the page shows %v", got)
	}
}

// awaited waits for a promise.
func awaited(p *cdpruntime.EvaluateParams) *cdpruntime.EvaluateParams {
	return p.WithAwaitPromise(true)
}
