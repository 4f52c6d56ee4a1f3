package web_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/ops/places"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// submit sends a form from our own origin.
func (w *world) submit(target string, form url.Values, edits ...edit) reply {
	w.Helper()
	own := []edit{browser, header("Sec-Fetch-Site", "same-origin"), set("Content-Type", formType)}
	return w.do("POST", target, form.Encode(), append(own, edits...)...)
}

// dryWorld has one dry run on its record, and a server that is in dry run no more.
func dryWorld(t *testing.T, change func(*world)) (w *world, id string) {
	w = newWorld(t, func(w *world) {
		w.flow.Authority.DryRun = true
		if change != nil {
			change(w)
		}
	})
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 200, "")
	w.flow.Authority.DryRun = false
	w.build()
	return w, w.attempts()[0].RequestID
}

func TestTheOverviewSaysWhatWaitsForAPersonAndHowTheServerIsConfigured(t *testing.T) {
	t.Parallel()
	w, id := dryWorld(t, nil)
	w.refuse(2)
	d := w.page("/", 200)
	d.has("Waiting for reviewers 1", "Broken now 0 nothing", "Refused, 24 hours 2 2 of them: file is protected", "Cost, 7 days",
		"Server health", "tier 2",
		"Check inodes, too Nothing was written.", "File is protected 2", "somebody was refused", "7 days, UTC", "14 Nov 15 16 17 18 19 3 20",
		"You are somebody")
	if !slices.Contains(d.links(), "/proposals/"+id) ||
		!slices.Contains(d.links(), "/changes?code=scope_denied&since=2026-11-13&tab=refused") {
		t.Errorf("links %v", d.links())
	}
	w.page("/?show=dry", 200).has("Check inodes, too")
	w.page("/?show=merge", 200).lacks("Check inodes, too Nothing")
	w.advance(15 * 24 * time.Hour)
	w.page("/", 200).has("Nothing was refused in the last 7 days", "Refused, 24 hours 0 none")
	w.want(w.get("/?x=1"), 400, fault.InvalidArgument)
}

func TestTheOverviewSaysThatTheAuditIsNotWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.web.Records.Audit = &scriptedAudit{Audit: w.web.Records.Audit,
		answers: []record.AuditReport{{FirstBad: 1, Problem: "row 1 was altered"}}}
	w.refuse(1)
	w.verify()
	w.page("/", 200).has("The records are not whole Row 1 was altered.", "Broken now 1", "Server health Look")
	w.page("/audit", 200).has("The record is broken", "row 1 was altered")
}

func TestNoLinkOfAnyPageIsDead(t *testing.T) {
	t.Parallel()
	w, id := dryWorld(t, nil)
	w.signedIn()
	w.refuse(31) // one more than a page has
	w.status(w.submit("/proposals/"+id+"/promote", nil), 303)
	seen := map[string]bool{}
	for queue := []string{"/"}; len(queue) > 0; queue = queue[1:] {
		target := queue[0]
		if seen[target] {
			continue
		}
		seen[target] = true
		if target == "/docs" || target == "/audit.jsonl" {
			w.status(w.do("HEAD", target, ""), 200)
			continue
		}
		if a := w.get(target, browser); a.StatusCode == 303 {
			queue = append(queue, a.Header.Get("Location"))
		} else {
			queue = append(queue, w.read(a, target, 200).links()...)
		}
	}
	for _, target := range []string{"/changes", "/doctor?ask=forges", "/pulls/fake/joe/infra/1", "/policy", "/audit",
		"/doctor", "/changes?tab=merged"} {
		if !seen[target] {
			t.Errorf("nothing leads to %s: %v", target, seen)
		}
	}
}

