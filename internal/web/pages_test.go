package web_test

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/records"
)

// submit sends a form from our own origin.
func (w *world) submit(target string, form url.Values, edits ...edit) reply {
	w.Helper()
	own := []edit{browser, header("Sec-Fetch-Site", "same-origin"),
		set("Content-Type", "application/x-www-form-urlencoded")}
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
	d.has("Waiting for you 1", "Broken now 0 nothing", "Refused, 24 hours 2 2 of them: file is protected", "Cost, 7 days",
		"Server health", "tier 2",
		"Check inodes, too Nothing was written.", "File is protected 2", "somebody was refused", "1 Dry run", "2 Refused",
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
	w.web.Records.Audit = brokenAudit{w.web.Records.Audit}
	w.refuse(1)
	w.verify()
	w.page("/", 200).has("The records are not whole Row 1 was altered.", "Broken now 1", "Server health Look")
	w.page("/audit", 200).has("The record is broken", "row 1 was altered")
}

type brokenAudit struct{ records.Audit }

func (brokenAudit) Verify(context.Context, string) (record.AuditReport, error) {
	return record.AuditReport{FirstBad: 1, Problem: "row 1 was altered"}, nil
}

func TestNoLinkOfAnyPageIsDead(t *testing.T) {
	t.Parallel()
	w, id := dryWorld(t, nil)
	w.signedIn()
	w.refuse(60)
	a := w.submit("/proposals/"+id+"/promote", nil)
	if a.StatusCode != 303 {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	seen := map[string]bool{}
	for queue := []string{"/"}; len(queue) > 0; queue = queue[1:] {
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
		if a := w.get(target, browser); a.StatusCode == 303 {
			queue = append(queue, a.Header.Get("Location"))
			continue
		}
		queue = append(queue, w.page(target, 200).links()...)
	}
	for _, target := range []string{"/changes", "/changes/forges", "/pulls/fake/joe/infra/1", "/policy", "/audit",
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
		"": 50, "?before=72": 50, "?before=22": 21, "?after=71": 50, "?after=120": 1, "?gate=scope&q=dockerfile": 50,
		"?since=2026-11-20&until=2026-11-20": 50, "?repo=JOE%2Finfra&caller=somebody": 50, "?tab=refused": 50,
		"?tab=waiting": 1, "?q=%231": 1,
	} {
		if got := rows(w.page("/changes"+query, 200)); got != want {
			t.Errorf("%s: %d rows, want %d", query, got, want)
		}
	}
	w.page("/changes?until=2026-11-19", 200).has("No change fits")
	for query, want := range map[string]string{"": "72", "?before=72": "22"} {
		d := w.page("/changes"+query, 200)
		if !slices.ContainsFunc(d.find("a"), func(n *html.Node) bool {
			return attr(n, "href") == "?before="+want &&
				attr(n, "rel") == "next"
		}) {
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
	w.want(w.do("POST", "/api/v1/prs", request(map[string]any{"files": []any{
		file("checks/disk.md", "update", "# Disk\nInodes, too\n"), file("checks/new.md", "create", "# New\n")}})), 201, "")
	w.refuse(1)
	rows := w.attempts()
	d := w.page("/proposals/"+rows[1].RequestID+"?as=proposed", 200)
	d.has("Check inodes, too", "Compared with main at", "Inodes, too", "11 of 11 checks passed", "Request passed",
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
	w.page("/proposals/"+rows[0].RequestID, 200).has("File is protected, nothing was written.",
		"1 of 11 checks refused it", "Rule Dockerfile", "To mend it:", "was refused", "Stopped by Protected files")
	if a := w.get("/proposals/"+rows[1].RequestID, browser); a.StatusCode != 303 ||
		a.Header.Get("Location") != "/pulls/fake/joe/infra/1" {
		t.Errorf("a proposal that is a pull request leads to %d %v", a.StatusCode, a.Header)
	}
	w.page("/pulls/fake/joe/infra/1", 200).has("Compared with main at", "Inodes, too", "11 of 11 checks passed",
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
	w.read(w.submit("/proposals/"+id+"/promote", nil, with(reader)), "promote", 403).has("this needs the scope review")
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
	w.page("/policy", 200).has("checks/*.md", "Tier 1 may not propose.", "A file may have 262144 bytes")
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

// A change of where later proposals go is marked where people list, read and merge proposals.
func TestAProposalThatRedirectsLaterOnesIsMarked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.signedIn()
	w.want(w.do("POST", "/api/v1/prs", request(map[string]any{
		"title": "Move", "files": []any{map[string]any{"path": "CLAUDE-OPS.md", "action": "create",
			"content": "## Git Provider\n\n- provider: evil\n"}},
	})), 201, "")
	id := w.attempts()[0].RequestID
	const note = "provider `evil` (was not set)"
	for _, target := range []string{"/", "/changes"} {
		w.page(target, 200).has("redirects proposals")
	}
	w.page("/pulls/fake/joe/infra/1", 200).has("Mind before merging:", note)
	for _, target := range []string{"/api/v1/proposals", "/api/v1/proposals/" + id, "/api/v1/audit"} {
		if !strings.Contains(string(w.get(target).body), note) {
			t.Errorf("%s does not tell of it", target)
		}
	}
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
	other := w.attempts()[0].RequestID
	if body := string(w.get("/proposals/"+other, header("Accept", "text/html")).body); strings.Contains(body,
		"Mind before merging") {
		t.Error("another proposal is marked, too")
	}
}
