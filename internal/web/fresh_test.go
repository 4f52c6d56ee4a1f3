package web_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/records/store"
)

// another is a store on the records of the world, as another process has one.
func (w *world) another(dir string) *store.Store {
	w.Helper()
	s, err := store.Open(context.Background(), dir, store.Options{Now: w.Now})
	if err != nil {
		w.Fatal(err)
	}
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
	if err != nil {
		w.Fatal(err)
	}
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
		record func() error
		want   map[string]string // what the page has
		lacks  map[string]string
	}{
		{"a refusal", func() error { w.proposed(other, "r1", record.OutcomeRefused, 0); return nil },
			map[string]string{"/": "Title of r1", "/changes": "Title of r1", "/api/v1/proposals": `"r1"`}, nil},
		{"another, and the gate's count", func() error { w.proposed(other, "r2", record.OutcomeRefused, 0); return nil },
			map[string]string{"/": `<rect width="100" height="8"/></svg></dd><dd>2</dd>`, "/changes": "Title of r2",
				"/api/v1/proposals": `"r2"`}, nil},
		{"a dry run", func() error { w.proposed(other, "d1", record.OutcomeDryRun, 0); return nil },
			map[string]string{"/": "Nothing was written.", "/changes": "Title of d1"}, nil},
		{"an opened pull request", func() error { w.proposed(other, "o1", record.OutcomeOpened, 7); return nil },
			map[string]string{"/": "Nobody has reviewed it", "/changes": "Needs review", "/api/v1/proposals": `"pr_number":7`},
			nil},
		{"its approval", func() error { return seePull(other, key, func(r *record.PullRecord) { r.Approvals = 1 }) },
			map[string]string{"/": "<strong>Approved</strong>", "/api/v1/proposals": `"approvals":1`}, nil},
		{"its merge", func() error {
			return seePull(other, key, func(r *record.PullRecord) { r.State = gitprovider.StateMerged })
		}, map[string]string{"/changes": `Merged</span>`, "/api/v1/proposals": `"state":"merged"`},
			map[string]string{"/": "<strong>Approved</strong>"}},
		{"a session that begins", func() error { return other.AgentSessions.BeginSession(ctx, running) },
			map[string]string{"/": "Running now"}, nil},
		{"its end", func() error {
			running.State, running.EndedAt, running.Reason = sessions.StateFailed, w.Now(), "it went wrong"
			return other.AgentSessions.SaveSession(ctx, running)
		}, map[string]string{"/": "it went wrong"}, map[string]string{"/": "Running now"}},
		{"what retention removes", func() error {
			w.advance(200 * 24 * time.Hour)
			_, err := other.Retention.Prune(ctx, w.Now(),
				func([]record.Pruned) record.Attempt { return record.Attempt{Action: "prune"} })
			return err
		}, map[string]string{"/changes": "200 d"}, map[string]string{"/": "Nothing was written."}},
	} {
		if err := step.record(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		for range 2 { // made, and kept
			for target, want := range step.want {
				if body := string(w.get(target).body); !strings.Contains(body, want) {
					t.Errorf("after %s, %s lacks %q:\n%s", step.name, target, want, body)
				}
			}
			for target, never := range step.lacks {
				if body := string(w.get(target).body); strings.Contains(body, never) {
					t.Errorf("after %s, %s still has %q", step.name, target, never)
				}
			}
		}
	}
}

// seePull records what somebody saw of a pull request.
func seePull(s *store.Store, key record.PullKey, change func(*record.PullRecord)) error {
	r, found, err := s.Pulls.FindPull(context.Background(), key)
	if err != nil || !found {
		return fmt.Errorf("%v: found %v, %w", key, found, err)
	}
	change(&r)
	_, err = s.Pulls.SeePull(context.Background(), r, nil)
	return err
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
		page := string(w.get("/").body)
		for _, want := range step.want {
			if !strings.Contains(page, want) {
				t.Errorf("%s later, the overview lacks %q", step.later, want)
			}
		}
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
		if !strings.Contains(string(w.get(target).body), "Title of "+token) {
			t.Fatalf("%s lacks the row", target)
		}
	}
	forget := scanner.Learn(token)
	defer forget()
	for _, target := range targets {
		if strings.Contains(string(w.get(target).body), "Title of "+token) {
			t.Errorf("%s shows the token", target)
		}
	}
}
