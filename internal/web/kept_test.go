package web_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/testkit/must"
	"github.com/claudeops/claudeops/internal/web/views"
)

// recorded is embedded under a name that is none of its methods.
type recorded interface{ views.Attempts }

// countedAttempts counts how often a page of attempts is read.
type countedAttempts struct {
	recorded
	reads atomic.Int64
}

func (c *countedAttempts) Attempts(ctx context.Context, q record.AttemptQuery) ([]record.RecordedAttempt, error) {
	c.reads.Add(1)
	return c.recorded.Attempts(ctx, q)
}

// It runs alone: what others let the shared scanner learn makes answers anew.
func TestAnswersAreKeptUntilSomethingIsRecorded(t *testing.T) {
	counted := &countedAttempts{}
	w := newWorld(t, func(w *world) {
		counted.recorded = w.web.Records.Attempts
		w.web.Records.Attempts = counted
	})
	reads := func(target string) int64 {
		t.Helper()
		before := counted.reads.Load()
		w.want(w.get(target), 200, "")
		return counted.reads.Load() - before
	}
	w.refuse(1)
	for _, target := range []string{"/changes", "/api/v1/proposals", "/api/v1/proposals?q=none"} {
		if reads(target) == 0 {
			t.Errorf("%s: the first answer is read from the records", target)
		}
		if n := reads(target); n != 0 {
			t.Errorf("%s: nothing was recorded, and %d pages were read", target, n)
		}
		w.advance(11 * time.Second)
		if reads(target) == 0 {
			t.Errorf("%s: an old answer is kept", target)
		}
		w.refuse(1)
		if reads(target) == 0 {
			t.Errorf("%s: what was recorded since is not read", target)
		}
	}
	if n := strings.Count(string(w.get("/api/v1/proposals").body), `"outcome":"refused"`); n != 4 {
		t.Errorf("%d refusals are listed, want 5", n)
	}
}

// summed is embedded under a name that is none of its methods.
type summed interface{ views.Summary }

// countedSummary counts how often an overview is made: each asks once for what was refused in 24 hours, and for a week.
type countedSummary struct {
	summed
	reads atomic.Int64
}

func (c *countedSummary) RefusalsByCode(ctx context.Context, since time.Time) ([]record.CodeCount, error) {
	c.reads.Add(1)
	return c.summed.RefusalsByCode(ctx, since)
}

// It runs alone: what others let the shared scanner learn makes answers anew.
func TestTheOverviewIsKeptUntilWhatItIsMadeOfChanges(t *testing.T) {
	counted := &countedSummary{}
	w := newWorld(t, func(w *world) {
		counted.summed = w.web.Records.Summary
		w.web.Records.Summary = counted
	})
	other, token := w.another(w.dir), w.token("ann", 2, access.Read)
	asks := bearer(token)
	made := func() bool {
		t.Helper()
		before := counted.reads.Load()
		w.want(w.get("/", asks), 200, "")
		return counted.reads.Load() != before
	}
	running := sessions.Record{ID: "session-1", StartedAt: w.Now(),
		Task: sessions.Task{Tier: 2, Trigger: sessions.TriggerCommand}}
	running.State = sessions.StateRunning
	key := record.PullKey{Provider: "fake", Owner: "joe", Repo: "infra", Number: 7}
	var browser *http.Cookie
	for _, change := range []struct {
		name string
		make func()
	}{
		{"the start", func() {}},
		{"a refusal", func() { w.refuse(1) }},
		{"a refusal by another process", func() { w.proposed(other, "r1", record.OutcomeRefused, 0) }},
		{"a dry run", func() { w.proposed(other, "d1", record.OutcomeDryRun, 0) }},
		{"a pull request", func() { w.proposed(other, "o1", record.OutcomeOpened, 7) }},
		{"its approval", func() {
			seePull(t, other, key, func(r *record.PullRecord) { r.Approvals = 1 })
		}},
		{"a session", func() {
			must.Do(t, other.AgentSessions.BeginSession(context.Background(), running))
		}},
		{"a person who signs in", func() { browser = w.signIn(token) }},
		{"a person who signs out", func() { w.submit("/sign-out", nil, with(browser)) }},
		{"a verification", w.verify},
		{"a credential that is learnt", func() { t.Cleanup(scanner.Learn("learnt-while-kept-0123456789")) }},
		{"ten seconds", func() { w.advance(10 * time.Second) }},
		{"a day", func() { w.advance(24 * time.Hour) }},
	} {
		change.make()
		if !made() {
			t.Errorf("after %s, the overview is what it was before", change.name)
		}
		if made() {
			t.Errorf("after %s, the overview is made twice", change.name)
		}
	}
	asks = bearer(w.token("ben", 2, access.Read))
	if !made() || made() {
		t.Error("the overview of another person is not made once")
	}
}

