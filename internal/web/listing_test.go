package web_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
)

// refuse records n refusals.
func (w *world) refuse(n int) {
	w.Helper()
	for range n {
		w.want(w.do("POST", "/api/v1/prs", request(files(file("Dockerfile", "create", "x\n")))), 403, fault.ScopeDenied)
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
			w.refuse(7)
			seqs, pages := w.walk("/api/v1/"+listing+"?limit=3", key, func() { w.refuse(2) })
			if fmt.Sprint(seqs) != "[7 6 5 4 3 2 1]" || pages != 3 {
				t.Errorf("%v in %d pages", seqs, pages)
			}
		})
	}
}

func TestAPageThatIsFullToTheLastRowHasNoNext(t *testing.T) {
	t.Parallel()
	for listing, key := range map[string]string{"proposals": "proposals", "audit": "entries"} {
		w := newWorld(t, nil)
		w.refuse(3)
		a := w.get("/api/v1/" + listing + "?limit=3")
		if rows := a.json[key].([]any); len(rows) != 3 || a.json["next_cursor"] != nil {
			t.Errorf("%s: %d rows, next %v", listing, len(rows), a.json["next_cursor"])
		}
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
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
	a := w.get("/api/v1/proposals/" + w.attempts()[0].RequestID)
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
	err := w.store.Ledger.Record(context.Background(), record.Attempt{
		RequestID: "hostile", Door: record.DoorMCP, Caller: hostile, Action: record.ActionCreate, Owner: hostile,
		Title: hostile,
		Paths: []string{hostile}, Branch: hostile, Message: hostile, Outcome: record.OutcomeRefused,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
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
		"/openapi.json", "/docs"} {
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
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
	w.get("/no/such/route")
	text := string(w.get("/metrics").body)
	for _, want := range []string{
		`claudeops_attempts_total{code="scope_denied",door="rest",gate="scope",outcome="refused",provider="fake"} 2`,
		`claudeops_attempts_total{code="",door="rest",gate="",outcome="opened",provider="fake"} 1`,
		`claudeops_attempt_duration_seconds_count{door="rest",outcome="refused"} 2`,
		`claudeops_http_requests_total{route="POST /api/v1/prs",status="201"} 1`,
		`claudeops_http_requests_total{route="none",status="404"} 1`, `claudeops_info{`, "go_goroutines",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
	if again := string(w.get("/metrics").body); !strings.Contains(again,
		`gate="scope",outcome="refused",provider="fake"} 2`) {
		t.Error("rows were counted twice")
	}
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	w.want(w.get("/readyz"), 503, fault.Internal)
	w.want(w.get("/healthz"), 200, "")
}
