//go:build e2e && linux

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// focusProblem says why a person does not see where the focus is; "" if they do.
const focusProblem = `(() => {
	const e = document.activeElement;
	if (!e || e === document.body || e === document.documentElement) return "nothing has the focus";
	const name = e.id || e.textContent.trim().slice(0, 40) || e.outerHTML.slice(0, 80);
	const s = getComputedStyle(e), r = e.getBoundingClientRect();
	if (!e.matches(":focus-visible")) return name + ": the browser draws no focus";
	const drawn = (of) => of.outlineStyle !== "none" && parseFloat(of.outlineWidth) >= 2;
	if (!drawn(s) && s.boxShadow === "none" && !drawn(getComputedStyle(e, "::before"))) return name + ": no ring";
	const left = Math.max(0, r.left), right = Math.min(innerWidth, r.right);
	const top = Math.max(0, r.top), bottom = Math.min(innerHeight, r.bottom);
	if (right - left < 1 || bottom - top < 1) return name + ": out of the window";
	const over = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
	const on = over && (e.contains(over) || over.contains(e));
	if (!on) return name + ": below " + (over ? over.outerHTML.slice(0, 80) : "nothing");
	return "";
})()`

// typist acts with the keyboard alone.
type typist struct{ *dashboard }

// most is the number of stops after which something counts as out of the keyboard's reach.
const most = 150

// sees fails the test unless the element has the focus, and it is seen there.
func (p typist) sees(selector string) {
	p.Helper()
	p.becomes(fmt.Sprintf(`document.activeElement?.matches(%q)`, selector))
	p.shown(selector)
}

// shown fails the test unless a person sees where the focus is, once the page has scrolled there and is drawn.
func (p typist) shown(about string) {
	p.Helper()
	why := ""
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if why, _ = p.value(focusProblem).(string); why == "" {
			return
		}
	}
	p.Fatalf("%s: %s", about, why)
}

// goes presses Tab until the element has the focus. At each stop the focus must be seen.
func (p typist) goes(selector string) {
	p.Helper()
	for range most {
		p.run(chromedp.KeyEvent(kb.Tab))
		if p.value(`document.activeElement === document.body`) == true {
			continue // between the last stop of the page and the first
		}
		p.shown("on the way to " + selector)
		if p.value(fmt.Sprintf(`document.activeElement.matches(%q)`, selector)) == true {
			return
		}
	}
	p.Fatalf("%d presses of Tab do not lead to %s", most, selector)
}

// follows goes to what leads to another page, and presses Enter there.
func (p typist) follows(selector string) {
	p.Helper()
	p.goes(selector)
	p.enters(selector)
}

// enters presses Enter, which leads to another page.
func (p typist) enters(about string) {
	p.Helper()
	p.leads(about, chromedp.KeyEvent(kb.Enter))
}

// opens goes to what opens a sheet or a menu, and opens it.
func (p typist) opens(selector, sheet string) {
	p.Helper()
	p.goes(selector)
	p.run(chromedp.KeyEvent(kb.Enter))
	p.becomes(fmt.Sprintf(`document.querySelector(%q).matches(":popover-open")`, sheet))
}

// acts opens the sheet of an act on a change, writes and sends it.
func (p typist) acts(button, verb, words, done string) {
	p.Helper()
	sheet := "#do-" + verb
	p.opens(button, sheet)
	p.sees(sheet + " textarea")
	if words != "" {
		p.run(chromedp.KeyEvent(words))
	}
	p.follows(sheet + ` button[name="action"]`)
	p.says(done)
}

// finds writes into the field for searching, which the key / leads to.
func (p typist) finds(words string) {
	p.Helper()
	p.becomes(statusIs + `"live"`) // the page knows its keys
	p.run(chromedp.KeyEvent("/"))
	p.sees("#q")
	p.run(chromedp.KeyEvent(words))
	p.enters("searching")
}

// What people do on the dashboard they do without a mouse, and see at each stop where they are.
func TestDashboardActsByKeyboardAlone(t *testing.T) {
	d := newDashboard(t)
	d.history()
	if status, answer := d.propose(d.api, map[string]any{"title": "Look at load",
		"files": []any{file("checks/load.md", "create", "# Load\n")}}); status != 201 {
		t.Fatalf("%d: %v", status, answer)
	}
	secret := d.world.annsToken(t, "propose", "review", "read", "operate")
	d.run(withoutCookies(), chromedp.Navigate(d.url+"/sign-in?next=/"))
	p := typist{d}

	p.goes("#token")
	p.run(chromedp.KeyEvent(secret))
	p.enters("signing in")
	p.says("Waiting for you")

	place := func(path string) string { return fmt.Sprintf(`.side li a[href$=%q]`, path) }
	p.follows(place("/changes"))
	p.finds("disk.md")
	p.follows("main tbody th a")
	p.says("Look at inodes")

	p.goes("details.file summary")
	if p.value(`document.querySelector("table.diff").getBoundingClientRect().top < innerHeight`) != true {
		t.Error("the difference is not in the window when its file has the focus")
	}
	p.follows("#f1n1")
	p.becomes(`document.activeElement?.matches("#line-comment")`) // headless Chromium draws no focus before the first key
	p.run(chromedp.KeyEvent("Which disk?"))
	p.follows("#line-form button")
	p.says("Your comment is recorded.", "Which disk?")
	if y := p.value(`scrollTo(0, 100), scrollY`); y != 100.0 {
		t.Errorf("the page glides (%v): on its way to a line it carries off what the keyboard has gone to meanwhile", y)
	}

	bar := func(verb string) string { return fmt.Sprintf(`.bar [popovertarget="do-%s"]`, verb) }
	p.acts(bar("approve"), "approve", "", "You have approved it.")
	p.acts(bar("merge"), "merge", "", "You have merged it.")

	p.follows(place("/changes"))
	p.follows(`main tbody th a[href$="/pulls/local/demo/home-cluster/2"]`)
	p.acts(bar("request-changes"), "request-changes", "Name the load.", "You have asked for changes.")
	p.opens(`[popovertarget="more"]`, "#more")
	p.acts(`#more [popovertarget="do-close"]`, "close", "", "You have closed it.")

	p.follows(place("/"))
	p.opens(`.acts [popovertarget="pause"]`, "#pause")
	p.goes("#pause-why")
	p.run(chromedp.KeyEvent("The disks are being replaced."))
	p.follows("#pause button.no")
	p.says("Everything is paused", "The disks are being replaced.")
	p.follows(".paused button")
	if strings.Contains(p.text(), "is paused") {
		t.Error("it is not resumed")
	}

	p.follows(place("/sessions"))
	p.follows(`.tabs a[href$="/tokens"]`)
	p.opens(`[popovertarget="make"]`, "#make")
	p.goes("#name")
	p.run(chromedp.KeyEvent("laptop"))
	p.enters("making a token")
	p.says("It is shown this once")

	p.follows(place("/audit"))
	p.finds("disk.md")
	p.says("Look at inodes", "Opened")

	p.opens(`.side [popovertarget="you"]`, "#you")
	p.goes(`.themes [data-to="dark"]`)
	p.run(chromedp.KeyEvent(kb.Enter))
	p.becomes(`document.documentElement.dataset.theme === "dark"`)
	d.quiet("with the keyboard")
}