// What one caller was shown is not shown to another: each has a name in the frame of a page, and rights of its own.
func TestKeptAnswersAreTheCallersOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	ann, ben := bearer(w.token("ann", 2, access.Read, access.Operate)), bearer(w.token("ben", 2, access.Read))
	for _, target := range []string{"/", "/changes"} {
		w.says(w.get(target, ann), "<bdi>ann</bdi>")
		w.says(w.get(target, ben), "<bdi>ben</bdi>", "!ann", "!Start a session")
	}
	for _, target := range []string{"/", "/api/v1/proposals"} {
		w.want(w.get(target), 200, "")
		w.want(w.get(target, bearer("nobody-knows-this-token")), 401, fault.Unauthenticated)
	}
}

// Whether an unfinished proposal is worked on is asked while a page holds a connection. The world has a single one, so
// that a page that wanted a second would wait for itself, or for the one beside it.
func TestPagesSideBySideWhileAProposalIsUnfinished(t *testing.T) {
	w := newWorld(t, nil)
	p := record.Proposal{ID: "unfinished", Provider: "fake", Owner: "joe", Repo: "infra", Base: "main", Title: "Check",
		Files: []gitprovider.FileChange{{Path: "checks/inodes.md", Action: gitprovider.ActionCreate}}}
	if taken, err := w.store.Ledger.Reserve(t.Context(), p, record.Claim{}); err != nil || taken != nil {
		t.Fatal(taken, err)
	}
	w.signedIn()
	_ = w.get("/readyz", browser) // the first request makes the server
	atOnce(12, func(i int) {
		w.status(w.get([]string{"/", "/changes", "/api/v1/proposals", "/readyz"}[i%4], browser), 200)
	})
}

// Doctor writes to the records in order to see that it can. The first page that has it look does not hold them then.
func TestTheFirstPageFindsTheRecordsWritable(t *testing.T) {
	for _, path := range []string{"/", "/changes"} {
		w := newWorld(t, func(w *world) {
			w.web.Rules.Doctor = func(ctx context.Context) []doctor.Finding {
				if err := w.store.Check(ctx); err != nil {
					return []doctor.Finding{{Name: doctor.RecordsPart, Status: doctor.Problem, Detail: err.Error()}}
				}
				return []doctor.Finding{{Name: doctor.RecordsPart, Status: doctor.OK}}
			}
		})
		w.signedIn()
		w.page(path, 200).has("Healthy")
	}
}

// another is a store on the records of the world, as another process has one.
func (w *world) another(dir string) *store.Store {
	w.Helper()
	s, err := store.Open(context.Background(), dir, store.Options{Now: w.Now})
	must.Do(w, err)
	w.Cleanup(func() { _ = s.Close() })
	return s
}

// proposed records a proposal with the outcome.
func (w *world) proposed(s *store.Store, id string, outcome record.Outcome, number int) {
	w.Helper()
	ctx := context.Background()
	a := record.Attempt{
		Time: w.Now(), RequestID: id, Door: record.DoorMCP, Caller: "claude", Tier: 2, Action: record.ActionCreate,
		Provider: "fake",
		Owner:    "joe", Repo: "infra", Base: "main", Title: "Title of " + id, Paths: []string{"checks/" + id + ".md"},
		Digest: id, Outcome: outcome,
	}
	p := record.Proposal{
		ID: id, CreatedAt: w.Now(), Door: a.Door, Caller: a.Caller, Tier: a.Tier, Provider: a.Provider, Owner: a.Owner,
		Repo: a.Repo, Base: a.Base,
		ChangeType: gitprovider.TypeCheck, Title: a.Title, Digest: id,
		Files: []gitprovider.FileChange{{Path: a.Paths[0], Action: gitprovider.ActionCreate, Content: "x\n"}},
	}
	var err error
	switch outcome {
	case record.OutcomeDryRun:
		err = s.Ledger.Record(ctx, a, &p)
	case record.OutcomeOpened:
		if _, err = s.Ledger.Reserve(ctx, p, record.Claim{Seen: 1 << 40}); err == nil {
			a.PRNumber, a.PRURL = number, fmt.Sprintf("https://git.example.org/%d", number)
			err = s.Ledger.Finish(ctx, id, record.Progress{State: record.StateOpened, PRNumber: number, PRURL: a.PRURL}, a)
		}
	default:
		a.Code, a.Message = fault.ScopeDenied, "refused "+id
		a.Verdicts = []record.Verdict{{Gate: record.GateScope, Ruling: record.Deny}}
		err = s.Ledger.Record(ctx, a, nil)
	}
	must.Do(w, err)
}

