package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestAHookClaimsAnAlertOnceInItsWindow(t *testing.T) {
	t.Parallel()
	c := &clock{noon()}
	s := openWith(t, Options{Now: c.Now})
	n := 0
	claim := func(hook string, alerts ...string) ([]string, error) {
		n++
		return s.AgentSessions.ClaimHook(t.Context(), sessions.HookClaim{Hook: hook, Fingerprints: alerts,
			Session: fmt.Sprint("s", n), Window: 2 * time.Hour, PerHour: 2,
			Row: func(session string, fresh []string) record.Attempt {
				return record.Attempt{Action: record.ActionStartSession, Outcome: record.OutcomeDone,
					Message: fmt.Sprint(session, fresh)}
			}})
	}
	want := func(hook string, alerts, fresh []string) {
		t.Helper()
		if got := must.Get(claim(hook, alerts...))(t); len(got)+len(fresh) > 0 {
			wantEqual(t, got, fresh)
		}
	}
	want("a", []string{"x", "y"}, []string{"x", "y"})
	want("a", []string{"x"}, nil)
	want("a", []string{"x", "z"}, []string{"z"})
	dropped := sessions.HookClaim{Hook: "a", Session: "s3"} // that of z
	wantEqual(t, s.AgentSessions.DropHook(t.Context(), dropped), nil)
	want("a", []string{"x", "z"}, []string{"z"})
	_, err := claim("a", "new") // the third session of the hour
	wantCode(t, err, fault.LimitReached)
	want("b", []string{"x"}, []string{"x"}) // another hook
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM audit"), 4)
	c.now = c.now.Add(61 * time.Minute)
	want("a", []string{"new", "x"}, []string{"new"})
	c.now = c.now.Add(time.Hour)
	want("a", []string{"x"}, []string{"x"})
	must.Get(s.Pauses().Pause(t.Context(), record.Pause{Why: "frozen", By: "ann"}, false, attempt("pause")))(t)
	c.now = c.now.Add(3 * time.Hour)
	before := count(t, s, "SELECT COUNT(*) FROM audit")
	_, err = claim("a", "x")
	wantCode(t, err, fault.Paused)
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM audit"), before)
}

// An act at a forge starts one session in whatever process, and however often it is sent; not even after the window.
func TestAnActAtAForgeIsClaimedOnce(t *testing.T) {
	t.Parallel()
	c, at := &clock{noon()}, emptyPlace(t)
	options := Options{Now: c.Now, NoSync: true}
	stores := []*Store{open(t, at, options), open(t, at, options)}
	claim := func(s *Store, session, act, alert string) ([]string, error) {
		return s.AgentSessions.ClaimHook(t.Context(), sessions.HookClaim{Hook: "fix", Fingerprints: []string{alert},
			Session: session, Window: time.Hour, PerHour: 2, Owner: "joe", Repo: "infra",
			Act: sessions.ForgeAct{Provider: "gitea", ID: act},
			Row: func(session string, _ []string) record.Attempt {
				return record.Attempt{Action: record.ActionStartSession, Outcome: record.OutcomeDone, Message: session}
			}})
	}
	wantEqual(t, together(t, 40, func(i int) (bool, error) {
		fresh, err := claim(stores[i%2], fmt.Sprint("s", i), "comment 1", "issue")
		return len(fresh) > 0, err
	}), int64(1))
	wantEqual(t, count(t, stores[0], "SELECT COUNT(*) FROM audit"), 1)
	fresh := must.Get(claim(stores[0], "other", "comment 2", "issue"))(t)
	wantEqual(t, len(fresh), 0) // within the window
	c.now = c.now.Add(2 * time.Hour)
	for _, act := range []string{"comment 1", "comment 2"} { // sent again
		fresh = must.Get(claim(stores[1], "late", act, "issue"))(t)
		wantEqual(t, len(fresh), 0)
	}
	frozen := record.Pause{Owner: "joe", Repo: "infra", Why: "frozen", By: "ann"}
	must.Get(stores[0].Pauses().Pause(t.Context(), frozen, false, attempt("pause")))(t)
	before := count(t, stores[0], "SELECT COUNT(*) FROM audit")
	_, err := claim(stores[1], "paused", "comment 3", "issue")
	wantCode(t, err, fault.Paused)
	wantEqual(t, count(t, stores[0], "SELECT COUNT(*) FROM audit"), before)
	wantEqual(t, count(t, stores[0], "SELECT COUNT(*) FROM webhook_deliveries"), 2)
}

// The forge may send an act again whose session did not begin.
func TestAnActWhoseSessionDidNotBeginIsNewAgain(t *testing.T) {
	t.Parallel()
	s := openWith(t, Options{Now: (&clock{noon()}).Now})
	claim := sessions.HookClaim{Hook: "fix", Fingerprints: []string{"issue"}, Session: "s1", Window: time.Hour, PerHour: 5,
		Act: sessions.ForgeAct{Provider: "gitea", ID: "comment 1"},
		Row: func(session string, _ []string) record.Attempt {
			return record.Attempt{Action: record.ActionStartSession, Outcome: record.OutcomeDone, Message: session}
		}}
	claimed := func(want int) {
		t.Helper()
		wantEqual(t, len(must.Get(s.AgentSessions.ClaimHook(t.Context(), claim))(t)), want)
	}
	claimed(1)
	claimed(0)
	other := claim
	other.Act.ID = "comment 2"
	wantEqual(t, s.AgentSessions.DropHook(t.Context(), other), nil)
	claimed(0)
	wantEqual(t, s.AgentSessions.DropHook(t.Context(), claim), nil)
	claimed(1)
}
