//go:build e2e && linux

package e2e

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// effort is the cost of an act for a person: presses of the mouse, windows scrolled, typed keys, and pages waited for.
type effort struct{ clicks, scrolls, keys, typings, pages int }

// The seconds of the keystroke-level model: S. K. Card, T. P. Moran, A. Newell, "The keystroke-level model for user
// performance time with interactive systems", Communications of the ACM 23 (1980). A scroll is not in it, and counts as
// one movement of the mouse.
const (
	deciding = 1.35
	pointing = 1.1
	pressing = 0.2 // down and up
	typing   = 0.28
	homing   = 0.4 // the hand, between mouse and keyboard
)

// seconds is the time that a person needs who knows where things are, without that of the machine.
func (e effort) seconds() float64 {
	sum := float64(e.clicks)*(deciding+pressing+pointing) + float64(e.scrolls)*pointing +
		float64(e.keys)*typing + float64(e.typings)*(deciding+2*homing)
	return math.Round(sum)
}

// person acts in the browser with a mouse and a keyboard, and is counted.
type person struct {
	*dashboard
	effort

	machine time.Duration // that pages took
}

// begins opens the overview, as people do, and counts from there.
func (p *person) begins() {
	p.Helper()
	p.run(chromedp.Navigate(p.url + "/"))
	p.effort, p.machine = effort{}, 0
}

// clicks the first element of the selector that is shown. What is outside of the window is scrolled to before.
func (p *person) clicks(selector string) {
	p.Helper()
	p.reaches(selector)
	p.run(chromedp.Click(chromedp.CSS(selector)))
	p.effort.clicks++
}

// follows clicks what leads to another page.
func (p *person) follows(selector string) {
	p.Helper()
	p.reaches(selector)
	before := time.Now()
	p.press(selector)
	p.machine += time.Since(before)
	p.effort.clicks++
	p.pages++
}

// reaches scrolls to an element and counts the windows that this takes.
func (p *person) reaches(selector string) {
	p.Helper()
	p.run(chromedp.WaitVisible(chromedp.CSS(selector)))
	p.becomes(fmt.Sprintf(`(() => { // it stays where it is: before that, styles and fonts may be missing
		const top = document.querySelector(%q).getBoundingClientRect().top
		const stays = window.wasTop === top && document.readyState === "complete" && document.fonts.status === "loaded"
		window.wasTop = top
		return stays })()`, selector))
	away, _ := p.value(fmt.Sprintf(`(() => { const r = document.querySelector(%q).getBoundingClientRect()
	return Math.max(0, r.bottom - innerHeight, -r.top) / innerHeight })()`, selector)).(float64)
	p.scrolls += int(math.Ceil(away))
}

// types a text into a field that the page has focused, for which no hand goes to the mouse.
func (p *person) types(selector, text string) {
	p.Helper()
	p.becomes(fmt.Sprintf(`document.activeElement === document.querySelector(%q)`, selector))
	p.run(chromedp.SendKeys(chromedp.CSS(selector), text))
	p.typings++
	p.keys += len(text)
}

// key presses a key of its own.
func (p *person) key(key string) {
	p.Helper()
	p.run(chromedp.KeyEvent(key))
	p.keys++
}

// enters presses the key that sends a form, which leads to another page.
func (p *person) enters() {
	p.Helper()
	before := time.Now()
	p.leads("Enter", chromedp.KeyEvent(kb.Enter))
	p.machine += time.Since(before)
	p.keys++
	p.pages++
}

// answered is the effort of reading an answer on the overview: nothing if all of it is in the first window.
func (p *person) answered(selectors ...string) effort {
	p.Helper()
	p.begins()
	for _, selector := range selectors {
		p.reaches(selector)
	}
	return p.effort
}

