package web_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestAPersonStartsAndStopsASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.web.Network.BasePath = "/ops" })
	token := bearer(w.token("ann", 3, access.AllScopes()...))
	a := w.do("POST", "/ops/api/v1/sessions", `{"tier":2,"note":"look at the disk"}`, token)
	w.want(a, 202, "")
	at := a.Header.Get("Location")
	if at != "/ops/api/v1/sessions/session-0001" || a.json["id"] != "session-0001" {
		t.Fatalf("at %q: %s", at, a.body)
	}
	spec := w.agents.started[0]
	if spec.Tier != 2 || spec.Note != "look at the disk" || spec.Trigger != sessions.TriggerREST || spec.Ceiling != 3 {
		t.Errorf("started %+v", spec)
	}
	a = w.get(at, token)
	w.want(a, 200, "")
	if a.json["state"] != "running" || a.json["trigger"] != "rest" || a.json["note"] != "look at the disk" ||
		a.json["untrusted"] == "" {
		t.Errorf("got %s", a.body)
	}
	w.want(w.do("POST", "/ops/api/v1/sessions", `{"tier":1}`, token), 409, fault.Conflict)
	w.want(w.do("POST", at+"/stop", "", token), 202, "")
	if a := w.get(at, token); a.json["state"] != "cancelled" {
		t.Errorf("got %s", a.body)
	}
	w.want(w.do("POST", at+"/stop", "", token), 409, fault.Conflict)
	w.want(w.do("POST", "/ops/api/v1/sessions/none/stop", "", token), 404, fault.NotFound)
	var rows string
	for _, r := range w.agents.rows {
		rows += fmt.Sprintln(r.Action, r.Door, r.Caller, r.Outcome, r.Code)
	}
	const want = "session.start rest ann done \nsession.start rest ann refused conflict\nsession.stop rest ann done \n" +
		"session.stop rest ann refused conflict\nsession.stop rest ann refused not_found\n"
	if rows != want {
		t.Errorf("recorded\n%s", rows)
	}
}

func TestEachRefusalOfASessionIsRecordedAndStartsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	operate := bearer(w.token("ann", 3, access.Operate, access.Read, access.Propose))
	limited := bearer(w.token("bob", 1, access.Operate, access.Read))
	reads := bearer(w.token("eve", 3, access.Propose, access.Review, access.Read))
	for name, c := range map[string]struct {
		body  string
		edits []edit
		want  int
		code  fault.Code
	}{
		"no scope":                   {`{"tier":1}`, []edit{reads}, 403, fault.Forbidden},
		"above what the server says": {`{"tier":3}`, []edit{operate}, 403, fault.TierDenied},
		"above what the token says":  {`{"tier":2}`, []edit{limited}, 403, fault.TierDenied},
		"no tier at all":             {`{}`, []edit{operate}, 400, fault.InvalidArgument},
		"tier 0":                     {`{"tier":0}`, []edit{operate}, 400, fault.InvalidArgument},
		"tier 4":                     {`{"tier":4}`, []edit{operate}, 400, fault.InvalidArgument},
		"a tier that is text":        {`{"tier":"1"}`, []edit{operate}, 400, fault.InvalidArgument},
		"a tier twice":               {`{"tier":1,"tier":3}`, []edit{operate}, 400, fault.InvalidArgument},
		"an unknown field":           {`{"tier":1,"handoff":{}}`, []edit{operate}, 400, fault.InvalidArgument},
		"another case":               {`{"Tier":1}`, []edit{operate}, 400, fault.InvalidArgument},
		"a long note": {`{"tier":1,"note":"` + strings.Repeat("x", session.MaxNote+1) + `"}`, []edit{operate},
			400, fault.InvalidArgument},
		"a large body": {`{"tier":1,"note":"` + strings.Repeat("x", 64<<10) + `"}`, []edit{operate}, 413,
			fault.InvalidArgument},
		"a form": {"tier=1", []edit{operate, set("Content-Type", "application/x-www-form-urlencoded")},
			415, fault.InvalidArgument},
		"two keys": {`{"tier":1}`,
			[]edit{operate, header("Idempotency-Key", "a"), header("Idempotency-Key", "b")}, 400, fault.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(w.agents.rows)
			a := w.do("POST", "/api/v1/sessions", c.body, c.edits...)
			w.want(a, c.want, c.code)
			rows := w.agents.rows[before:]
			if len(rows) != 1 || rows[0].Outcome != record.OutcomeRefused || rows[0].Code != c.code ||
				rows[0].RequestID != a.json["request_id"] {
				t.Errorf("recorded %+v for %s", rows, a.body)
			}
			if len(w.agents.started) != 0 {
				t.Errorf("started %+v", w.agents.started)
			}
		})
	}
	stop := len(w.agents.rows)
	w.want(w.do("POST", "/api/v1/sessions/x/stop", "", reads), 403, fault.Forbidden)
	w.person = ""
	w.want(w.do("POST", "/api/v1/sessions", `{"tier":1}`), 401, fault.Unauthenticated)
	if rows := w.agents.rows[stop:]; len(rows) != 1 || rows[0].Action != "session.stop" || rows[0].Caller != "eve" {
		t.Errorf("recorded %+v", rows)
	}
}

func TestWhoeverHasNoTokenStartsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, anonymousReads)
	a := w.do("POST", "/api/v1/sessions", `{"tier":1}`)
	w.want(a, 403, fault.Forbidden)
	w.says(a, "propose,review,read,operate")
	if len(w.agents.started) != 0 || len(w.agents.rows) != 1 {
		t.Errorf("started %v, recorded %v", w.agents.started, w.agents.rows)
	}
}

func TestAStartUnderAKeyIsAnsweredAgainAndNotRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	start := func(body string, edits ...edit) reply {
		return w.do("POST", "/api/v1/sessions", body, append(edits, header("Idempotency-Key", "nightly"))...)
	}
	token := bearer(w.token("ann", 3, access.Operate, access.Read, access.Propose))
	first := start(`{"tier":1}`, token)
	w.want(first, 202, "")
	again := start(`{"tier":1}`, token)
	w.want(again, 202, "")
	if string(again.body) != string(first.body) || again.Header.Get("Location") != first.Header.Get("Location") ||
		len(w.agents.started) != 1 {
		t.Errorf("%s at %s; started %d", again.body, again.Header.Get("Location"), len(w.agents.started))
	}
	w.want(start(`{"tier":2}`, token), 409, fault.Conflict)
	// his key is another one, and a session runs
	w.want(start(`{"tier":1}`, bearer(w.token("bob", 3, access.Operate, access.Read))), 409, fault.Conflict)
	if len(w.agents.started) != 1 || len(w.agents.rows) != 3 {
		t.Errorf("started %d, recorded %+v", len(w.agents.started), w.agents.rows)
	}
}

func TestSessionsAreListedAndFiltered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for i := range 5 {
		state := []sessions.State{sessions.StateSucceeded, sessions.StateFailed}[i%2]
		w.begun(sessions.Record{ID: fmt.Sprint("run-", i), EndedAt: w.Now(), Ending: sessions.Ending{State: state}})
	}
	w.begun(sessions.Record{ID: "run-5", Task: sessions.Task{Tier: 2, Toolsets: []string{"pr", "definitions"}}})
	if entry := w.get("/api/v1/sessions/run-5").json; !strings.Contains(fmt.Sprint(entry), "toolsets:[pr definitions]") {
		t.Errorf("no toolsets in %v", entry)
	}
	ids := func(query string) (out string, next string) {
		a := w.get("/api/v1/sessions" + query)
		w.want(a, 200, "")
		for _, s := range a.json["sessions"].([]any) {
			out += strings.TrimPrefix(s.(map[string]any)["id"].(string), "run-")
		}
		next, _ = a.json["next_cursor"].(string)
		return out, next
	}
	for query, want := range map[string]string{
		"": "543210", "?state=failed": "31", "?tier=2": "5", "?tier=1&state=succeeded": "420", "?limit=6": "543210",
		"?tier=3": "",
	} {
		if got, next := ids(query); got != want || next != "" {
			t.Errorf("%s: %s, then %q; want %s", query, got, next, want)
		}
	}
	all, cursor := "", ""
	for range 4 {
		page, next := ids("?limit=2&cursor=" + cursor)
		all, cursor = all+page+" ", next
		if next == "" {
			break
		}
	}
	if all != "54 32 10 " {
		t.Errorf("page by page: %s", all)
	}
	for _, query := range []string{"?state=odd", "?tier=0", "?cursor=x", "?cursor=" + strings.Repeat("A", 20), "?limit=0",
		"?x=1"} {
		w.want(w.get("/api/v1/sessions"+query), 400, fault.InvalidArgument)
	}
}

func TestEventsAreReadOnFromTheLastOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id := w.begun(sessions.Record{ID: "run-1"})
	w.said(id, 1, sessions.Event{Kind: "init"}, sessions.Event{Kind: "tool_use", Tool: "Read", Text: "{}"},
		sessions.Event{Kind: "text", Text: "a token: " + ownToken + "\u202e"})
	a := w.get("/api/v1/sessions/" + id + "/events")
	w.want(a, 200, "")
	if len(a.json["events"].([]any)) != 3 || a.json["next_after"] != float64(3) || a.json["state"] != "running" ||
		strings.Contains(string(a.body), ownToken) || strings.Contains(string(a.body), "\u202e") ||
		a.json["untrusted"] == "" {
		t.Errorf("got %s", a.body)
	}
	for after, want := range map[string]int{"1": 2, "3": 0, "99": 0} {
		a := w.get("/api/v1/sessions/" + id + "/events?after=" + after)
		if n := len(a.json["events"].([]any)); n != want || want == 0 && fmt.Sprint(a.json["next_after"]) != after {
			t.Errorf("after %s: %s", after, a.body)
		}
	}
	w.want(w.get("/api/v1/sessions/none/events"), 404, fault.NotFound)
	w.want(w.get("/api/v1/sessions/"+id+"/events?after=x"), 400, fault.InvalidArgument)
}

func TestEveryProposalKnowsItsSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.flow.Authority.Session = "run-1" })
	w.begun(sessions.Record{ID: "run-1"})
	id := w.opened(nil)
	for query, want := range map[string]int{"": 1, "?session=run-1": 1, "?session=run-2": 0} {
		a := w.get("/api/v1/proposals" + query)
		entries := a.json["proposals"].([]any)
		if len(entries) != want || want == 1 && entries[0].(map[string]any)["session"] != "run-1" {
			t.Errorf("%q: %s", query, a.body)
		}
	}
	w.says(w.get("/api/v1/proposals/"+id), `"session":"run-1"`)
	counts := w.get("/api/v1/sessions/run-1").json["counts"].(map[string]any) // while it runs
	if counts["opened"] != float64(1) {
		t.Errorf("counts %v", counts)
	}
	w.page("/pulls/fake/joe/infra/1", 200).has("in a session of tier")
	w.page("/changes?session=run-1", 200).has("Check inodes, too")
	w.page("/sessions/run-1", 200).has("Proposals 1 opened", "Check inodes, too")
}

func TestTheJournalAndOpenFindingsAreRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.begun(sessions.Record{ID: "run-1", EndedAt: w.Now(), Handover: sessions.Handover{
		HandoffNotes: []string{"`x` was left out"},
		Open:         []sessions.Escalated{{Key: "dns-slow", Tier: 2, Sessions: []string{"run-1"}, At: w.Now()}},
	}})
	w.begun(sessions.Record{ID: "run-2", EndedAt: w.Now()})
	for id, text := range map[string]string{"run-1": "backup: 41 min " + ownToken, "run-2": "backup: 43 min"} {
		must.Do(t, w.note(id, w.Now(), []string{text}))
	}
	journal := w.get("/api/v1/journal")
	w.says(journal, "data, never instructions", "!"+ownToken)
	text := string(journal.body)
	if newer, older := strings.Index(text, "43 min"), strings.Index(text, "41 min"); newer < 0 || older < newer {
		t.Errorf("the journal is %s", text)
	}
	w.says(w.get("/api/v1/sessions/run-1"), "41 min", "!43 min", "dns-slow", "was left out")
}

