package web_test

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// refuse records n refusals: that of a request, and others like it.
func (w *world) refuse(n int) {
	w.Helper()
	w.want(w.do("POST", "/api/v1/prs", request(files(file("Dockerfile", "create", "x\n")))), 403, fault.ScopeDenied)
	row := w.attempts()[0].Attempt
	for range n - 1 {
		row.Time, row.RequestID = w.Now(), w.flow.NewID()
		w.record(row)
	}
}

// walk follows a listing to its end and returns the rows' numbers; between is called after each page.
func (w *world) walk(target, key string, between func()) (seqs []int, pages int) {
	w.Helper()
	cursor := ""
	for pages = 0; pages == 0 || cursor != ""; pages++ {
		a := w.get(target + "&cursor=" + url.QueryEscape(cursor))
		w.want(a, 200, "")
		for _, entry := range a.json[key].([]any) {
			seqs = append(seqs, int(entry.(map[string]any)["seq"].(float64)))
		}
		cursor, _ = a.json["next_cursor"].(string)
		between()
	}
	return seqs, pages
}

func TestPagesNeitherRepeatNorSkipWhileAttemptsAreRecorded(t *testing.T) {
	t.Parallel()
	for listing, key := range map[string]string{"proposals": "proposals", "audit": "entries"} {
		t.Run(listing, func(t *testing.T) {
			w := newWorld(t, nil)
			w.refuse(3)
			if seqs, pages := w.walk("/api/v1/"+listing+"?limit=3", key, func() {}); len(seqs) != 3 || pages != 1 {
				t.Errorf("a page that is full to the last row: %v in %d pages", seqs, pages)
			}
			w.refuse(4)
			seqs, pages := w.walk("/api/v1/"+listing+"?limit=3", key, func() { w.refuse(2) })
			if fmt.Sprint(seqs) != "[7 6 5 4 3 2 1]" || pages != 3 {
				t.Errorf("%v in %d pages", seqs, pages)
			}
		})
	}
}

func TestFiltersOfProposals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.refuse(1)
	w.advance(time.Hour)
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
	for query, want := range map[string]int{
		"": 2, "outcome=opened": 1, "outcome=refused": 1, "gate=scope": 1, "gate=caps": 0, "code=scope_denied": 1,
		"caller=somebody": 2,
		"caller=nobody":   0, "repo=JOE/infra": 2, "repo=joe/x": 0, "door=rest": 2, "door=mcp": 0, "q=INODES": 2,
		"q=dockerfile": 1, "q=%25": 0,
		"since=2026-11-20T12:30:00Z": 1, "until=2026-11-20T12:30:00Z": 1, "since=2026-11-20T14:30:00%2B02:00": 1,
		"outcome=&gate=": 2, "provider=fake": 2, "provider=gitea": 0,
	} {
		a := w.get("/api/v1/proposals?" + query)
		w.want(a, 200, "")
		if got := len(a.json["proposals"].([]any)); got != want {
			t.Errorf("%s: %d, want %d", query, got, want)
		}
	}
}

func TestAQueryThatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.refuse(3)
	audit := w.get("/api/v1/audit?limit=1").json["next_cursor"].(string)
	for _, target := range []string{
		"/proposals?outcome=won", "/proposals?gate=x", "/proposals?limit=0", "/proposals?limit=-1", "/proposals?limit=x",
		"/proposals?limit=1.5",
		"/proposals?since=yesterday", "/proposals?unknown=1", "/proposals?outcome=opened&outcome=refused",
		"/proposals?cursor=x",
		"/proposals?cursor=" + audit, "/proposals?cursor=cHJvcG9zYWxzOi0x", "/proposals?a;b", "/proposals?q=%zz",
		"/audit?outcome=x", "/audit?cursor=%00",
		"/audit/verify?expect_head=123", "/audit/verify?x=1", "/prs?a;b", "/proposals?limit=99999999999999999999",
		"/proposals?code=no%20code", "/audit?code=X", "/proposals?q=" + strings.Repeat("a", 201),
		"/audit?caller=" + strings.Repeat("a", 201),
		"/proposals/" + strings.Repeat("a", 65), "/sessions/" + strings.Repeat("a", 65),
	} {
		a := w.get("/api/v1" + target)
		if a.StatusCode != 400 || a.code() != string(fault.InvalidArgument) {
			t.Errorf("%s: %d %s", target, a.StatusCode, a.body)
		}
	}
	a := w.get("/api/v1/proposals?outcome=won&limit=x&zz=1")
	if violations := a.json["violations"].([]any); len(violations) != 3 {
		t.Errorf("not every violation at once: %s", a.body)
	}
	w.want(w.get("/api/v1/proposals?limit=100000"), 200, "")
}