// busy leaves what the dashboard of a small team shows after some weeks: 20 open pull requests, a dry run, and refusals
// to 225 attempts in all.
func (d *dashboard) busy(policy string) {
	d.Helper()
	d.leaves()
	dry := serve(d.T, d.world, "CLAUDEOPS_DRY_RUN=true", policy).url
	for i := range 225 {
		url, want, path := d.api, 403, "Dockerfile"
		switch {
		case i == 3: // found again much later
			path = "hosts/lighthouse.yaml"
		case i%11 == 0 && i/11 < 20:
			want, path = 201, fmt.Sprintf("checks/check-%02d.md", i/11)
		case i == 224:
			url, want, path = dry, 200, "checks/dry.md"
		}
		status, answer := d.propose(url, map[string]any{"title": fmt.Sprintf("Look at part %d", i),
			"files": []any{file(path, "create", fmt.Sprintf("# Part %d\n\nLook at %s.\n", i, path))}})
		if status != want {
			d.Fatalf("%s: %d: %v", path, status, answer)
		}
	}
}

// The table of what they cost is docs/reference/dashboard-acts.md. UPDATE_GOLDEN=1 writes it.
func TestAPersonsQuestionsAndActs(t *testing.T) {
	policy := policyOf(t, "caps: {open_prs: 100, creations_per_hour: 100}\n")
	root := must.Get(filepath.Abs(".."))(t)
	d := newDashboard(t, "CLAUDEOPS_CLAUDE_BIN="+fakeCLI(t, waitingAgent), "CLAUDEOPS_TOOLSETS=pr,scripts",
		fmt.Sprintf(`CLAUDEOPS_SCRIPTS={"working_dir": %q, "agent_scripts_dir": "e2e/testdata/scripts"}`, root), policy)
	d.busy(policy)
	operator := d.token
	d.signIn("/", "propose", "review", "read", "operate")
	d.pictures()
	p := &person{dashboard: d}
	page := bytes.NewBufferString(aboutActs)
	for _, q := range questions() {
		e := p.answered(q.answers...)
		if e != (effort{}) {
			t.Errorf("%s: the answer is not in the first window: %+v", q.asks, e)
		}
		fmt.Fprintf(page, "| %s | 0 | 0 | %d | %d | %v | %v |\n", q.asks, q.was.scrolls, e.scrolls,
			q.was.seconds(), e.seconds())
	}
	for _, a := range acts() {
		if a.before != nil {
			ann := d.token
			d.token = operator
			a.before(p)
			d.token = ann
		}
		p.begins()
		a.do(p)
		d.says(a.says)
		t.Logf("%s: the pages took %v", a.name, p.machine)
		was := [3]string{"none", "none", "none"}
		if a.was != (effort{}) {
			was = [3]string{fmt.Sprint(a.was.clicks), fmt.Sprint(a.was.scrolls), fmt.Sprint(a.was.seconds())}
		}
		fmt.Fprintf(page, "| %s | %s | %d | %s | %d | %s | %v |\n", a.name, was[0], p.effort.clicks, was[1], p.scrolls,
			was[2], p.seconds())
	}
	operationtest.Golden(t, "../docs/reference/dashboard-acts.md", page.Bytes())
}

const aboutActs = `<!-- made by a test: UPDATE_GOLDEN=1 go test -tags e2e -run TestAPersons ./e2e -->
# Clicks and seconds on the dashboard

A test does what people do, with mouse and keyboard in Chromium, in a window of 1280 by 800. There are 20 open pull
requests, one dry run and 225 attempts. Each question and each act starts on Overview.

Seconds are those of the [keystroke-level model](https://doi.org/10.1145/358886.358895) for somebody who knows the
pages. They leave out reading and the machine. *Before* is commit 79a4398, which had no six places.

| | clicks before | now | windows scrolled before | now | seconds before | now |
|---|---|---|---|---|---|---|
`

type question struct {
	asks    string
	answers []string
	was     effort // before the six places
}

type act struct {
	name   string
	before func(*person)
	do     func(*person)
	says   string
	was    effort // before the six places; none if there was no way
}

func questions() []question {
	return []question{
		{"What waits for me?", []string{".strip a:nth-of-type(1)", "#waiting", "main .list li"}, effort{scrolls: 1}},
		{"What is broken?", []string{".strip a:nth-of-type(2)"}, effort{scrolls: 3}},
		{"What was proposed?", []string{"#activity", ".feed li"}, effort{scrolls: 4}},
		{"Why was it refused?", []string{".strip a:nth-of-type(3)", "#refusals"}, effort{scrolls: 6}},
		{"What did it cost?", []string{".strip a:nth-of-type(4)"}, effort{scrolls: 3}},
	}
}

