//go:build e2e && linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// becomes waits until a script's expression is true. It asks again and again from here: what waits in the page ends
// with the page, and is never heard of again.
func (d *dashboard) becomes(expression string) {
	d.Helper()
	var got any
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		err := d.evaluate(evaluated(expression, &got))
		var refused *cdproto.Error
		if errors.As(err, &refused) && strings.Contains(refused.Message, "navigated") {
			continue // a redirect led to another page while this one was asked
		}
		if err != nil {
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
	must.Do(d, d.evaluate(evaluated(expression, &v)))
	return v
}

// evaluate runs an action that evaluates a script.
func (d *dashboard) evaluate(action step) error {
	return d.patiently(func(ctx context.Context) error { return chromedp.Do(ctx, action) })
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
	d.run(executed(`window.marker = "still the same page"`),
		chromedp.SendKeys(chromedp.CSS("#q"), "half a wor"))
	if status, answer := d.propose(d.api, map[string]any{"title": "Watch the clock",
		"files": []any{file("checks/clock.md", "create", "# Clock\n")}}); status != 201 {
		t.Fatalf("%d %v", status, answer)
	}
	d.becomes(`document.querySelector("#fresh").innerText === "1 new, show"`)
	if got, _ := d.value(`document.querySelector("main .rows").innerText`).(string); strings.Contains(got, "Watch") {
		t.Errorf("the list changed under its reader: %s", got)
	}
	d.run(executed(`document.querySelector("#fresh button").click()`))
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
	d.run(chromedp.KeyEvent("c"), chromedp.SendKeys(chromedp.CSS("#do-comment textarea"), "I am still thinking"))
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
	d.run(commanded(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: refused}),
		chromedp.Navigate(d.url+"/sign-in?next=%2Faudit"), chromedp.SendKeys(chromedp.CSS("#token"), token))
	d.press("main form button")
	d.becomes(statusIs + `"refreshing every 30 s"`)
	d.quiet("a page without events")

	d.run(executed(`fetch("/sign-out", {method: "POST"}).then(() => true)`, chromedp.EvalAwaitPromise),
		executed(`htmx.ajax("GET", "/audit", {source: "#live", target: "#live", select: "#live"}).then(() => document.querySelectorAll("main h1").length)`, chromedp.EvalAwaitPromise))
	if got := d.value(
		`document.querySelector("main h1").textContent + document.querySelectorAll("#token").length`); got != "Records0" {
		t.Errorf("after signing out, the page shows %v", got)
	}
}

// follows opens a page and waits until it is told of changes.
func (d *dashboard) follows(address string) {
	d.Helper()
	d.run(chromedp.Navigate(d.url + address))
	d.becomes(statusIs + `"live"`)
	d.run(executed(`window.refreshed = 0; document.addEventListener("htmx:afterRequest", () => { window.refreshed++; });`))
}

// refreshes does what leaves a record, and waits until the page has taken it over.
func (d *dashboard) refreshes(record func()) {
	d.Helper()
	before := d.value(`window.refreshed`)
	record()
	d.becomes(fmt.Sprintf(`window.refreshed > %v`, before))
}

// proposes opens a pull request.
func (d *dashboard) proposes(name string) {
	d.Helper()
	if status, answer := d.propose(d.api, map[string]any{"title": "Watch the " + name,
		"files": []any{file("checks/"+name+".md", "create", "# "+name+"\n")}}); status != 201 {
		d.Fatalf("%d %v", status, answer)
	}
}

// refuses has a proposal refused.
func (d *dashboard) refuses() {
	d.Helper()
	d.propose(d.api, map[string]any{"files": []any{file("Dockerfile", "create", "x")}})
}

// The focus in a list is kept, and the list stays as it is until the person wants to see what is new.
func TestDashboardHoldsAListThatIsRead(t *testing.T) {
	d := newDashboard(t)
	d.history()
	for i, page := range []struct{ address, list, numbers string }{
		{"/", "#waits", `document.querySelector(".strip strong").innerText`},
		{"/", "#did", `document.querySelector(".strip strong").innerText`},
		{"/changes", "#live", `document.querySelector(".tabs .count").innerText`},
		{"/audit", "#live", `document.querySelector("#live-verified").id`},
	} {
		d.follows(page.address)
		d.run(executed(fmt.Sprintf(`
			window.list = () => document.querySelector("%s");
			window.link = [...window.list().querySelectorAll("a")].at(-1);
			window.link.focus();
			scrollTo({top: 120, behavior: "instant"});
			window.was = {top: window.link.getBoundingClientRect().top, text: window.list().innerText.replace(/\d+ (s|min)/g, "age"), numbers: %s}`,
			page.list, page.numbers)))
		d.refreshes(func() { d.proposes(fmt.Sprintf("thing-%d", i)) })
		d.becomes(`/^[1-3] new, show$/.test(document.querySelector("[role=status]#fresh").innerText)`)
		if got := d.value(`[document.activeElement === window.link, window.link.isConnected,
			window.link.getBoundingClientRect().top === window.was.top,
			window.list().innerText.replace(/\d+ (s|min)/g, "age") === window.was.text].join()`); got != "true,true,true,true" {
			t.Errorf("%s: has the focus, is there, at the same place, in the same list: %v", page.address, got)
		}
		if got, was := d.value(page.numbers), d.value(`window.was.numbers`); got == was && page.address != "/audit" {
			t.Errorf("%s: the number is %v still", page.address, got)
		}
		d.run(chromedp.KeyEvent("n"))
		d.becomes(`document.querySelector("#fresh").innerText === ""`)
		if got := d.value(`document.activeElement === document.querySelector("#live :is(tbody > tr, .list > li) a") &&
			document.querySelector("main").innerText.includes("Watch the thing")`); got != true {
			t.Errorf("%s: after showing what is new, the focus is on %v", page.address,
				d.value(`document.activeElement.outerHTML`))
		}
		d.quiet(page.address)
	}
}