func TestTheListingOfProposalsFiltersAndPagesBothWays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.refuse(120)
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
	rows := func(d document) int { return len(d.find("tr")) - 1 }
	for query, want := range map[string]int{
		"": 30, "?before=72": 30, "?before=22": 21, "?after=71": 30, "?after=120": 1, "?gate=scope&q=dockerfile": 30,
		"?since=2026-11-20&until=2026-11-20": 30, "?repo=JOE%2Finfra&caller=somebody": 30, "?tab=refused": 30,
		"?tab=waiting": 1, "?q=%231": 1,
	} {
		if got := rows(w.page("/changes"+query, 200)); got != want {
			t.Errorf("%s: %d rows, want %d", query, got, want)
		}
	}
	w.page("/changes?until=2026-11-19", 200).has("No change fits")
	for query, want := range map[string]string{"": "92", "?before=92": "62"} {
		if !w.page("/changes"+query, 200).leadsTo("?before=" + want) {
			t.Errorf("%q: no link to ?before=%s", query, want)
		}
	}
	for _, query := range []string{"?since=x", "?until=2026-13-01", "?tab=x", "?before=x", "?before=0", "?nothing=1",
		"?q=a&q=b"} {
		w.page("/changes"+query, 400).has("invalid_argument")
	}
}

func TestAProposalIsShownGateByGateWithItsDifference(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.opened(files(file("checks/disk.md", "update", "# Disk\nInodes, too\n"), file("checks/new.md", "create", "# New\n")))
	w.refuse(1)
	rows := w.attempts()
	d := w.page("/proposals/"+rows[1].RequestID+"?as=proposed", 200)
	d.has("Check inodes, too", "Compared with main at", "Inodes, too", "13 of 13 checks passed", "Request passed",
		"Written by the agent", "checks/new.md", "Pull request #1")
	if slices.ContainsFunc(d.find("p"), func(n *html.Node) bool { return attr(n, "class") == "foreign" }) ||
		strings.Contains(d.text, "claude-ops:v1") {
		t.Error("the mark is shown")
	}
	kinds := map[string]int{}
	for _, tr := range d.find("tr") {
		kinds[attr(tr, "class")]++
	}
	if kinds["add"] != 2 || kinds["same"] != 1 {
		t.Errorf("lines %v", kinds)
	}
	w.page("/proposals/"+rows[1].RequestID+"?as=proposed&view=split", 200).has("Side by side", "before on the left")
	w.page("/proposals/"+rows[0].RequestID, 200).has(
		"Refused, nothing was written: file is protected.", "1 of 13 checks refused it", "Rules Dockerfile", "To mend it:",
		"was refused")
	w.leads(w.get("/proposals/"+rows[1].RequestID, browser), "/pulls/fake/joe/infra/1")
	w.page("/pulls/fake/joe/infra/1", 200).has("Compared with main at", "Inodes, too", "13 of 13 checks passed",
		"2 files, +2 −0")
	w.page("/proposals/nothing", 404).has("There is no proposal with this id")

	w.fake.Script.FailBefore("Snapshot", fault.New(fault.UpstreamError, "the host is down"))
	w.page("/proposals/"+rows[1].RequestID+"?as=proposed", 200).has("the host is down", "Whole new contents")
}

func TestADryRunIsOpenedByAForm(t *testing.T) {
	t.Parallel()
	w, id := dryWorld(t, nil)
	w.signedIn()
	d := w.page("/proposals/"+id, 200)
	forms := d.find("form")
	if len(forms) != 1 || attr(forms[0], "action") != "/proposals/"+id+"/promote" || attr(forms[0], "method") != "post" {
		t.Fatalf("%d forms", len(forms))
	}
	a := w.submit("/proposals/"+id+"/promote", nil)
	newest := w.attempts()[0]
	if a.StatusCode != 303 || a.Header.Get("Location") != "/proposals/"+newest.RequestID ||
		newest.Door != record.DoorWeb || newest.PRNumber != 1 {
		t.Fatalf("%d %v, %+v", a.StatusCode, a.Header, newest)
	}
	w.page("/pulls/fake/joe/infra/1", 200).has("ann opened the dry run", "Check inodes, too #1")

	again := w.read(w.submit("/proposals/"+newest.RequestID+"/promote", nil), "promote", 409)
	again.has("conflict", "What is recorded of it")
	for _, to := range again.links() {
		w.page(to, 200)
	}
}

