package web_test

import (
	"bytes"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// browser asks as a browser does.
func browser(r *http.Request) { r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8") }

// document is a page, parsed as a browser would.
type document struct {
	testing.TB
	root *html.Node
	path string // that it was asked for at
	text string
}

// page asks for a page and fails unless it is one with the status.
func (w *world) page(target string, status int, edits ...edit) document {
	w.Helper()
	a := w.get(target, append([]edit{browser}, edits...)...)
	return w.read(a, target, status)
}

func (w *world) read(a reply, target string, status int) document {
	w.Helper()
	if a.StatusCode != status || a.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		w.Fatalf("%s: %d %s: %s", target, a.StatusCode, a.Header.Get("Content-Type"), a.body)
	}
	root, err := html.Parse(bytes.NewReader(a.body))
	if err != nil {
		w.Fatal(err)
	}
	d := document{TB: w.TB, root: root}
	d.path, _, _ = strings.Cut(target, "?")
	d.each(func(n *html.Node) {
		if n.Type == html.TextNode {
			d.text += n.Data
		} else if !slices.Contains([]string{"bdi", "code", "a", "time"}, n.Data) {
			d.text += " "
		}
	})
	d.text = strings.Join(strings.Fields(d.text), " ")
	d.wellFormed(target)
	return d
}

func (d document) each(visit func(*html.Node)) {
	for n := range d.root.Descendants() {
		visit(n)
	}
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// find lists the elements with the name.
func (d document) find(name string) (out []*html.Node) {
	d.each(func(n *html.Node) {
		if n.Type == html.ElementNode && n.Data == name {
			out = append(out, n)
		}
	})
	return out
}

// has fails the test unless the page says all of it.
func (d document) has(texts ...string) {
	d.Helper()
	for _, text := range texts {
		if !strings.Contains(d.text, text) {
			d.Errorf("the page does not say %q: %.3000s", text, d.text)
		}
	}
}

// lacks fails the test if the page says any of it.
func (d document) lacks(texts ...string) {
	d.Helper()
	for _, text := range texts {
		if strings.Contains(d.text, text) {
			d.Errorf("the page says %q: %.3000s", text, d.text)
		}
	}
}

// within is a part of the page.
func (d document) within(n *html.Node) document { return document{TB: d.TB, root: n, path: d.path} }

func hasAttr(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}

// drawn reports whether a drawing is one of ours: an icon, which screen readers skip, or a chart of bars, lines and
// short words.
func drawn(svg *html.Node) bool {
	for n := range svg.Descendants() {
		shapes := []string{"rect", "line", "polyline", "polygon", "text", "title", "path", "circle"}
		if n.Type == html.ElementNode && !slices.Contains(shapes, n.Data) || n.Type == html.TextNode && len(n.Data) > 20 {
			return false
		}
	}
	return attr(svg, "aria-hidden") == "true" || attr(svg, "role") == "img" && attr(svg, "aria-label") != ""
}

// wellFormed checks what must hold of every page, whatever is on it.
func (d document) wellFormed(target string) {
	d.Helper()
	level, ids := 0, map[string]bool{}
	d.each(func(n *html.Node) {
		if n.Type != html.ElementNode {
			return
		}
		switch n.Data {
		case "script":
			if !ownScript.MatchString(attr(n, "src")) || n.FirstChild != nil || n.Parent.Data != "head" {
				d.Errorf("%s: a script %v", target, n.Attr)
			}
		case "style", "iframe", "object", "embed", "img", "base", "b", "marquee":
			d.Errorf("%s: an element %s", target, n.Data)
		case "svg":
			if !drawn(n) {
				d.Errorf("%s: an svg that is none of ours", target)
			}
		case "h1", "h2", "h3", "h4", "h5", "h6":
			next := int(n.Data[1] - '0')
			if next > level+1 && level > 0 && next < 4 || level == 0 && next != 1 {
				d.Errorf("%s: %s follows a heading of level %d", target, n.Data, level)
			}
			level = next
		case "input", "select", "textarea":
			if attr(n, "type") != "hidden" && attr(n, "name") != "username" && !d.labelled(attr(n, "id")) {
				d.Errorf("%s: the field %s has no label", target, attr(n, "name"))
			}
		case "th":
			if attr(n, "scope") == "" {
				d.Errorf("%s: a th without scope", target)
			}
		}
		if id := attr(n, "id"); id != "" && ids[id] {
			d.Errorf("%s: the id %s twice", target, id)
		} else {
			ids[id] = true
		}
		d.inert(target, n)
		for _, a := range n.Attr {
			address := a.Key == "href" || a.Key == "src" || a.Key == "action"
			ours := strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "//") || strings.HasPrefix(a.Val, "#") ||
				strings.HasPrefix(a.Val, "?")
			foreign := strings.HasPrefix(a.Val, "https://") && strings.Contains(attr(n, "rel"), "nofollow noopener")
			foreign = foreign || attr(n, "id") == "own" && ownLink.MatchString(a.Val)
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "srcdoc" || address && !ours && !foreign {
				d.Errorf("%s: <%s %s=%q>", target, n.Data, a.Key, a.Val)
			}
		}
	})
	for _, table := range d.find("table") {
		if ofText(table) {
			continue
		}
		if !slices.ContainsFunc(slices.Collect(table.ChildNodes()), func(n *html.Node) bool { return n.Data == "caption" }) {
			d.Errorf("%s: a table without caption", target)
		}
	}
	if len(d.find("main")) != 1 || len(d.find("h1")) != 1 || strings.ContainsAny(d.text, "\u202e\u200b\u2066\x1b\x00") {
		d.Errorf("%s: no main, no single h1, or hidden characters", target)
	}
}

// followed reports whether an element is, or is in, one that is kept up to date.
func followed(n *html.Node) bool {
	for n != nil && !slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "data-live" }) {
		n = n.Parent
	}
	return n != nil
}