// Another process records one thing after the other, and the next answer of the server shows each: nothing that is kept
// of pages and rows is older than what it is made of.
func TestTheNextAnswerShowsWhatAnotherProcessHasRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	other := w.another(w.dir)
	ctx := context.Background()
	key := record.PullKey{Provider: "fake", Owner: "joe", Repo: "infra", Number: 7}
	running := sessions.Record{ID: "session-1", StartedAt: w.Now(),
		Task: sessions.Task{Tier: 2, Trigger: sessions.TriggerCommand}}
	running.State = sessions.StateRunning
	for _, step := range []struct {
		name   string
		record func()
		want   map[string]string // what the page has
		lacks  map[string]string
	}{
		{"a refusal", func() { w.proposed(other, "r1", record.OutcomeRefused, 0) },
			map[string]string{"/": "Title of r1", "/changes": "Title of r1", "/api/v1/proposals": `"r1"`}, nil},
		{"another, and the gate's count", func() { w.proposed(other, "r2", record.OutcomeRefused, 0) },
			map[string]string{"/": `<rect width="100" height="8"/></svg></dd><dd>2</dd>`, "/changes": "Title of r2",
				"/api/v1/proposals": `"r2"`}, nil},
		{"a dry run", func() { w.proposed(other, "d1", record.OutcomeDryRun, 0) },
			map[string]string{"/": "Nothing was written.", "/changes": "Title of d1"}, nil},
		{"an opened pull request", func() { w.proposed(other, "o1", record.OutcomeOpened, 7) },
			map[string]string{"/": "Nobody has reviewed it", "/changes": "Needs review", "/api/v1/proposals": `"pr_number":7`},
			nil},
		{"its approval", func() { seePull(t, other, key, func(r *record.PullRecord) { r.Approvals = 1 }) },
			map[string]string{"/": "<strong>Approved</strong>", "/api/v1/proposals": `"approvals":1`}, nil},
		{"its merge", func() {
			seePull(t, other, key, func(r *record.PullRecord) { r.State = gitprovider.StateMerged })
		}, map[string]string{"/changes": `Merged</span>`, "/api/v1/proposals": `"state":"merged"`},
			map[string]string{"/": "<strong>Approved</strong>"}},
		{"a session that begins", func() { must.Do(t, other.AgentSessions.BeginSession(ctx, running)) },
			map[string]string{"/": "Running now"}, nil},
		{"its end", func() {
			running.State, running.EndedAt, running.Reason = sessions.StateFailed, w.Now(), "it went wrong"
			must.Do(t, other.AgentSessions.SaveSession(ctx, running))
		}, map[string]string{"/": "it went wrong"}, map[string]string{"/": "Running now"}},
		{"what retention removes", func() {
			w.advance(200 * 24 * time.Hour)
			prune(t, other, w.Now())
		}, map[string]string{"/changes": "200 d"}, map[string]string{"/": "Nothing was written."}},
	} {
		t.Log(step.name)
		step.record()
		for range 2 { // made, and kept
			for target, want := range step.want {
				w.says(w.get(target), want)
			}
			for target, never := range step.lacks {
				w.says(w.get(target), "!"+never)
			}
		}
	}
}

// seePull records what somebody saw of a pull request.
func seePull(t testing.TB, s *store.Store, key record.PullKey, change func(*record.PullRecord)) {
	t.Helper()
	r, found, err := s.Pulls.FindPull(context.Background(), key)
	if err != nil || !found {
		t.Fatalf("%v: found %v, %v", key, found, err)
	}
	change(&r)
	_, err = s.Pulls.SeePull(context.Background(), r, nil)
	must.Do(t, err)
}

// seen records what somebody saw of a pull request.
func (w *world) seen(number int, change func(*record.PullRecord)) {
	w.Helper()
	seePull(w, w.store, record.PullKey{Provider: "fake", Owner: "joe", Repo: "infra", Number: number}, change)
}

// The overview tells ages and days, which pass without anything being recorded.
func TestRowsThatAreKeptGrowOlder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil) // at noon
	w.proposed(w.store, "r1", record.OutcomeRefused, 0)
	for _, step := range []struct {
		later time.Duration
		want  []string
	}{
		{0, []string{">now<", "20 Nov"}},
		{90 * time.Second, []string{"1 min", "20 Nov"}},
		{13 * time.Hour, []string{"13 h", "21 Nov"}}, // after midnight
		{20 * 24 * time.Hour, []string{"20 d", "Nothing was proposed in the last 14 days"}},
	} {
		w.advance(step.later)
		w.says(w.get("/"), step.want...)
	}
}

// A token that the process comes by while it runs is kept out of what was made before, too.
func TestRowsThatAreKeptLoseATokenThatIsLearned(t *testing.T) {
	t.Parallel()
	const token = "learned-token-value-9876543210"
	w := newWorld(t, nil)
	w.proposed(w.store, token, record.OutcomeRefused, 0)
	targets := []string{"/", "/changes"}
	for _, target := range targets {
		w.says(w.get(target), "Title of "+token)
	}
	defer scanner.Learn(token)()
	for _, target := range targets {
		w.says(w.get(target), "!Title of "+token)
	}
}