func TestADryRunIsNotOfferedToWhoMayNotOpenIt(t *testing.T) {
	t.Parallel()
	w, id := dryWorld(t, nil)
	reader := w.signIn(w.token("reader", 2, "read"))
	w.page("/proposals/"+id, 200, with(reader)).has("Opening it needs the scope review")
	w.read(w.submit("/proposals/"+id+"/promote", nil, with(reader)), "promote", 403).has(
		"You may look, but not open dry runs", "the scope review")
	if w.fake.Script.Writes() != 0 || w.attempts()[0].Code != fault.Forbidden {
		t.Errorf("%v", w.attempts()[0])
	}
	w.flow.Authority.DryRun = true
	w.build()
	w.page("/proposals/"+id, 200, with(reader)).has("the server is in dry run itself")
}

func TestErrorsArePagesForBrowsersAndProblemsForPrograms(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for accept, isPage := range map[string]bool{
		"": false, "*/*": false, "application/json": false, "text/html": true, "text/html,*/*;q=0.1": true,
		"application/json, text/html;q=0.5": false,
		"text/html;q=0":                     false, "application/problem+json, text/html": true, "TEXT/HTML": true,
		"text/html;q=x": false,
	} {
		a := w.get("/nothing", set("Accept", accept))
		if got := strings.HasPrefix(a.Header.Get("Content-Type"), "text/html"); got != isPage || a.StatusCode != 404 {
			t.Errorf("%q: %d %s", accept, a.StatusCode, a.Header.Get("Content-Type"))
		}
	}
	w.page("/nothing", 404).has("not_found", "exchange-")
}

func TestThePolicyAnswersWithTheRule(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.page("/policy", 200).has("checks/*.md", "It may not propose.", "A file may have 256 KiB, all files together 1 MiB")
	for query, want := range map[string]string{
		"tier=2&path=checks/x.md": "Yes. Tier 2 may change checks/x.md, by the rule checks/*.md",
		"tier=1&path=checks/x.md": "No. Tier 1 may not change",
		"tier=3&path=Dockerfile":  "by the rule Dockerfile", "path=..%2Fx": "No. Tier 2 may not change ../x",
		"tier=3&path=%3Cscript%3E%E2%80%AE": "may not change <script>",
	} {
		w.page("/policy?"+query, 200).has(want)
	}
	w.page("/policy?tier=4&path=x", 400)
}

// The page looks where a repository has procedures, and has the policy that opens them as a text to copy.
func TestThePolicyPageSuggestsOneForARepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) {
		w.fake.AddRepo("joe", "skills", map[string]string{".claude/skills/disk/SKILL.md": "x", "docs/runbooks/a.md": "x"})
		w.fake.AddRepo("joe", "empty", map[string]string{"main.c": "x"})
		kernel := w.kernel()
		w.web.Acts = append(w.web.Acts, places.Acts{
			Kernel: func() *operation.Kernel { return kernel },
			Tier:   func() gitprovider.Tier { return gitprovider.TierInvestigate },
			Find: func(ctx context.Context, repo gitprovider.RepoRef) ([]places.Place, bool, error) {
				if repo.Name == "secret" {
					return nil, false, fault.New(fault.RepoNotAllowed, "the repository is not on the operator's list")
				}
				files, complete, err := places.List(ctx, gitprovider.Resolution{Provider: w.fake, Repo: repo})
				return places.Find(repo, files), complete, err
			},
		}.Operations()...)
	})
	for repo, want := range map[string]string{
		"joe/skills": ".claude/skills: 1 skill", "joe/empty": "joe/empty has no folders with procedures.", "joe": "Nothing",
		"joe/secret": "Nothing can be suggested: the repository is not on the operator's list",
		"joe/none":   "Nothing can be suggested:",
	} {
		w.page("/policy?repo="+repo, 200).has(want)
	}
	const text = "scope:\n  allow: [\"docs/runbooks/*.md\"]\n  kinds: [claude-skills]\n"
	w.says(w.get("/policy?repo=joe/skills"), html.EscapeString(text))
	a := w.get("/api/v1/policy/suggestion?repo=joe/skills&scope=.claude/skills")
	if got, _ := a.json["policy"].(string); a.StatusCode != 200 || !strings.Contains(got, "kinds: [claude-skills]") ||
		strings.Contains(got, "runbooks") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	for query, code := range map[string]string{"repo=joe": "invalid_argument", "repo=joe/secret": "repo_not_allowed",
		"repo=joe/skills&scope=src": "invalid_argument", "": "invalid_argument"} {
		if a := w.get("/api/v1/policy/suggestion?" + query); a.code() != code {
			t.Errorf("%q: %d %s", query, a.StatusCode, a.body)
		}
	}
}