const firstWaiting = "main .list li .btn"

func acts() []act {
	sheet := func(verb string) string { return fmt.Sprintf(`.bar [popovertarget="do-%s"]`, verb) }
	send := func(verb string) string { return "#do-" + verb + ` button[name="action"]` }
	return []act{
		{name: "Approve", was: effort{clicks: 2, scrolls: 3}, says: "You have approved it.",
			do: func(p *person) {
				p.follows(firstWaiting)
				p.clicks(sheet("approve"))
				p.follows(send("approve"))
			}},
		{name: "Merge", was: effort{clicks: 3, scrolls: 4}, says: "You have merged it.",
			do: func(p *person) {
				p.follows(firstWaiting)
				p.clicks(sheet("merge"))
				p.follows(send("merge"))
			}},
		{name: "Comment on a line", was: effort{clicks: 3, scrolls: 2, keys: 11, typings: 1}, says: "Which disk?",
			do: func(p *person) {
				p.follows(firstWaiting)
				p.clicks("#f1n1")
				p.types("#line-comment", "Which disk?")
				p.follows("#line-form button")
			}},
		{name: "Request changes", was: effort{clicks: 3, scrolls: 3, keys: 14, typings: 1},
			says: "You have asked for changes.",
			do: func(p *person) {
				p.follows(firstWaiting)
				p.clicks(sheet("request-changes"))
				p.types("#do-request-changes textarea", "Name the disk.")
				p.follows(send("request-changes"))
			}},
		{name: "Close", was: effort{clicks: 2, scrolls: 3}, says: "You have closed it.",
			do: func(p *person) {
				p.follows(firstWaiting)
				p.clicks(`[popovertarget="more"]`)
				p.clicks(`#more [popovertarget="do-close"]`)
				p.follows(send("close"))
			}},
		{name: "Lift a cooldown", was: effort{clicks: 4, scrolls: 5}, says: "ann lifted the cooldown",
			before: func(p *person) {
				if status, answer := p.propose(p.api, map[string]any{"title": "Look at part 22 again",
					"files": []any{file("checks/check-02.md", "create", "# Part 22\n\nOnce more.\n")}}); status != 429 {
					p.Fatalf("%d %v", status, answer)
				}
			}, do: func(p *person) {
				p.follows(".feed li a")
				p.follows(`.acts button[value="lift-cooldown"]`)
				if again := p.value(`document.querySelector("#do-lift-cooldown")`); again != nil {
					p.Error("a cooldown that is lifted can be lifted again")
				}
			}},
		{name: "Promote a dry run", was: effort{clicks: 2, scrolls: 4}, says: "ann opened the dry run",
			do: func(p *person) {
				p.follows(`main .seg a[href*="dry"]`)
				p.follows(firstWaiting)
				p.follows(`form[action$="/promote"] button`)
			}},
		{name: "Start and stop a session", was: effort{clicks: 4, scrolls: 2, keys: 17, typings: 1},
			says: "A person stopped it",
			do: func(p *person) {
				p.follows(`.acts a[href$="/sessions"]`)
				p.clicks(`button[popovertarget="start"]`)
				p.types("#note", "Look at the disk.")
				p.follows(`form[action="/sessions"][method="post"] button:not([type])`)
				p.becomes(`document.querySelector("main").innerText.includes("I am <b>looking</b>.")`)
				p.follows(`form[action$="/stop"] button`)
				p.becomes(`document.querySelector("main").innerText.includes("A person stopped it")`)
			}},
		{name: "Make an agent's token", says: "It is shown this once", do: func(p *person) {
			p.follows(`.side a[href$="/sessions"]`)
			p.follows(`.tabs a[href$="/tokens"]`)
			p.clicks(`button[popovertarget="make"]`)
			p.clicks("#name")
			p.types("#name", "laptop")
			p.enters()
		}},
		{name: "Find a refusal of last week", was: effort{clicks: 3, scrolls: 1, keys: 11, typings: 1},
			says: "hosts/lighthouse.yaml",
			do: func(p *person) {
				p.follows(`.side a[href$="/changes"]`)
				p.key("/")
				p.types("#q", "lighthouse")
				p.enters()
				p.follows("main table th a")
			}},
	}
}
