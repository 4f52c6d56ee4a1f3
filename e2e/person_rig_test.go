//go:build e2e && linux

package e2e

import (
	"fmt"
	"math"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
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
	p.run(chromedp.Click(selector, chromedp.ByQuery))
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
	p.run(chromedp.WaitVisible(selector, chromedp.ByQuery))
	away, _ := p.value(fmt.Sprintf(`(() => { const r = document.querySelector(%q).getBoundingClientRect()
	return Math.max(0, r.bottom - innerHeight, -r.top) / innerHeight })()`, selector)).(float64)
	p.scrolls += int(math.Ceil(away))
}

// types a text into a field that the page has focused, for which no hand goes to the mouse.
func (p *person) types(selector, text string) {
	p.Helper()
	p.becomes(fmt.Sprintf(`document.activeElement === document.querySelector(%q)`, selector))
	p.run(chromedp.SendKeys(selector, text, chromedp.ByQuery))
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