// A change of where later proposals go is marked where people list, read and merge proposals.
func TestAProposalThatRedirectsLaterOnesIsMarked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.signedIn()
	id := w.opened(files(file("CLAUDE-OPS.md", "create", "## Git Provider\n\n- provider: evil\n")))
	const note = "provider `evil` (was not set)"
	for _, target := range []string{"/", "/changes"} {
		w.page(target, 200).has("redirects proposals", "Changes 1 waiting")
	}
	w.opened(files(file("checks/disk.md", "update", "# Disk, whole\n")))
	w.says(w.get("/api/v1/audit"), "Replaces whole files")
	for _, target := range []string{"/", "/changes"} {
		if n := strings.Count(w.page(target, 200).text, "redirects proposals"); n != 1 {
			t.Errorf("%s: %d rows have the tag of one that redirects", target, n)
		}
	}
	w.page("/pulls/fake/joe/infra/1", 200).has("Before you merge:", note)
	for _, target := range []string{"/api/v1/proposals", "/api/v1/proposals/" + id, "/api/v1/audit"} {
		w.says(w.get(target), note)
	}
	w.opened(nil)
	w.page("/pulls/fake/joe/infra/3", 200).lacks("Before you merge:")
}

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
	must.Do(w, err)
	d := document{TB: w.TB, root: root}
	d.path, _, _ = strings.Cut(target, "?")
	var text strings.Builder
	d.each(func(n *html.Node) {
		if n.Type == html.TextNode {
			text.WriteString(n.Data)
		} else if !slices.Contains([]string{"bdi", "code", "a", "time"}, n.Data) {
			text.WriteByte(' ')
		}
	})
	d.text = strings.Join(strings.Fields(text.String()), " ")
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

// leadsTo reports whether a link has the address.
func (d document) leadsTo(href string) bool {
	return slices.ContainsFunc(d.find("a"), func(a *html.Node) bool { return attr(a, "href") == href })
}

