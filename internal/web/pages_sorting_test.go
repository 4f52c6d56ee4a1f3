package web_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// sorted follows the link in the head of a column, whose rows must then be in that order. It returns where it led, and
// the first words of each row.
func (w *world) sorted(target, column, order string, edits ...edit) (led string, rows []string) {
	w.Helper()
	head := func(d document) (link, order string) {
		for _, th := range d.find("th") {
			if attr(th, "scope") != "col" {
				continue
			}
			for _, a := range d.within(th).find("a") {
				if words := a.FirstChild; words != nil && words.Data == column {
					return attr(a, "href"), attr(th, "aria-sort")
				}
			}
		}
		w.Fatalf("%s: the list has no link that sorts by %s", target, column)
		return "", ""
	}
	link, _ := head(w.page(target, 200, edits...))
	path, _, _ := strings.Cut(target, "?")
	led = path + link
	d := w.page(led, 200, edits...)
	if _, got := head(d); got != order {
		w.Errorf("%s: aria-sort of %s is %q, want %q", led, column, got, order)
	}
	sorted := 0
	for _, th := range d.find("th") {
		if hasAttr(th, "aria-sort") {
			sorted++
		}
		if attr(th, "scope") == "row" {
			rows = append(rows, strings.Fields(textIn(th))[0])
		}
	}
	if sorted != 1 {
		w.Errorf("%s: the rows are in the order of %d columns", led, sorted)
	}
	return led, rows
}

func textIn(n *html.Node) (text string) {
	for part := range n.Descendants() {
		if part.Type == html.TextNode {
			text += part.Data + " "
		}
	}
	return text
}

func TestAListIsSortedByItsHeadsAndKeepsItsFilter(t *testing.T) {
	t.Parallel()
	w := catalogueWorld(t)
	led, rows := w.sorted("/catalogue?kind=agent&text=agent", "Definition", "ascending")
	if q, err := url.ParseQuery(strings.SplitN(led, "?", 2)[1]); err != nil || q.Get("kind") != "agent" ||
		q.Get("text") != "agent" || q.Get("sort") != "name" {
		t.Errorf("the address does not keep filter and order: %s", led)
	}
	for _, form := range w.page(led, 200).find("input") {
		if attr(form, "name") == "sort" && attr(form, "value") != "name" {
			t.Errorf("the filter forgets the order")
		}
	}
	_, down := w.sorted(led, "Definition", "descending")
	slices.Reverse(down)
	if len(rows) < 4 || !slices.IsSorted(rows) || rows[0] != "base" || slices.Compare(rows, down) != 0 {
		t.Errorf("%q, and the other way round %q", rows, down)
	}
	if _, rows := w.sorted("/catalogue", "Problems", "descending"); !slices.Equal(rows[:2], []string{"<b>", "odd"}) {
		t.Errorf("by problems: %q", rows)
	}
	w.want(w.get("/catalogue?sort=path"), 400, fault.InvalidArgument)
	if _, rows := w.sorted("/catalogue/forks", "Upstream now", "descending"); len(rows) != 1 {
		t.Errorf("forks: %q", rows)
	}
}

// The heads of a list that is made from an operation's view sort, too: numbers by value, times from the newest.
func TestAListOfAnOperationIsSorted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strangers)
	boss := w.signIn(w.token("boss", 2, "read", "operate"))
	for i, name := range []string{"laptop", "Desk", "phone"} {
		w.connect(record.Connection{ID: "conn-" + name, Credential: name, Tier: gitprovider.Tier(2 - i%2),
			Since: w.Now().Add(-[]time.Duration{time.Hour, 3 * time.Hour, 2 * time.Hour}[i])})
	}
	second := func(target, column, order string) (string, []string) {
		t.Helper()
		led, _ := w.sorted(target, column, order, with(boss))
		var names []string
		for _, th := range w.page(led, 200, with(boss)).find("th") {
			if attr(th, "scope") == "row" {
				names = append(names, strings.Fields(textIn(th))[1])
			}
		}
		return led, names
	}
	led, names := second("/connections", "Since", "descending")
	if !slices.Equal(names, []string{"laptop", "phone", "Desk"}) {
		t.Errorf("newest first: %q", names)
	}
	if _, names = second(led, "Since", "ascending"); !slices.Equal(names, []string{"Desk", "phone", "laptop"}) {
		t.Errorf("oldest first: %q", names)
	}
	if _, names = second("/connections", "Agent", "ascending"); !slices.Equal(names,
		[]string{"Desk", "laptop", "phone"}) {
		t.Errorf("by name: %q", names)
	}
	if _, names = second("/connections", "Tier", "ascending"); names[0] != "Desk" {
		t.Errorf("by tier: %q", names)
	}
	w.want(w.get("/connections?sort=peer", with(boss)), 400, fault.InvalidArgument)
}

func TestTokensAndSnapshotsAreSorted(t *testing.T) {
	t.Parallel()
	w, _, first := deployedWorld(t)
	led, _ := w.sorted("/deployments", "When", "ascending")
	if d := w.page(led, 200); strings.Index(d.text, first) > strings.Index(d.text, "current") {
		t.Error("the oldest snapshot is not the first")
	}
	w = newWorld(t, strangers)
	boss := w.signIn(w.token("boss", 3, "read", "operate"))
	w.token("Ann", 2, "read")
	w.token("zoe", 1, "read")
	if _, rows := w.sorted("/tokens/people", "Name", "ascending", with(boss)); !slices.Equal(rows,
		[]string{"Ann", "boss", "zoe"}) {
		t.Errorf("by name: %q", rows)
	}
	if _, rows := w.sorted("/tokens/people", "Highest tier", "descending", with(boss)); !slices.Equal(rows,
		[]string{"boss", "Ann", "zoe"}) {
		t.Errorf("by tier: %q", rows)
	}
}
