package store

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func pauseRow() record.Attempt {
	return record.Attempt{Time: noon(), RequestID: "p", Door: record.DoorCLI, Action: "pause", Outcome: record.OutcomeDone}
}

func mustPause(t *testing.T, s *Store, p record.Pause) {
	t.Helper()
	must.Get(s.Pauses().Pause(t.Context(), p, false, pauseRow()))(t)
}

func TestEachClaimIsRefusedWhereAPersonHasPaused(t *testing.T) {
	left := proposal("left", "checks/left.md")
	claims := map[string]func(context.Context, *Store) error{
		"a proposal": func(ctx context.Context, s *Store) error {
			_, err := s.Ledger.Reserve(ctx, proposal("new", "checks/new.md"), record.Claim{})
			return err
		},
		"one that takes another's place": func(ctx context.Context, s *Store) error {
			_, err := s.Ledger.Supersede(ctx, left, proposal("next", "checks/left.md"), attempt("left"))
			return err
		},
		"settling": func(ctx context.Context, s *Store) error {
			_, err := s.Ledger.Adopt(ctx, left)
			return err
		},
		"a tool, in the repository": func(ctx context.Context, s *Store) error {
			release, err := s.Pauses().Claim(ctx, "Demo", "home-CLUSTER")
			if err == nil {
				release()
			}
			return err
		},
		"a tool": func(ctx context.Context, s *Store) error {
			release, err := s.Pauses().Claim(ctx, "", "")
			if err == nil {
				release()
			}
			return err
		},
		"a script": func(ctx context.Context, s *Store) error {
			return s.ScriptRuns().BeginScriptRun(ctx, record.ScriptRun{ID: "run", State: record.ScriptRunning, StartedAt: noon(),
				EndsBy: noon()})
		},
		"a session": func(ctx context.Context, s *Store) error {
			return s.AgentSessions.BeginSession(ctx, sessions.Record{ID: "s",
				Ending: sessions.Ending{State: sessions.StateRunning}})
		},
	}
	everywhere := map[string]bool{"a tool": true, "a script": true, "a session": true}
	for scope, p := range map[string]record.Pause{
		"everything": {Why: "moving", By: "ann"}, "the repository": {Owner: "demo", Repo: "home-cluster", Why: "moving"},
		"another one": {Owner: "demo", Repo: "other"}, "over": {Until: noon()},
	} {
		t.Run(scope, func(t *testing.T) {
			s := openNew(t)
			mustPause(t, s, p)
			claimed := func(name string, want fault.Code) {
				t.Helper()
				if err := claims[name](t.Context(), s); fault.CodeOf(err) != want {
					t.Errorf("%s: got error %v (cause %v), want the code %q", name, err, errCause(err), want)
				}
				wantEqual(t, count(t, s, "SELECT COUNT(*) FROM write_claims"), 0)
			}
			refused := func(name string) bool {
				return scope == "everything" || scope == "the repository" && !everywhere[name]
			}
			for name := range claims {
				if refused(name) {
					claimed(name, fault.Paused)
				}
			}
			wantEqual(t, count(t, s, `SELECT (SELECT COUNT(*) FROM proposals) + (SELECT COUNT(*) FROM script_runs) +
				(SELECT COUNT(*) FROM agent_sessions)`), 0)
			for name := range claims {
				if !refused(name) {
					claimed(name, "")
				}
			}
			if !refused("a proposal") {
				return
			}
			must.Get(s.Pauses().Resume(t.Context(), "", "",
				func([]record.Pause) record.Attempt { return pauseRow() }))(t)
			for name := range claims {
				if refused(name) {
					claimed(name, "")
				}
			}
		})
	}
}