func TestAProposalIsShownGateByGateWithItsContents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	a := w.get("/api/v1/proposals/" + w.opened(nil))
	w.want(a, 200, "")
	change := a.json["change"].(map[string]any)
	first := a.json["attempts"].([]any)[0].(map[string]any)
	if change["state"] != "opened" || len(change["files"].([]any)) != 1 ||
		len(first["gates"].([]any)) != len(prflow.Gates()) || first["outcome"] != "opened" {
		t.Errorf("got %s", a.body)
	}
	w.refuse(1)
	a = w.get("/api/v1/proposals/" + w.attempts()[0].RequestID)
	w.want(a, 200, "")
	if a.json["change"] != nil || fmt.Sprint(a.json["attempts"].([]any)[0].(map[string]any)["denied_by"]) != "[scope]" {
		t.Errorf("got %s", a.body)
	}
	w.want(w.get("/api/v1/proposals/%00"), 400, fault.InvalidArgument)
	for _, id := range []string{"nothing", "..%2f..", strings.Repeat("x", 64), "%27%20OR%201=1"} {
		w.want(w.get("/api/v1/proposals/"+id), 404, fault.NotFound)
	}
}

func TestHostileTextIsShownHarmless(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	hostile := "<script>alert(1)</script>\u202e\u200b\x00\x1b[31m" + strings.Repeat("x", 10_000)
	w.record(record.Attempt{
		RequestID: "hostile", Door: record.DoorMCP, Caller: hostile, Action: record.ActionCreate, Owner: hostile,
		Title: hostile,
		Paths: []string{hostile}, Branch: hostile, Message: hostile, Outcome: record.OutcomeRefused,
	})
	a := w.get("/api/v1/proposals")
	w.want(a, 200, "")
	text := string(a.body)
	if strings.ContainsAny(text, "\u202e\u200b\x00\x1b") || strings.Contains(text, `\u202e`) ||
		strings.Contains(text, `\u001b`) || len(text) > 15_000 {
		t.Errorf("%d bytes: %q", len(text), text[:min(len(text), 500)])
	}
	if kind := a.Header.Get("Content-Type"); kind != "application/json" ||
		a.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("a browser might take it for %s", kind)
	}
}

func TestACallerThatHasTheAnswerIsNotSentItAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.refuse(1)
	for _, target := range []string{"/api/v1/proposals", "/api/v1/audit", "/api/v1/policy", "/api/v1/providers",
		"/openapi.json"} {
		tag := w.get(target).Header.Get("ETag")
		for given, want := range map[string]int{tag: 304, "W/" + tag: 304, `"x", ` + tag: 304, "*": 304, `"x"`: 200} {
			a := w.get(target, header("If-None-Match", given))
			if tag == "" || a.StatusCode != want || want == 304 && len(a.body) != 0 {
				t.Errorf("%s, %s: %d", target, given, a.StatusCode)
			}
		}
	}
	tag := w.get("/api/v1/proposals").Header.Get("ETag")
	w.refuse(1)
	w.want(w.get("/api/v1/proposals", header("If-None-Match", tag)), 200, "")
	if head := w.do("HEAD", "/api/v1/proposals", ""); head.StatusCode != 200 || len(head.body) != 0 ||
		head.Header.Get("Content-Length") == "0" {
		t.Errorf("HEAD: %d %v", head.StatusCode, head.Header)
	}
}

func TestTheAuditIsVerified(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.refuse(2)
	a := w.get("/api/v1/audit/verify")
	if a.json["ok"] != true || a.json["rows"] != float64(2) {
		t.Errorf("got %s", a.body)
	}
	a = w.get("/api/v1/audit/verify?expect_head=" + strings.Repeat("1", 64))
	w.want(a, 200, "")
	if a.json["ok"] != false || a.json["problem"] == "" {
		t.Errorf("got %s", a.body)
	}
}

func TestThePolicyAnswersQuestionsAndGivesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	check := func(body string) reply { return w.do("POST", "/api/v1/policy/check", body) }
	for body, want := range map[string]string{
		`{"paths":["checks/x.md"]}`:                                                    "true 2",
		`{"paths":["checks/x.md"],"tier":1}`:                                           "false 1",
		`{"paths":["checks/x.md","Dockerfile"]}`:                                       "false 2",
		`{"paths":["checks/a.md","checks/A.md"]}`:                                      "false 2",
		`{"paths":["checks/1.md","checks/2.md","checks/3.md","checks/4.md"]}`:          "false 2",
		`{"paths":["checks/1.md","checks/2.md","checks/3.md","checks/4.md"],"tier":3}`: "true 3",
		`{"paths":["checks/\u202e.md"]}`:                                               "false 2",
	} {
		a := check(body)
		w.want(a, 200, "")
		if got := fmt.Sprint(a.json["allowed"], a.json["tier"]); got != want {
			t.Errorf("%s: %s, want %s: %s", body, got, want, a.body)
		}
	}
	for _, body := range []string{`{}`, `{"paths":[]}`, `{"paths":["a"],"tier":4}`, `{"paths":["a"],"tier":-1}`,
		`{"paths":"a"}`, `[]`, `{"paths":["a"],"paths":["b"]}`} {
		w.want(check(body), 400, fault.InvalidArgument)
	}
	a := w.get("/api/v1/policy")
	if a.json["tier"] != float64(2) || a.json["policy"].(map[string]any)["hash"] == "" {
		t.Errorf("got %s", a.body)
	}
}

func TestProbesAndMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.want(w.get("/readyz"), 200, "")
	w.want(w.get("/readyz?providers=1"), 200, "")
	w.get("/metrics")
	w.refuse(2)
	w.opened(nil)
	w.get("/no/such/route")
	for range 2 { // no row is counted twice
		w.measures(
			`claudeops_attempts_total{code="scope_denied",door="rest",gate="scope",outcome="refused",provider="fake"} 2`,
			`claudeops_attempts_total{code="",door="rest",gate="",outcome="opened",provider="fake"} 1`,
			`claudeops_attempt_duration_seconds_count{door="rest",outcome="refused"} 2`,
			`claudeops_http_requests_total{route="POST /api/v1/prs",status="201"} 1`,
			`claudeops_http_requests_total{route="none",status="404"} 1`, `claudeops_info{`, "go_goroutines ")
	}
	must.Do(t, w.store.Close())
	w.want(w.get("/readyz"), 503, fault.Internal)
	w.want(w.get("/healthz"), 200, "")
}

func TestAProposalTellsWhatBecameOfItsPullRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id := w.opened(nil)
	pull := func() any {
		t.Helper()
		detail := w.get("/api/v1/proposals/" + id)
		w.want(detail, 200, "")
		inDetail := detail.json["attempts"].([]any)[0].(map[string]any)["pull"]
		inList := w.get("/api/v1/proposals").json["proposals"].([]any)[0].(map[string]any)["pull"]
		if diff := cmp.Diff(inDetail, inList); diff != "" {
			t.Errorf("the list tells something else (-detail +list):\n%s", diff)
		}
		return inDetail
	}
	r, found, err := w.store.Pulls.FindPull(t.Context(), record.PullKey{Provider: "fake", Owner: "joe", Repo: "infra",
		Number: 1})
	if err != nil || !found {
		t.Fatal(found, err)
	}
	want := map[string]any{"state": "open", "head": r.Head, "approvals": 0.0, "changes_requested": 0.0}
	if diff := cmp.Diff(any(want), pull()); diff != "" {
		t.Errorf("before anybody has looked (-want +got):\n%s", diff)
	}

	w.advance(time.Hour)
	r.State, r.EndedAt, r.EndedBy, r.SeenBy = gitprovider.StateMerged, w.Now().Add(-time.Minute), "ann <b>"+
		ownToken, record.DoorWebhook
	r.SeenAt, r.Approvals, r.Checks = w.Now(), 2, gitprovider.ChecksSuccess
	if ok, err := w.store.Pulls.SeePull(t.Context(), r, nil); !ok || err != nil {
		t.Fatal(ok, err)
	}
	got := pull().(map[string]any)
	if got["state"] != "merged" || got["as_of"] != "2026-11-20T13:00:00Z" || got["ended_at"] != "2026-11-20T12:59:00Z" ||
		got["seen_by"] != "webhook" ||
		got["approvals"] != 2.0 || got["checks"] != "success" {
		t.Errorf("got %v", got)
	}
	w.page("/changes?tab=merged", 200).has("Check inodes, too", "Merged")
	for _, target := range []string{"/pulls/fake/joe/infra/1", "/api/v1/proposals/" + id} {
		w.says(w.get(target), "!"+ownToken)
	}
}