// ofText reports whether an element is part of a text that others wrote.
func ofText(n *html.Node) bool {
	for n != nil && !strings.Contains(attr(n, "class"), "prose") {
		n = n.Parent
	}
	return n != nil
}

// ownLink is an address at a name that a browser has for itself.
var ownLink = regexp.MustCompile(`^http://[a-z2-7]{26}-(127-0-0-1|localhost|ip6)\.localhost(:8080)?/`)

// ownScript is the address of a script that pages may have.
var ownScript = regexp.MustCompile(`^(/ops)?/static/(htmx\.min|live|once|own)\.[0-9a-f]{12}\.js$`)

// inert checks that nothing but the layout speaks to the scripts, and that what they replace has no field that a person
// fills in.
func (d document) inert(target string, n *html.Node) {
	d.Helper()
	live := false
	for _, a := range n.Attr {
		name := strings.TrimPrefix(a.Key, "data-")
		live = live || a.Key == "data-live" && (n.Data == "div" || n.Data == "a") && strings.HasPrefix(attr(n, "id"), "live")
		switch {
		case n.Data == "body" && (a.Key == "hx-disable" || a.Key == "data-events" || a.Key == "data-at"):
		case a.Key == "data-load" && attr(n, "id") == "deployment" && strings.HasPrefix(a.Val, "/") &&
			!strings.HasPrefix(a.Val, "//"):
		case a.Key == "data-hold" && n.Data == "div" && attr(n, "id") != "" && followed(n):
		case a.Key == "data-live" && live, (a.Key == "data-every" || a.Key == "data-topics") && live:
		case strings.HasPrefix(name, "hx-"), strings.HasPrefix(a.Key, "data-"), strings.HasPrefix(name, "sse-"),
			strings.HasPrefix(name, "ws-"):
			d.Errorf("%s: <%s %s=%q>", target, n.Data, a.Key, a.Val)
		}
	}
	if !live {
		return
	}
	for inner := range n.Descendants() {
		if inner.Data == "input" && attr(inner, "type") != "hidden" || inner.Data == "textarea" || inner.Data == "select" {
			d.Errorf("%s: a refresh would empty the field %s", target, attr(inner, "name"))
		}
	}
}

func (d document) labelled(id string) bool {
	return id != "" && slices.ContainsFunc(d.find("label"), func(n *html.Node) bool { return attr(n, "for") == id })
}

// links lists where the page leads within the server.
func (d document) links() (out []string) {
	for _, a := range d.find("a") {
		if to, _, _ := strings.Cut(attr(a, "href"), "#"); strings.HasPrefix(to, "/") {
			out = append(out, to)
		} else if strings.HasPrefix(to, "?") {
			out = append(out, d.path+to)
		}
	}
	return out
}