// A list without a reader, since the page was not visible or the list is empty, shows what is new at once.
func TestDashboardShowsWhatIsNewWhereNobodyReads(t *testing.T) {
	d := newDashboard(t)
	d.follows("/changes")
	d.refreshes(func() { d.proposes("first") })
	d.becomes(`document.querySelector("#live").innerText.includes("Watch the first")`)
	d.refreshes(func() { d.proposes("second") })
	d.becomes(`document.querySelector("#fresh").innerText === "1 new, show"`)
	d.run(executed(`
		Object.defineProperty(document, "hidden", {value: true, configurable: true});
		document.dispatchEvent(new Event("visibilitychange"));
		Object.defineProperty(document, "hidden", {value: false});
		document.dispatchEvent(new Event("visibilitychange"))`))
	d.becomes(`document.querySelector("#live").innerText.includes("Watch the second")`)
	d.becomes(`document.querySelector("#fresh").innerText === ""`)
	d.quiet("coming back")
}

// What is not a list is brought up to date in its place: the focus, marked text, what is open and the scroll position
// stay.
func TestDashboardKeepsWhatIsRead(t *testing.T) {
	d := newDashboard(t)
	addresses := d.history()
	for _, address := range append(addresses[4:8:8], "/pulls/local/demo/home-cluster/1", "/", "/changes", "/audit") {
		d.follows(address)
		d.run(executed(`
			window.fold = document.querySelector("[data-live] details");
			if (window.fold) window.fold.open = !window.fold.open;
			window.stop = [...document.querySelectorAll("[data-live] :is(a, summary, button)")].at(-1);
			window.stop?.focus();
			getSelection().selectAllChildren(document.querySelector("[data-live] :is(h1, th, .t, strong)"));
			scrollTo({top: 90, behavior: "instant"});
			window.was = {marked: getSelection().toString(), fold: window.fold?.open, at: scrollY}`))
		d.refreshes(d.refuses)
		if got := d.value(`[document.activeElement === (window.stop ?? document.body), getSelection().toString() === window.was.marked,
			window.was.marked !== "", window.fold?.open === window.was.fold, window.fold?.isConnected ?? true, scrollY === window.was.at].join()`); got != "true,true,true,true,true,true" {
			t.Errorf("%s: the focus, the marked text, any, what is open, is there, the scroll position: %v", address, got)
		}
		d.quiet(address)
	}
}

// stops lists the elements that the focus goes through on the page of all changes.
const stops = "Skip to content, Claude Ops, Overview, Changes 2 waiting, Agents, Records, Settings, live-health, OYou are " +
	"operator, Ask the forges now, All N, Waiting for you N, With the agent N, Refused N, Merged N, Closed N, q, repo, " +
	"caller, code, since, Filter"

// The focus goes through a page in the order in which it is seen, also while records come in.
func TestDashboardByKeyboardWhileRecordsComeIn(t *testing.T) {
	d := newDashboard(t)
	d.history()
	pressed, ended := make(chan struct{}, 1), make(chan struct{})
	d.follows("/changes")
	d.run(chromedp.KeyEvent(kb.Tab))
	if got := d.value(`document.activeElement.getBoundingClientRect().left >= 0`); got != true {
		t.Error("the link to the content is not seen when it has the focus")
	}
	d.run(chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Tab))
	if got := d.value(`document.activeElement.textContent.trim()`); got != "Ask the forges now" {
		t.Errorf("after skipping, the focus goes to %v", got)
	}
	go func() {
		defer close(ended)
		for range pressed {
			d.refuses()
		}
	}()
	pressed <- struct{}{}
	d.becomes(`document.querySelector("#fresh").innerText !== ""`)
	for round, refreshed := 0, 0.0; round < 3 || refreshed < 3; round++ {
		d.run(executed(`document.querySelector("#fresh").replaceChildren();
			document.querySelector(".skip").focus()`))
		order := []string{"Skip to content"}
		for len(order) < strings.Count(stops, ", ")+1 {
			select {
			case pressed <- struct{}{}:
			default: // one is on its way
			}
			d.run(chromedp.KeyEvent(kb.Tab))
			name, _ := d.value(`document.activeElement.closest("#fresh") ? "" :
				document.activeElement.id || document.activeElement.textContent.trim().replace(/[\d,]+$/, "N")`).(string)
			if name != "" { // the notice comes when it comes
				order = append(order, name)
			}
		}
		if got := strings.Join(order, ", "); got != stops {
			t.Fatalf("round %d: the focus goes %s; want %s", round, got, stops)
		}
		refreshed, _ = d.value(`window.refreshed`).(float64)
	}
	close(pressed)
	<-ended
}