func TestAPauseSaysWhenToComeBackAndEnds(t *testing.T) {
	now := noon()
	s := openWith(t, Options{Now: func() time.Time { return now }})
	mustPause(t, s, record.Pause{Why: "moving", By: "ann", Until: now.Add(time.Hour)})
	mustPause(t, s, record.Pause{Owner: "demo", Repo: "home", Why: "frozen", By: "ben"})
	e := fault.From(s.Pauses().Paused(t.Context(), "demo", "home"))
	if e.Code != fault.Paused || e.RetryAfter != time.Hour || !strings.Contains(e.Message, "ann") ||
		!strings.Contains(e.Next, "2026") && !strings.Contains(e.Next, now.Add(time.Hour).Format(time.RFC3339)) {
		t.Errorf("%+v", e)
	}
	list := must.Get(s.Pauses().Pauses(t.Context()))(t)
	wantEqual(t, len(list), 2)
	wantEqual(t, list[0].Scope()+" "+list[1].Scope(), "everything demo/home")
	now = now.Add(time.Hour)
	wantCode(t, s.Pauses().Paused(t.Context(), "", ""), "")
	e = fault.From(s.Pauses().Paused(t.Context(), "DEMO", "Home"))
	if e.Code != fault.Paused || e.RetryAfter != 0 || !strings.Contains(e.Next, "resumed") {
		t.Errorf("%+v", e)
	}
	row := func([]record.Pause) record.Attempt { return pauseRow() }
	_, err := s.Pauses().Resume(t.Context(), "demo", "other", row)
	wantCode(t, err, fault.NotFound)
	wantEqual(t, len(must.Get(s.Pauses().Resume(t.Context(), "demo", "HOME", row))(t)), 1)
	_, err = s.Pauses().Resume(t.Context(), "", "", row)
	wantCode(t, err, fault.NotFound)
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM pauses"), 0)
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM audit"), 3)
}

// TestNoClaimFollowsAPause pauses while others claim: each claim is before the pause, and then counted, or refused.
func TestNoClaimFollowsAPause(t *testing.T) {
	s := openWith(t, Options{})
	for range 20 {
		const many = 4
		begun, done := make(chan struct{}), make(chan struct{})
		var claims, refused sync.WaitGroup
		held := make(chan func(), 1<<16)
		claims.Add(many)
		for range many {
			refused.Go(func() {
				first := sync.OnceFunc(claims.Done)
				for {
					release, err := s.Pauses().Claim(t.Context(), "demo", "home")
					first()
					if err != nil {
						if fault.CodeOf(err) != fault.Paused {
							t.Error(err)
						}
						return
					}
					held <- release
				}
			})
		}
		go func() { claims.Wait(); close(begun); refused.Wait(); close(done) }()
		<-begun
		p := must.Get(s.Pauses().Pause(t.Context(), record.Pause{Why: "x", By: "ann"}, false, pauseRow()))(t)
		left := must.Get(s.Pauses().Underway(t.Context(), p))(t)
		<-done
		wantEqual(t, len(held), left.Writes) // later ones were refused
		for len(held) > 0 {
			(<-held)()
		}
		wantEqual(t, must.Get(s.Pauses().Underway(t.Context(), p))(t).Writes, 0)
		must.Get(s.Pauses().Resume(t.Context(), "", "", func([]record.Pause) record.Attempt { return pauseRow() }))(t)
	}
}

func TestAPauseStopsSessionsOnRequest(t *testing.T) {
	s := openNew(t)
	r := sessions.Record{ID: "s", Ending: sessions.Ending{State: sessions.StateRunning}}
	wantEqual(t, s.AgentSessions.BeginSession(t.Context(), r), nil)
	mustPause(t, s, record.Pause{Why: "x"})
	wantEqual(t, must.Get(s.AgentSessions.StopAsked(t.Context(), "s"))(t), false)
	p := must.Get(s.Pauses().Pause(t.Context(), record.Pause{Why: "x"}, true, pauseRow()))(t)
	wantEqual(t, must.Get(s.AgentSessions.StopAsked(t.Context(), "s"))(t), true)
	wantEqual(t, must.Get(s.Pauses().Underway(t.Context(), p))(t), record.Underway{Sessions: 1})
}