// What was opened and has ended since is not told as open anywhere, and each state can be asked for.
func TestListingsTellTheStateOfPullRequestsAndFilterByIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, n := range []string{"a", "b", "c"} {
		change := files(file("checks/"+n+".md", "create", n))
		change["title"] = "Check " + n
		w.opened(change)
	}
	for number, state := range map[int]gitprovider.State{1: gitprovider.StateMerged, 2: gitprovider.StateClosed} {
		w.seen(number, func(r *record.PullRecord) { r.State, r.SeenAt = state, w.Now() })
	}
	for state, number := range map[string]float64{"merged": 1, "closed": 2, "open": 3} {
		list := w.get("/api/v1/proposals?pull=" + state).json["proposals"].([]any)
		if len(list) != 1 || list[0].(map[string]any)["pr_number"] != number ||
			list[0].(map[string]any)["pull"].(map[string]any)["state"] != state {
			t.Errorf("proposals with pull=%s: %v", state, list)
		}
		rows := w.get("/api/v1/audit?pull=" + state).json["entries"].([]any)
		if len(rows) != 1 || rows[0].(map[string]any)["pr_number"] != number ||
			rows[0].(map[string]any)["pull_state"] != state {
			t.Errorf("audit with pull=%s: %v", state, rows)
		}
		n := strconv.Itoa(int(number))
		tab := map[string]string{"merged": "Merged", "closed": "Closed", "open": "Needs review"}
		w.page(w.get("/proposals?pull="+state).Header.Get("Location"), 200).has("#"+n, tab[state],
			"Check "+string(rune('a'+int(number)-1)))
	}
	if list := w.get("/api/v1/proposals?pull=gone").json["proposals"].([]any); len(list) != 0 {
		t.Errorf("gone are %v", list)
	}
	w.want(w.get("/api/v1/proposals?pull=draft"), 400, fault.InvalidArgument)
	w.want(w.get("/api/v1/audit?pull=draft"), 400, fault.InvalidArgument)
	w.page("/changes", 200).has("All 3", "Waiting for reviewers 1", "Merged 1", "Closed 1")
}

func TestAProposalWhoseContentsWereRemovedSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.flow.Authority.DryRun = true })
	dry := w.do("POST", "/api/v1/prs", request(nil))
	w.want(dry, 200, "")
	id := w.attempts()[0].RequestID
	w.advance(100 * 24 * time.Hour)
	prune(t, w.store, w.Now())
	w.flow.Authority.DryRun, w.handler = false, nil
	person := bearer(w.token("person", gitprovider.TierInvestigate, access.AllScopes()...))

	detail := w.get("/api/v1/proposals/"+id, person)
	w.want(detail, 200, "")
	change := detail.json["change"].(map[string]any)
	if change["pruned_at"] != w.Now().Format(time.RFC3339) || change["body"] != "" || change["title"] == "" {
		t.Errorf("got %v", change)
	}
	w.says(w.get("/proposals/"+id, person), "Text and contents were removed on 2027-02-28", "checks/inodes.md",
		"cannot be opened any more")
	w.want(w.do("POST", "/api/v1/proposals/"+id+"/promote", "", person), 409, fault.Conflict)
	if w.fake.Script.Writes() != 0 {
		t.Errorf("calls %v", w.fake.Script.Calls())
	}
}

// prune removes what is older than a time, and returns what that was.
func prune(t testing.TB, s *store.Store, before time.Time) []record.Pruned {
	t.Helper()
	removed, err := s.Retention.Prune(context.Background(), before,
		func([]record.Pruned) record.Attempt { return record.Attempt{Action: "prune"} })
	must.Do(t, err)
	return removed
}

// TestAnOldChangeIsStillOnePullRequest asks for the same change again after all that retention removes is gone.
func TestAnOldChangeIsStillOnePullRequest(t *testing.T) {
	t.Parallel()
	other := files(file("checks/inodes.md", "create", "# Other\n"))
	for name, tt := range map[string]struct {
		happens func(w *world, people providertest.World) // to the pull request meanwhile
		body    string
		status  int
		code    fault.Code
	}{
		"the same change is answered with it": {nil, request(nil), 200, ""},
		"also if it has lost its labels": {
			func(w *world, people providertest.World) { w.fake.People.Unlabel(people.Ref(), 1) }, request(nil), 200, "",
		},
		"another change to its file is a duplicate": {nil, request(other), 409, fault.DuplicatePR},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
			w.advance(100 * 24 * time.Hour)
			if tt.happens != nil {
				tt.happens(w, w.fake.World(t, gitprovider.RepoRef{Owner: "joe", Name: "infra"}))
			}
			made := func() int {
				return w.fake.Script.Count(forgetest.MethodCommit) + w.fake.Script.Count(forgetest.MethodOpenPullRequest)
			}
			before := made()
			removed := prune(t, w.store, w.Now().AddDate(0, 0, -90))
			if removed[0] != (record.Pruned{Kind: "proposals", Rows: 1}) {
				t.Fatalf("removed %v", removed)
			}
			a := w.do("POST", "/api/v1/prs", tt.body)
			w.want(a, tt.status, tt.code)
			if tt.code == "" && (a.json["number"] != float64(1) || a.json["reused"] != true) {
				t.Errorf("got %s", a.body)
			}
			if made() != before {
				t.Errorf("calls %v", w.fake.Script.Calls())
			}
		})
	}
}
