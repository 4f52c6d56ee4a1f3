package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
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
	want := func(got []string, err error, fresh ...string) {
		t.Helper()
		wantEqual(t, err, nil)
		if len(got)+len(fresh) > 0 {
			wantEqual(t, got, fresh)
		}
	}
	got, err := claim("a", "x", "y")
	want(got, err, "x", "y")
	got, err = claim("a", "x")
	want(got, err)
	got, err = claim("a", "x", "z")
	want(got, err, "z")
	dropped := sessions.HookClaim{Hook: "a", Session: "s3"} // that of z
	wantEqual(t, s.AgentSessions.DropHook(t.Context(), dropped), nil)
	got, err = claim("a", "x", "z")
	want(got, err, "z")
	_, err = claim("a", "new") // the third session of the hour
	wantCode(t, err, fault.LimitReached)
	got, err = claim("b", "x") // another hook
	want(got, err, "x")
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM audit"), 4)
	c.now = c.now.Add(61 * time.Minute)
	got, err = claim("a", "new", "x")
	want(got, err, "new")
	c.now = c.now.Add(time.Hour)
	got, err = claim("a", "x")
	want(got, err, "x")
	_, err = s.Pauses().Pause(t.Context(), record.Pause{Why: "frozen", By: "ann"}, false, attempt("pause"))
	wantEqual(t, err, nil)
	c.now = c.now.Add(3 * time.Hour)
	before := count(t, s, "SELECT COUNT(*) FROM audit")
	_, err = claim("a", "x")
	wantCode(t, err, fault.Paused)
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM audit"), before)
}