// fields are what the forms of a page send unless somebody fills them in.
func (d document) fields() url.Values {
	out := url.Values{}
	for _, input := range d.find("input") {
		out.Add(attr(input, "name"), attr(input, "value"))
	}
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

// withID is the part of the page with an id.
func (d document) withID(id string) document {
	d.Helper()
	for n := range d.root.Descendants() {
		if attr(n, "id") == id {
			return d.within(n)
		}
	}
	d.Fatalf("nothing has the id %s: %.3000s", id, d.text)
	return document{}
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
var ownScript = regexp.MustCompile(`^(/ops)?/static/(htmx\.min|live|once|own|theme)\.[0-9a-f]{12}\.js$`)

// inert checks that nothing but the layout speaks to the scripts, and that what they replace has no field that a person
// fills in.
func (d document) inert(target string, n *html.Node) {
	d.Helper()
	live := false
	for _, a := range n.Attr {
		name := strings.TrimPrefix(a.Key, "data-")
		live = live || a.Key == "data-live" && (n.Data == "div" || n.Data == "a") && strings.HasPrefix(attr(n, "id"), "live")
		switch {
		case n.Data == "button" && a.Key == "data-to" && attr(n.Parent, "class") == "themes":
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

func TestHostileTextIsShownHarmlessOnEveryPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	evil := "\"'><script>alert(1)</script><b onclick=x hx-get=/x hx-on:click=alert(1) data-hx-post=/y " +
		"data-live>\u202e\u200b\x1b[2J {{.}} " + strings.Repeat("A", 1<<20)
	paths := make([]string, 1000)
	for i := range paths {
		paths[i] = evil[:60] + fmt.Sprint(i)
	}
	violations := make([]fault.Violation, 1000)
	for i := range violations {
		violations[i] = fault.Violation{Code: "scope_denied", Path: evil[:80], Rule: evil[:80], Message: evil[:200],
			Suggestion: evil[:80]}
	}
	a := record.Attempt{
		Time: w.Now(), RequestID: "evil-1", Door: record.DoorMCP, Caller: evil, Tier: 2, Action: record.ActionCreate,
		Provider: "fake",
		Owner:    evil[:90], Repo: "../..", Base: evil[:90], Branch: evil[:90], Title: evil, Paths: paths,
		Outcome: record.OutcomeRefused, Code: "scope_denied",
		Message: evil, PRNumber: 7, PRURL: "javascript:alert(1)",
		Verdicts: []record.Verdict{{Gate: record.GateScope, Ruling: record.Deny, Detail: evil, Violations: violations}},
	}
	p := record.Proposal{
		ID: "evil-2", CreatedAt: w.Now(), Caller: evil, Tier: 2, Provider: "fake", Owner: "joe", Repo: "infra", Base: "main",
		Title: evil[:200],
		Body:  "# <i>x</i>\n[a](javascript:alert(1)) <script>alert(1)</script>\n\n" + evil, Digest: "d", ChangeType: "fix",
		Progress: record.Progress{State: record.StateDryRun, Branch: evil[:90], PRURL: "data:text/html,x"},
	}
	for i := range 100 {
		p.Files = append(p.Files, gitprovider.FileChange{
			Path: fmt.Sprintf("checks/n%d.md", i), Action: "create", Content: evil[:len(evil)/(i*i+1)],
		})
	}
	w.record(a)
	a.RequestID, a.Outcome, a.Code = "evil-2", record.OutcomeDryRun, ""
	must.Do(t, w.store.Ledger.Record(t.Context(), a, &p))
	repo := gitprovider.RepoRef{Owner: "joe", Name: "infra"}
	hosted := w.fake.World(t, repo)
	hosted.Push("claude-ops/fix/x", providertest.File{Path: "checks/z.md", Content: evil})
	pr := hosted.OpenPR("claude-ops/fix/x", evil[:200], "claude-ops")
	hosted.Review(pr, "ann<script>\u202e", gitprovider.ReviewCommented, evil)
	w.web.Rules.Doctor = func(context.Context) []doctor.Finding {
		return []doctor.Finding{{Name: "x", Status: "problem", Detail: evil}}
	}
	for _, target := range []string{
		"/", "/changes", "/changes?q=" + url.QueryEscape(evil[:60]), "/proposals/evil-1", "/proposals/evil-2",
		"/proposals/evil-2?view=split",
		"/doctor?ask=forges", fmt.Sprintf("/pulls/fake/joe/infra/%d", pr), "/audit", "/doctor",
		"/policy?path=" + url.QueryEscape(evil[:300]),
		"/sign-in?next=" + url.QueryEscape(evil[:60]),
	} {
		d := w.page(target, 200) // and what wellFormed says
		if n := len(d.text); n > 3<<20 {
			t.Errorf("%s: %d bytes of text", target, n)
		}
	}
	d := w.page("/proposals/evil-1", 200)
	d.has(" more, sha256 ", "<script>alert(1)</script>") // of what was refused less is kept
	w.page("/proposals/evil-2", 200).has(" more.", "more files are not shown", "more bytes are not shown")
	w.page("/nothing/"+url.PathEscape(evil[:60]), 404)
}