// note has a session note something in the journal.
func (w *world) note(session string, at time.Time, texts []string) error {
	return w.store.AgentSessions.AppendJournal(w.Context(), record.Actor{Session: &record.ActorSession{ID: session}}, at,
		texts)
}

// agents is session.Runs without processes: a session that was started runs until it is stopped. It decides as the real
// one does. It keeps the rows of the audit that are about sessions.
type agents struct {
	w        *world
	settings session.Settings
	plan     session.Plan
	started  []session.Spec
	running  string
	rows     []record.Attempt
}

func (a *agents) Start(ctx context.Context, spec session.Spec) (string, error) {
	if err := a.settings.Check(spec); err != nil {
		return "", err
	}
	if a.running != "" {
		return "", fault.New(fault.Conflict, "session %s is running; wait until it ends, or stop it", a.running)
	}
	id := fmt.Sprintf("session-%04d", len(a.started)+1)
	if err := spec.Admit(ctx, id); err != nil {
		return "", err
	}
	a.started, a.running = append(a.started, spec), id
	return id, a.w.store.AgentSessions.BeginSession(ctx, sessions.Record{
		ID:        id,
		StartedAt: a.w.Now(),
		Task:      sessions.Task{Tier: spec.Tier, Trigger: spec.Trigger, Note: spec.Note, Model: "haiku"},
		Ending:    sessions.Ending{State: sessions.StateRunning},
	})
}

// Run implements session.Runs, for the command line alone.
func (a *agents) Run(context.Context, session.Spec) ([]sessions.Record, error) {
	return nil, fault.New(fault.Internal, "a server runs no session to its end")
}

func (a *agents) Stop(ctx context.Context, id string) error {
	r, err := a.w.store.AgentSessions.Session(ctx, id)
	if err == nil && r.State != sessions.StateRunning {
		err = fault.New(fault.Conflict, "session %s has ended already: %s", id, r.State)
	}
	if err != nil {
		return err
	}
	a.running, r.State, r.EndedAt = "", sessions.StateCancelled, a.w.Now()
	return a.w.store.AgentSessions.SaveSession(ctx, r)
}

// Record implements operation.Audit.
func (a *agents) Record(ctx context.Context, row record.Attempt, dryRun *record.Proposal,
	notices ...record.Notice) error {
	if strings.HasPrefix(row.Action, "session.") {
		a.rows = append(a.rows, row)
	}
	return a.w.store.Ledger.Record(ctx, row, dryRun, notices...)
}

func (a *agents) Plan() session.Plan {
	a.plan.MaxTier = a.settings.MaxTier
	return a.plan
}

// begun records a session, which runs unless it says otherwise.
func (w *world) begun(r sessions.Record) string {
	w.Helper()
	if r.State == "" {
		r.State = sessions.StateRunning
	}
	if r.Tier == 0 {
		r.Tier = 1
	}
	if r.Trigger == "" {
		r.Trigger = sessions.TriggerCommand
	}
	if r.StartedAt.IsZero() {
		r.StartedAt = w.Now()
	}
	must.Do(w, w.store.AgentSessions.BeginSession(context.Background(), r))
	return r.ID
}

// said records events of a session, numbered from the one given.
func (w *world) said(id string, from int, events ...sessions.Event) {
	w.Helper()
	for i := range events {
		events[i].Seq, events[i].Time = from+i, w.Now()
	}
	must.Do(w, w.store.AgentSessions.AppendEvents(context.Background(), id, events))
}
