package web_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/testkit/must"
	"github.com/claudeops/claudeops/internal/web/views"
)

func TestThePageOfSessionsOffersToStartOneToWhoeverMay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.page("/sessions", 200).has("No session has run yet", "needs the scope operate", "nothing is scheduled")
	w.agents.plan.Cadence = "every 1h0m0s"
	w.agents.plan.Every, w.agents.plan.Next = time.Hour, w.Now().Add(20*time.Minute)
	w.agents.plan.After = func(due time.Time) time.Time { return due.Add(time.Hour) }
	w.signedIn()
	d := w.page("/sessions", 200)
	d.has("Start a session", "in 20 min tier 1, every 1 h")
	w.page("/sessions/schedule", 200).has("starts every 1 h", "due in 20 min, at 2026-11-20 12:20:00 UTC",
		"Coming runs", "and 18 more")
	d.has("Tier 1 Tier 2 What the agent") // the tiers up to what the server permits
	a := w.submit("/sessions", url.Values{"tier": {"1"}, "note": {"two\r\nlines"}})
	if a.StatusCode != 303 || a.Header.Get("Location") != "/sessions/session-0001" {
		t.Fatalf("%d %v", a.StatusCode, a.Header)
	}
	if spec := w.agents.started[0]; spec.Note != "two\nlines" || spec.Trigger != sessions.TriggerDashboard ||
		spec.Tier != 1 {
		t.Errorf("started %+v", spec)
	}
	d = w.page("/sessions/session-0001", 200)
	d.has("Running Tier 1, dashboard", "two lines", "Stop", "It has said nothing yet")
	w.page("/", 200).has("Running now", "A session of tier 1")
	w.page("/sessions", 200).has("Tier 1, dashboard", "Running now 1")
	w.status(w.submit("/sessions/session-0001/stop", nil), 303)
	d = w.page("/sessions/session-0001", 200)
	d.has("Stopped")
	d.lacks("Stop ")
	if rows := w.agents.rows; len(rows) != 2 || rows[0].Door != "web" || rows[1].Action != "session.stop" {
		t.Errorf("recorded %+v", rows)
	}
}

func TestAFormThatIsNoOrderStartsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.read(w.submit("/sessions", url.Values{"tier": {"1"}}), "without a token", 403).has("operate")
	w.signedIn()
	for name, form := range map[string]url.Values{
		"no tier": {}, "an empty tier": {"tier": {""}}, "two tiers": {"tier": {"1", "2"}}, "tier 4": {"tier": {"4"}},
		"two notes": {"tier": {"1"}, "note": {"a", "b"}},
	} {
		w.read(w.submit("/sessions", form), name, 400).has("the form must have the field tier, once")
	}
	w.read(w.submit("/sessions", url.Values{"tier": {"3"}}), "tier 3", 403).has("CLAUDEOPS_MAX_TIER")
	w.status(w.submit("/sessions", url.Values{"tier": {"1"}}, set("Sec-Fetch-Site", "cross-site")), 403)
	if len(w.agents.started) != 0 || len(w.agents.rows) != 7 {
		t.Errorf("started %v, recorded %+v", w.agents.started, w.agents.rows)
	}
}

func TestThePageOfASessionShowsAllOfIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	handoff := sessions.Handoff{
		Version: 1, RecommendedTier: 3, Services: []string{"dns"},
		Findings:     []sessions.Found{{Key: "dns-slow", Text: "the resolver is slow"}},
		WantedChange: sessions.Wanted{File: "checks/dns.md", Evidence: "4 s", Text: "Warn at 500 ms."},
	}
	ended := w.Now()
	w.begun(sessions.Record{ID: "run-1", EndedAt: ended, Next: "run-2", Task: sessions.Task{Tier: 1},
		Ending:   sessions.Ending{State: sessions.StateSucceeded},
		Handover: sessions.Handover{Handoff: &handoff, Escalation: "escalated to tier 2"}})
	w.begun(sessions.Record{
		ID:        "run-2",
		Parent:    "run-1",
		Next:      "run-3",
		StartedAt: ended,
		EndedAt:   ended.Add(150 * time.Second),
		Task: sessions.Task{Tier: 2, Trigger: sessions.TriggerEscalation, Model: "sonnet",
			Toolsets: []string{"pr", "definitions"}},
		Ending: sessions.Ending{State: sessions.StateFailed, Reason: "claude exited with code 3"},
		Work: sessions.Work{Turns: 7, ToolCalls: 9,
			Usage: sessions.Usage{InputTokens: 12, OutputTokens: 34, CostUSD: 0.5, CostSource: sessions.CostEstimate}, Denied: 2,
			Denials: []string{"Bash"}, LeftOut: []string{"infra: no"}},
		Output: sessions.Output{CutLines: 1, Report: "I looked.", Stderr: "out of memory"},
		Handover: sessions.Handover{Received: &handoff, HandoffProblem: "it is empty", Open: []sessions.Escalated{
			{Key: "dns-slow", Tier: 2, Sessions: []string{"run-2"}, At: ended, Pulls: []string{"demo/home-cluster#1"}},
		}},
	})
	noted := []string{"checks/backup.md: 41 min"}
	must.Do(t, w.note("run-2", ended, noted))
	w.page("/sessions", 200).has("Journal", noted[0])
	d := w.page("/sessions/run-2", 200)
	d.has("Noted for later sessions", noted[0], "Still open dns-slow tier 2, now, pull request", "demo/home-cluster#1")
	d.has("Toolsets pr, definitions", "Failed. Claude exited with code 3.", "2 min", "Turns 7, with 9 tool calls",
		"12 in, 34 out", "about $0.50 an estimate by list prices", "Denied", "2 times: Bash", "Left out infra: no",
		"1 lines beyond the bound",
		"Tier 2, this one", "the resolver is slow", "checks/dns.md", "Warn at 500 ms.", "I looked.", "out of memory",
		"It cannot be used: it is empty", "It said nothing")
	if !slices.Contains(d.links(), "/sessions/run-1") || slices.Contains(d.links(), "/sessions/run-3") {
		t.Errorf("links %v", d.links())
	}
	w.page("/sessions", 200).has("Tokens and cost of the last 7 days", "2026-", "about $0.50")
	w.page("/sessions/run-1", 200).has("escalated to tier 2", "Recommends tier 3")
	w.page("/", 200).has("Session of tier 2: failed", "claude exited with code 3")
	w.begun(sessions.Record{ID: "run-4", EndedAt: w.Now(), Task: sessions.Task{Tier: 2},
		Ending: sessions.Ending{State: sessions.StateSucceeded}})
	w.page("/", 200).lacks("Session of tier 2: failed")
	w.page("/sessions/none", 404)
}

func TestOutputIsShownInPartWithLinksToTheRest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id := w.begun(sessions.Record{ID: "run-1"})
	var events []sessions.Event
	for i := range 120 {
		events = append(events, sessions.Event{Kind: "text", Text: fmt.Sprintf("line %d.", i+1)})
	}
	events[119].Text = strings.Repeat("long ", 1600)
	w.said(id, 1, events...)
	for query, want := range map[string]struct{ first, last, links string }{
		"":          {"line 71.", "It is longer", "?from=21#output"},
		"?from=21":  {"line 21.", "line 70.", "?from=1#output ?from=71#output /sessions/run-1#output"},
		"?from=1":   {"line 1.", "line 50.", "?from=51#output /sessions/run-1#output"},
		"?from=999": {"line 71.", "It is longer", "?from=21#output /sessions/run-1#output"},
	} {
		d := w.page("/sessions/run-1"+query, 200)
		d.has(want.first, want.last, "of 120")
		var links []string
		for _, a := range d.find("a") {
			if href := attr(a, "href"); strings.HasSuffix(href, "#output") {
				links = append(links, href)
			}
		}
		if got := strings.Join(links, " "); got != want.links || len(d.find("li")) > 80 {
			t.Errorf("%q: links %s", query, got)
		}
	}
	w.page("/sessions/run-1?from=0", 400)
}

func TestWhatAgentsWriteIsShownHarmless(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	evil := "\"'><script>alert(1)</script><b onclick=x hx-get=/x data-live>\u202e\u200b\x1b[2J {{.}} " + ownToken +
		strings.Repeat("A", 1<<18)
	h := sessions.Handoff{
		Version: 1, RecommendedTier: 2, Services: []string{evil}, Findings: []sessions.Found{{Key: evil, Text: evil}},
		WantedChange: sessions.Wanted{File: evil, Evidence: evil, Text: evil},
	}
	w.begun(sessions.Record{
		ID:      "run-1",
		EndedAt: w.Now(),
		Task:    sessions.Task{Model: evil, Note: evil},
		Ending:  sessions.Ending{State: sessions.StateFailed, Reason: evil, Claude: evil},
		Work:    sessions.Work{Denials: []string{evil}, LeftOut: []string{evil}, Denied: 1},
		Output:  sessions.Output{Report: evil, Stderr: evil},
		Handover: sessions.Handover{Escalation: evil, Handoff: &h, Received: &h, HandoffProblem: evil,
			HandoffNotes: []string{evil}, Open: []sessions.Escalated{
				{Key: evil, Tier: 2, Sessions: []string{"run-1"}, Pulls: []string{evil}},
			}},
	})
	must.Do(t, w.note("run-1", w.Now(), []string{evil}))
	w.said("run-1", 1, sessions.Event{Kind: evil[:50], Tool: evil[:50], Text: evil})
	for _, target := range []string{"/sessions", "/sessions/run-1", "/"} {
		d := w.page(target, 200) // and what wellFormed says
		if strings.Contains(d.text, ownToken) || len(d.text) > 1<<20 {
			t.Errorf("%s: %d bytes, a token %t", target, len(d.text), strings.Contains(d.text, ownToken))
		}
	}
	for _, target := range []string{"/api/v1/sessions", "/api/v1/sessions/run-1", "/api/v1/sessions/run-1/events"} {
		w.says(w.get(target), "!"+ownToken, "!\u202e", "!\u200b")
	}
}

func TestThePageOfSessionsFiltersAndPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for i := range 60 {
		w.begun(sessions.Record{ID: fmt.Sprintf("run-%02d", i), EndedAt: w.Now(),
			Ending: sessions.Ending{State: sessions.StateCancelled}})
	}
	rows := func(query string) int { return len(w.page("/sessions"+query, 200).find("tr")) - 1 }
	const sums = 2 // further rows: those of the tokens and costs, on the first page alone
	for query, want := range map[string]int{"": 30 + sums, "?before=run-10": 10, "?state=cancelled": 30,
		"?state=cancelled&before=run-05": 5} {
		if got := rows(query); got != want {
			t.Errorf("%s: %d rows, want %d", query, got, want)
		}
	}
	w.page("/sessions?state=failed", 200).has("No session fits")
	w.page("/sessions?state=odd", 400)
	if !slices.ContainsFunc(w.page("/sessions", 200).links(),
		func(l string) bool { return strings.HasSuffix(l, "before=run-30") }) {
		t.Error("nothing leads to older ones")
	}
}

func TestASessionOfAnotherScopeIsNotOffered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.begun(sessions.Record{ID: "run-1"})
	w.person = w.token("eve", 3, access.Read)
	w.page("/sessions/run-1", 200).lacks("Stop ")
}

func TestEveryListOfSessionsSaysWhyOneFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	why := map[string]sessions.Ending{
		"the rate limit of the model's API is reached; see above": {State: sessions.StateFailed,
			Reason: "the rate limit of the model's API is reached;\nsee above"},
		"claude exited with code 3; nothing more is recorded": {State: sessions.StateFailed, ExitCode: 3},
		"it took longer than 30m0s": {State: sessions.StateTimeout,
			Reason: "it took longer than 30m0s"},
		"a person stopped it": {State: sessions.StateCancelled,
			Reason: "a person stopped it"},
		"the process that ran it was killed": {State: sessions.StateInterrupted},
		"another session was running":        {State: sessions.StateSkipped},
	}
	number := 0
	for _, ending := range why {
		number++
		w.begun(sessions.Record{ID: fmt.Sprintf("run-%d", number), EndedAt: w.Now(), Task: sessions.Task{Tier: 1},
			Ending: ending})
	}
	page := w.page("/sessions", 200)
	list := w.get("/api/v1/sessions")
	w.want(list, 200, "")
	for text := range why {
		shown, _ := views.Variables(views.Plain(text))
		page.has(strings.ToUpper(shown[:1]) + shown[1:])
		if !strings.Contains(string(list.body), text) &&
			!strings.Contains(string(list.body), strings.ReplaceAll(text, "'", `\u0027`)) {
			t.Errorf("REST lacks %q: %s", text, list.body)
		}
	}
}

func TestSessionsAreFoundByWhatWasAskedAndFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for i, note := range []string{"Look at the DNS of db-3", "Restart the queue", "dns again"} {
		w.begun(sessions.Record{ID: fmt.Sprintf("run-%d", i), EndedAt: w.Now(), Task: sessions.Task{Note: note, Tier: 1}})
	}
	page := w.page("/sessions?q=Dns", 200)
	page.has("Look at the DNS of db-3", "dns again", "2 found")
	page.lacks("Restart the queue")
	w.page("/sessions?q=model", 200).has("No session fits")
	w.page("/sessions?q=queue&tier=1", 200).has("Restart the queue", "1 found")
	w.says(w.get("/api/v1/sessions?q=DNS&limit=1"), "run-2", "!run-0", `"next_cursor":`)
}
