package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/policy"
	"github.com/claudeops/claudeops/internal/prflow"
	"github.com/claudeops/claudeops/internal/web"
)

// browser asks as a browser does.
func browser(r *http.Request) { r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8") }

// document is a page, parsed as a browser would.
type document struct {
	*testing.T
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
	d := document{T: w.T, root: root}
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

// wellFormed checks what must hold of every page, whatever is on it.
func (d document) wellFormed(target string) {
	d.Helper()
	level, ids := 0, map[string]bool{}
	d.each(func(n *html.Node) {
		if n.Type != html.ElementNode {
			return
		}
		switch n.Data {
		case "script", "style", "iframe", "object", "embed", "img", "base", "svg", "b", "marquee":
			d.Errorf("%s: an element %s", target, n.Data)
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
		for _, a := range n.Attr {
			address := a.Key == "href" || a.Key == "src" || a.Key == "action"
			ours := strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "//") || strings.HasPrefix(a.Val, "#") || strings.HasPrefix(a.Val, "?")
			foreign := strings.HasPrefix(a.Val, "https://") && strings.Contains(attr(n, "rel"), "nofollow noopener")
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "srcdoc" || address && !ours && !foreign {
				d.Errorf("%s: <%s %s=%q>", target, n.Data, a.Key, a.Val)
			}
		}
	})
	for _, table := range d.find("table") {
		if !slices.ContainsFunc(slices.Collect(table.ChildNodes()), func(n *html.Node) bool { return n.Data == "caption" }) {
			d.Errorf("%s: a table without caption", target)
		}
	}
	if len(d.find("main")) != 1 || len(d.find("h1")) != 1 || strings.ContainsAny(d.text, "\u202e\u200b\u2066\x1b\x00") {
		d.Errorf("%s: no main, no single h1, or hidden characters", target)
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

// submit sends a form from our own origin.
func (w *world) submit(target string, form url.Values, edits ...edit) reply {
	w.Helper()
	own := []edit{browser, header("Sec-Fetch-Site", "same-origin"), set("Content-Type", "application/x-www-form-urlencoded")}
	return w.do("POST", target, form.Encode(), append(own, edits...)...)
}

// dryWorld has one dry run on its record, and a server that is in dry run no more.
func dryWorld(t *testing.T, change func(*world)) (w *world, id string) {
	w = newWorld(t, func(w *world) {
		w.flow.DryRun = true
		if change != nil {
			change(w)
		}
	})
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 200, "")
	w.flow.DryRun = false
	w.build()
	return w, w.attempts()[0].RequestID
}

func TestTheOverviewSaysHowTheDoorStandsAndWhatNeedsAPerson(t *testing.T) {
	w, id := dryWorld(t, nil)
	w.refuse(2)
	d := w.page("/", 200)
	d.has("Tier 2", "may change 3 files", "fake enabled", "GITEA_TOKEN is not set", "Check inodes, too", "a dry run, which you may open", "by scope",
		"dry run checked, and nothing written 1", "You are anonymous")
	meters := d.find("meter")
	if len(meters) != 1 || attr(meters[0], "value") != "2" || !slices.Contains(d.links(), "/proposals/"+id) {
		t.Errorf("%d meters, links %v", len(meters), d.links())
	}
	w.advance(15 * 24 * time.Hour)
	w.page("/", 200).has("No gate has refused anything in the last 14 days")
	w.want(w.get("/?x=1"), 400, fault.InvalidArgument)
}

func TestTheOverviewSaysThatTheAuditIsNotWhole(t *testing.T) {
	w := newWorld(t, nil)
	w.web.Audit = brokenAudit{w.web.Audit}
	w.refuse(1)
	w.page("/", 200).has("The audit is not whole", "row 1 was altered")
	w.page("/audit", 200).has("The chain is not whole", "row 1 was altered")
}

type brokenAudit struct{ web.Audit }

func (brokenAudit) Verify(context.Context, string) (web.AuditReport, error) {
	return web.AuditReport{FirstBad: 1, Problem: "row 1 was altered"}, nil
}

func TestNoLinkOfAnyPageIsDead(t *testing.T) {
	w, id := dryWorld(t, nil)
	w.refuse(60)
	a := w.submit("/proposals/"+id+"/promote", nil)
	if a.StatusCode != 303 {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	seen := map[string]bool{}
	for queue := []string{"/", a.Header.Get("Location")}; len(queue) > 0; queue = queue[1:] {
		target := queue[0]
		if seen[target] {
			continue
		}
		seen[target] = true
		if target == "/docs" || target == "/audit.jsonl" {
			if a := w.do("HEAD", target, ""); a.StatusCode != 200 {
				t.Errorf("%s: %d", target, a.StatusCode)
			}
			continue
		}
		queue = append(queue, w.page(target, 200).links()...)
	}
	for _, target := range []string{"/proposals", "/pulls", "/pulls/fake/joe/infra/1", "/policy", "/audit", "/doctor", "/proposals?before=13"} {
		if !seen[target] {
			t.Errorf("nothing leads to %s: %v", target, seen)
		}
	}
}

func TestTheListingOfProposalsFiltersAndPagesBothWays(t *testing.T) {
	w := newWorld(t, nil)
	w.refuse(120)
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
	rows := func(d document) int { return len(d.find("tr")) - 1 }
	for query, want := range map[string]int{
		"": 50, "?before=72": 50, "?before=22": 21, "?after=71": 50, "?after=120": 1, "?outcome=opened": 1, "?gate=scope&q=dockerfile": 50,
		"?since=2026-11-20&until=2026-11-20": 50, "?repo=JOE%2Finfra&caller=anonymous": 50,
	} {
		if got := rows(w.page("/proposals"+query, 200)); got != want {
			t.Errorf("%s: %d rows, want %d", query, got, want)
		}
	}
	w.page("/proposals?until=2026-11-19", 200).has("No proposal fits.")
	for query, want := range map[string]string{"": "72", "?before=72": "22"} {
		d := w.page("/proposals"+query, 200)
		if !slices.ContainsFunc(d.find("a"), func(n *html.Node) bool { return attr(n, "href") == "?before="+want && attr(n, "rel") == "next" }) {
			t.Errorf("%q: no link to ?before=%s", query, want)
		}
	}
	for _, query := range []string{"?since=x", "?until=2026-13-01", "?outcome=x", "?before=x", "?before=0", "?nothing=1", "?q=a&q=b"} {
		w.page("/proposals"+query, 400).has("invalid_argument")
	}
}

func TestAProposalIsShownGateByGateWithItsDifference(t *testing.T) {
	w := newWorld(t, nil)
	w.want(w.do("POST", "/api/v1/prs", request(map[string]any{"files": []any{
		file("checks/disk.md", "update", "# Disk\nInodes, too\n"), file("checks/new.md", "create", "# New\n")}})), 201, "")
	w.refuse(1)
	rows := w.attempts()
	d := w.page("/proposals/"+rows[1].RequestID, 200)
	d.has("Check inodes, too", "Compared with main at", "Inodes, too", "arguments pass", "Written by the agent", "checks/new.md", "Pull request #1")
	if slices.ContainsFunc(d.find("p"), func(n *html.Node) bool { return attr(n, "class") == "foreign" }) || strings.Contains(d.text, "claude-ops:v1") {
		t.Error("the mark is shown")
	}
	kinds := map[string]int{}
	for _, tr := range d.find("tr") {
		kinds[attr(tr, "class")]++
	}
	if kinds["add"] != 2 || kinds["same"] != 1 {
		t.Errorf("lines %v", kinds)
	}
	w.page("/proposals/"+rows[1].RequestID+"?view=split", 200).has("Side by side", "before on the left")
	w.page("/proposals/"+rows[0].RequestID, 200).has("scope deny", "rule Dockerfile", "What to do:")
	w.page("/proposals/nothing", 404).has("there is no proposal with this id")

	w.fake.FailBefore("Snapshot", fault.New(fault.UpstreamError, "the host is down"))
	w.page("/proposals/"+rows[1].RequestID, 200).has("the host is down", "Whole new contents")
}

func TestADryRunIsOpenedByAForm(t *testing.T) {
	w, id := dryWorld(t, nil)
	d := w.page("/proposals/"+id, 200)
	forms := d.find("form")
	if len(forms) != 1 || attr(forms[0], "action") != "/proposals/"+id+"/promote" || attr(forms[0], "method") != "post" {
		t.Fatalf("%d forms", len(forms))
	}
	a := w.submit("/proposals/"+id+"/promote", nil)
	newest := w.attempts()[0]
	if a.StatusCode != 303 || a.Header.Get("Location") != "/proposals/"+newest.RequestID || newest.Door != prflow.DoorWeb || newest.PRNumber != 1 {
		t.Fatalf("%d %v, %+v", a.StatusCode, a.Header, newest)
	}
	w.page(a.Header.Get("Location"), 200).has("create_pr.promote", "Pull request #1")

	again := w.read(w.submit("/proposals/"+newest.RequestID+"/promote", nil), "promote", 409)
	again.has("conflict", "What is recorded of this attempt")
	for _, to := range again.links() {
		w.page(to, 200)
	}
}

func TestADryRunIsNotOfferedToWhoMayNotOpenIt(t *testing.T) {
	w, id := dryWorld(t, nil)
	reader := w.signIn(w.token("reader", 2, "read"))
	w.page("/proposals/"+id, 200, with(reader)).has("Opening it needs the scope review")
	w.read(w.submit("/proposals/"+id+"/promote", nil, with(reader)), "promote", 403).has("this needs the scope review")
	if w.fake.Writes() != 0 || w.attempts()[0].Code != fault.Forbidden {
		t.Errorf("%v", w.attempts()[0])
	}
	w.flow.DryRun = true
	w.build()
	w.page("/proposals/"+id, 200, with(reader)).has("the server is in dry run itself")
}

func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	w, id := dryWorld(t, nil)
	w.web.Reviewer = &reviewer{world: w}
	w.build()
	before := len(w.attempts())
	form := "application/x-www-form-urlencoded"
	for _, target := range []string{"/proposals/" + id + "/promote", "/pulls/fake/joe/infra/1/review", "/sign-in", "/sign-out"} {
		for name, e := range map[string]edit{
			"cross-site": header("Sec-Fetch-Site", "cross-site"), "another origin": header("Origin", "https://evil.example"), "no origin": header("Origin", "null"),
		} {
			a := w.do("POST", target, "action=merge", browser, set("Content-Type", form), e)
			if a.StatusCode != 403 {
				t.Errorf("%s, %s: %d", target, name, a.StatusCode)
			}
		}
		for name, e := range map[string]edit{"json": set("Content-Type", "application/json"), "text": set("Content-Type", "text/plain")} {
			if a := w.do("POST", target, "{}", browser, e); target != "/sign-out" && a.StatusCode < 400 {
				t.Errorf("%s, %s: %d", target, name, a.StatusCode)
			}
		}
	}
	if w.fake.Writes() != 0 || len(w.web.Reviewer.(*reviewer).done) != 0 || len(w.attempts()) != before+2 { // the two bodies that were no forms
		t.Errorf("%d writes, %d rows", w.fake.Writes(), len(w.attempts())-before)
	}
	if a := w.do("POST", "/proposals/"+id+"/promote", "", set("Content-Type", form), header("Origin", "http://127.0.0.1:8080")); a.StatusCode != 303 {
		t.Errorf("our own origin: %d %s", a.StatusCode, a.body) // as a browser over plain HTTP says it
	}
}

func TestWhoIsNotSignedInIsLedThroughTheFormAndBack(t *testing.T) {
	w := newWorld(t, func(w *world) { w.web.Network.BasePath = "/ops" })
	token := w.token("ann", 2, "read")
	a := w.get("/ops/proposals?q=a%26b", browser)
	if a.StatusCode != 303 || a.Header.Get("Location") != "/ops/sign-in?next=%2Fproposals%3Fq%3Da%2526b" {
		t.Fatalf("%d %v", a.StatusCode, a.Header)
	}
	w.want(w.get("/ops/proposals"), 401, fault.Unauthenticated) // a program
	d := w.page(a.Header.Get("Location"), 200)
	form := url.Values{"token": {token}}
	for _, input := range d.find("input") {
		if attr(input, "type") == "hidden" {
			form.Set(attr(input, "name"), attr(input, "value"))
		}
	}
	in := w.submit("/ops/sign-in", form)
	if in.StatusCode != 303 || in.Header.Get("Location") != "/ops/proposals?q=a%26b" || len(in.Cookies()) != 1 {
		t.Fatalf("%d %v", in.StatusCode, in.Header)
	}
	w.page(in.Header.Get("Location"), 200, with(in.Cookies()[0])).has("You are ann", "Sign out")
	out := w.submit("/ops/sign-out", nil, with(in.Cookies()[0]))
	if out.StatusCode != 303 || out.Header.Get("Location") != "/ops/sign-in" {
		t.Errorf("%d %v", out.StatusCode, out.Header)
	}
	w.page("/ops/sign-in", 200, with(in.Cookies()[0])).has("the session has ended")
	wrong := w.read(w.submit("/ops/sign-in", url.Values{"token": {"wrong-wrong-wrong"}}), "sign-in", 401)
	wrong.has("the token is not valid")
	if strings.Contains(wrong.text, "wrong-wrong") || len(wrong.find("form")) != 1 {
		t.Error("the token is repeated, or there is no way on")
	}
}

func TestSigningInLeadsNowhereElse(t *testing.T) {
	w := newWorld(t, func(w *world) { w.web.Network.BasePath = "/ops" })
	token := w.token("ann", 2, "read")
	for next, want := range map[string]string{
		"/audit": "/ops/audit", "/proposals?q=x": "/ops/proposals?q=x", "": "/ops/", "/": "/ops/",
		"//evil.example": "/ops/", "https://evil.example": "/ops/", `/\evil.example`: "/ops/", `\\evil.example`: "/ops/", "/%2fevil.example": "/ops/",
		"/%5cevil.example": "/ops/", "/../evil": "/ops/", "/a/../../evil": "/ops/", "/%2e%2e/evil": "/ops/", "javascript:alert(1)": "/ops/",
		"/\tevil": "/ops/", "/\r\nSet-Cookie: a=b": "/ops/", "/%0d%0aSet-Cookie:a": "/ops/", "evil": "/ops/", "///evil.example": "/ops/", "/ //evil": "/ops/",
		"/sign-in?next=/sign-in": "/ops/", "/" + strings.Repeat("a", 3000): "/ops/", "http:/evil.example": "/ops/", "@evil.example/": "/ops/", "/audit#x": "/ops/",
	} {
		w.advance(time.Minute) // the limit of attempts
		a := w.submit("/ops/sign-in", url.Values{"token": {token}, "next": {next}})
		if got := a.Header.Get("Location"); a.StatusCode != 303 || got != want {
			t.Errorf("%q leads to %q", next, got)
		}
		d := w.page("/ops/sign-in?next="+url.QueryEscape(next), 200)
		for _, to := range d.links() {
			if !strings.HasPrefix(to, "/ops/") {
				t.Errorf("%q: a link to %q", next, to)
			}
		}
	}
}

func TestStaticFilesAreKeptForEverAndNothingElseIsServed(t *testing.T) {
	w := newWorld(t, func(w *world) { w.tokens = []string{"a-token-for-these-tests"} })
	d := w.page("/sign-in", 200)
	for _, link := range d.find("link") {
		a := w.get(attr(link, "href"))
		w.want(a, 200, "")
		if !strings.Contains(a.Header.Get("Cache-Control"), "immutable") || a.Header.Get("ETag") == "" || len(a.body) == 0 {
			t.Errorf("%s: %v", attr(link, "href"), a.Header)
		}
		if again := w.get(attr(link, "href"), header("If-None-Match", a.Header.Get("ETag"))); again.StatusCode != 304 {
			t.Errorf("%d", again.StatusCode)
		}
	}
	for _, name := range []string{"", "app.css", "../docs.html", "..%2fdocs.html", "%2e%2e/%2e%2e/etc/passwd", "..%5capp.css", "app.css%00", "/etc/passwd"} {
		if a := w.get("/static/" + name); a.StatusCode != 404 {
			t.Errorf("%q: %d", name, a.StatusCode)
		}
	}
}

func TestErrorsArePagesForBrowsersAndProblemsForPrograms(t *testing.T) {
	w := newWorld(t, nil)
	for accept, isPage := range map[string]bool{
		"": false, "*/*": false, "application/json": false, "text/html": true, "text/html,*/*;q=0.1": true, "application/json, text/html;q=0.5": false,
		"text/html;q=0": false, "application/problem+json, text/html": true, "TEXT/HTML": true, "text/html;q=x": false,
	} {
		a := w.get("/nothing", set("Accept", accept))
		if got := strings.HasPrefix(a.Header.Get("Content-Type"), "text/html"); got != isPage || a.StatusCode != 404 {
			t.Errorf("%q: %d %s", accept, a.StatusCode, a.Header.Get("Content-Type"))
		}
	}
	w.page("/nothing", 404).has("not_found", "exchange-")
}

func TestPullRequestsOfAllRepositoriesEachWithItsOwnFailure(t *testing.T) {
	w := newWorld(t, nil)
	w.fake.AddRepo("joe", "other", map[string]string{"README.md": "x"})
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
	w.page("/pulls", 200).has("fake:joe/infra", "#1 Check inodes, too", "checks/inodes.md")
	w.flow.Policy.EnvRepositories = append(w.flow.Policy.EnvRepositories, pattern(t, "fake:joe/infra"), pattern(t, "joe/other"),
		pattern(t, "gitea:joe/x"), pattern(t, "joe/*"), pattern(t, "fake:joe/missing"))
	w.build()
	d := w.page("/pulls", 200)
	d.has("#1 Check inodes, too", "fake:joe/other None is open", "gitea:joe/x provider_disabled", "GITEA_TOKEN is not set", "fake:joe/missing not_found")
	if n := len(d.find("h2")); n != 4 {
		t.Errorf("%d repositories", n)
	}
	w.page("/pulls/fake/joe/infra/1", 200).has("Pull request #1", "Check inodes, too", "Reviewing and merging happen at the provider")
	for _, target := range []string{"/pulls/fake/joe/infra/99", "/pulls/fake/joe/infra/0", "/pulls/fake/joe/infra/x", "/pulls/fake/-joe/infra/1", "/pulls/nothing/joe/infra/1"} {
		w.page(target, 404)
	}
}

// reviewer notes what it is asked for, over the fake's pull requests.
type reviewer struct {
	*world
	done     []web.Review
	warnings []string
}

func (r *reviewer) Provider() string { return "fake" }

func (r *reviewer) Show(ctx context.Context, owner, name string, number int) (web.ReviewDetail, error) {
	status, err := r.fake.Status(ctx, gitprovider.RepoRef{Owner: owner, Name: name}, number)
	return web.ReviewDetail{Status: status, Diff: "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new <i>\n"}, err
}

func (r *reviewer) Review(_ context.Context, review web.Review) (web.ReviewOutcome, error) {
	if review.Action == "close" {
		return web.ReviewOutcome{}, fault.New(fault.Conflict, "pull request #1 is closed already")
	}
	r.done = append(r.done, review)
	return web.ReviewOutcome{Warnings: r.warnings}, nil
}

func TestAPersonReviewsByAForm(t *testing.T) {
	r := &reviewer{}
	w := newWorld(t, func(w *world) { r.world, w.web.Reviewer = w, r })
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
	const at = "/pulls/fake/joe/infra/1"
	d := w.page(at, 200)
	d.has("Your review", "old", "new <i>")
	head := ""
	for _, input := range d.find("input") {
		if attr(input, "name") == "head" {
			head = attr(input, "value")
		}
	}
	for _, button := range d.find("button") {
		action := attr(button, "value")
		a := w.submit(at+"/review", url.Values{"action": {action}, "comment": {"Good.\r\nYes."}, "head": {head}, "force": {"yes"}})
		if action == "close" {
			w.read(a, "close", 409).has("is closed already")
			continue
		}
		if a.StatusCode != 303 || a.Header.Get("Location") != at+"?done="+action {
			t.Errorf("%s: %d %s", action, a.StatusCode, a.body)
		}
		want := web.Review{Owner: "joe", Name: "infra", Number: 1, Action: action, Comment: "Good.\nYes.", Head: head, Force: true,
			By: prflow.Caller{Door: prflow.DoorWeb, Name: "anonymous"}}
		if got := r.done[len(r.done)-1]; fmt.Sprint(got) != fmt.Sprint(want) || head == "" {
			t.Errorf("%+v", got)
		}
		w.page(a.Header.Get("Location"), 200).has("You")
	}
	if len(r.done) != 4 {
		t.Errorf("%d reviews", len(r.done))
	}
	r.warnings = []string{"the branch was not deleted"}
	w.read(w.submit(at+"/review", url.Values{"action": {"merge"}}), "merge", 200).has("You have merged it", "the branch was not deleted")
	for name, form := range map[string]url.Values{"no action": {}, "an unknown one": {"action": {"push"}}, "two": {"action": {"merge", "close"}}} {
		if a := w.submit(at+"/review", form); a.StatusCode != 400 {
			t.Errorf("%s: %d", name, a.StatusCode)
		}
	}
	reader := w.signIn(w.token("reader", 3, "read", "propose"))
	w.page(at, 200, with(reader)).has("Reviewing needs the scope review")
	w.read(w.submit(at+"/review", url.Values{"action": {"merge"}}, with(reader)), "merge", 403)
	if len(r.done) != 5 {
		t.Errorf("%d reviews", len(r.done))
	}
}

func TestThePolicyAnswersWithTheRule(t *testing.T) {
	w := newWorld(t, nil)
	w.page("/policy", 200).has("checks/*.md", "Tier 1 may not propose.", "A file may have 262144 bytes")
	for query, want := range map[string]string{
		"tier=2&path=checks/x.md": "Yes. Tier 2 may change checks/x.md, by the rule checks/*.md", "tier=1&path=checks/x.md": "No. Tier 1 may not change",
		"tier=3&path=Dockerfile": "by the rule Dockerfile", "path=..%2Fx": "No. Tier 2 may not change ../x", "tier=3&path=%3Cscript%3E%E2%80%AE": "may not change <script>",
	} {
		w.page("/policy?"+query, 200).has(want)
	}
	w.page("/policy?tier=4&path=x", 400)
}

func TestTheAuditIsShownVerifiedAndGivenOutWhole(t *testing.T) {
	w := newWorld(t, nil)
	w.page("/audit", 200).has("The record is empty", "The chain is whole: 0 rows")
	w.refuse(603)
	w.advance(time.Minute)
	w.page("/audit", 200).has("The chain is whole: 603 rows", "scope_denied")
	w.page("/audit?before=4", 200).has("Newer")
	w.page("/audit?after=600", 200).has("Older")
	out := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "http://127.0.0.1:8080/audit.jsonl", nil)
	r.RemoteAddr = "127.0.0.1:50000"
	w.handler.ServeHTTP(out, r)
	lines := bytes.Split(bytes.TrimSuffix(out.Body.Bytes(), []byte("\n")), []byte("\n"))
	if out.Header().Get("Content-Type") != "application/jsonl; charset=utf-8" || len(lines) != 603 {
		t.Fatalf("%d lines, %v", len(lines), out.Header())
	}
	prev := strings.Repeat("0", 64)
	for i, text := range lines {
		var row web.AuditEntry
		if err := json.Unmarshal(text, &row); err != nil || row.Seq != int64(i+1) || i > 0 && row.PrevHash != prev {
			t.Fatalf("line %d: %v %s", i, err, text)
		}
		prev = row.Hash
	}
}

// failing gives out one page and then fails.
type failing struct{ web.Audit }

func (f failing) Page(ctx context.Context, q web.AuditQuery) ([]prflow.RecordedAttempt, error) {
	if q.After > 0 {
		return nil, fault.New(fault.Internal, "the disk is gone")
	}
	q.Limit = 2
	return f.Audit.Page(ctx, q)
}

func TestADownloadThatFailsIsCutOffAndNotEnded(t *testing.T) {
	w := newWorld(t, nil)
	w.refuse(5)
	w.web.Audit = failing{w.web.Audit}
	w.build()
	defer func() {
		if p := recover(); p != http.ErrAbortHandler {
			t.Errorf("the handler ended with %v", p)
		}
	}()
	w.get("/audit.jsonl")
	t.Error("the handler returned as if the body were whole")
}

func TestHostileTextIsShownHarmlessOnEveryPage(t *testing.T) {
	w := newWorld(t, nil)
	evil := "\"'><script>alert(1)</script><b onclick=x>\u202e\u200b\x1b[2J {{.}} " + strings.Repeat("A", 1<<20)
	paths := make([]string, 1000)
	for i := range paths {
		paths[i] = evil[:60] + fmt.Sprint(i)
	}
	violations := make([]fault.Violation, 1000)
	for i := range violations {
		violations[i] = fault.Violation{Code: "scope_denied", Path: evil[:80], Rule: evil[:80], Message: evil[:200], Suggestion: evil[:80]}
	}
	a := prflow.Attempt{
		Time: w.Now(), RequestID: "evil-1", Door: prflow.DoorMCP, Caller: evil, Tier: 2, Action: prflow.ActionCreate, Provider: "fake",
		Owner: evil[:90], Repo: "../..", Base: evil[:90], Branch: evil[:90], Title: evil, Paths: paths, Outcome: prflow.OutcomeRefused, Code: "scope_denied",
		Message: evil, PRNumber: 7, PRURL: "javascript:alert(1)",
		Verdicts: []prflow.Verdict{{Gate: prflow.GateScope, Ruling: prflow.Deny, Detail: evil, Violations: violations}},
	}
	p := prflow.Proposal{
		ID: "evil-2", CreatedAt: w.Now(), Caller: evil, Tier: 2, Provider: "fake", Owner: "joe", Repo: "infra", Base: "main", Title: evil[:200],
		Body: "# <i>x</i>\n[a](javascript:alert(1)) <script>alert(1)</script>\n\n" + evil, Digest: "d", ChangeType: "fix",
		Progress: prflow.Progress{State: prflow.StateDryRun, Branch: evil[:90], PRURL: "data:text/html,x"},
	}
	for i := range 100 {
		p.Files = append(p.Files, gitprovider.FileChange{
			Path: fmt.Sprintf("checks/n%d.md", i), Action: "create", Content: evil[:len(evil)/(i*i+1)],
		})
	}
	ctx := context.Background()
	if err := w.store.Record(ctx, a, nil); err != nil {
		t.Fatal(err)
	}
	a.RequestID, a.Outcome, a.Code = "evil-2", prflow.OutcomeDryRun, ""
	if err := w.store.Record(ctx, a, &p); err != nil {
		t.Fatal(err)
	}
	repo := gitprovider.RepoRef{Owner: "joe", Name: "infra"}
	hosted := w.fake.World(t, repo)
	hosted.Push("claude-ops/fix/x", providertest.File{Path: "checks/z.md", Content: evil})
	pr := hosted.OpenPR("claude-ops/fix/x", evil[:200], "claude-ops")
	hosted.Review(pr, "ann<script>\u202e", gitprovider.ReviewCommented, evil)
	w.web.Doctor = func(context.Context) []web.Finding {
		return []web.Finding{{Name: "x", Status: "problem", Detail: evil}}
	}
	for _, target := range []string{
		"/", "/proposals", "/proposals?q=" + url.QueryEscape(evil[:60]), "/proposals/evil-1", "/proposals/evil-2", "/proposals/evil-2?view=split",
		"/pulls", fmt.Sprintf("/pulls/fake/joe/infra/%d", pr), "/audit", "/doctor", "/policy?path=" + url.QueryEscape(evil[:300]),
		"/sign-in?next=" + url.QueryEscape(evil[:60]),
	} {
		d := w.page(target, 200) // and what wellFormed says
		if n := len(d.text); n > 3<<20 {
			t.Errorf("%s: %d bytes of text", target, n)
		}
	}
	d := w.page("/proposals/evil-1", 200)
	d.has(" more.", "<script>alert(1)</script>")
	w.page("/proposals/evil-2", 200).has("more files are not shown", "more bytes are not shown")
	w.page("/nothing/"+url.PathEscape(evil[:60]), 404)
}

func pattern(t *testing.T, text string) policy.RepoPattern {
	t.Helper()
	p, err := policy.ParseRepoPattern(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
