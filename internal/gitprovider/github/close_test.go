package github_test

import (
	"net/http"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
)

// Whatever happens to the request, it is made once, the status shows the outcome, and the next call ends it.
// 404 is not among it: GitHub does not know at once what was just made, and is asked again.
func TestACloseThatFailsIsMadeOnceAndMayBeRepeated(t *testing.T) {
	status := func(code int) httpfault.Fault {
		return httpfault.Fault{Kind: httpfault.Status, Status: code, Body: `{"message":"no"}`,
			Header: http.Header{"Content-Type": {"application/json"}}}
	}
	for name, row := range map[string]struct {
		fault     httpfault.Fault
		state     gitprovider.State
		ambiguous bool
	}{
		"reset before": {httpfault.Fault{Kind: httpfault.ResetBefore}, gitprovider.StateOpen, true},
		"reset after":  {httpfault.Fault{Kind: httpfault.ResetAfter}, gitprovider.StateClosed, true},
		"502 after":    {httpfault.Fault{Kind: httpfault.BadGatewayAfter}, gitprovider.StateClosed, true},
		"truncated":    {httpfault.Fault{Kind: httpfault.Truncated}, gitprovider.StateClosed, true},
		"500":          {status(http.StatusInternalServerError), gitprovider.StateOpen, true},
		"403":          {status(http.StatusForbidden), gitprovider.StateOpen, false},
		"429":          {status(http.StatusTooManyRequests), gitprovider.StateOpen, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.commit(branch)
			pr, err := s.p.OpenPullRequest(t.Context(), s.spec(branch))
			must(t, err)
			c := gitprovider.Closing{Number: pr.Number, Branch: pr.Branch, Head: pr.HeadCommit, Body: "closed"}
			isClose := func(r *http.Request) bool { return r.Method == http.MethodPatch }
			s.s.Faults().Forget()
			s.s.Faults().Plan(isClose, row.fault)
			if _, err := s.p.Close(t.Context(), s.Ref(), c); err == nil || fault.CodeOf(err).Ambiguous() != row.ambiguous {
				t.Errorf("the failure is %v", err)
			}
			sent := 0
			for _, r := range s.s.Faults().Requests() {
				if r.Method == http.MethodPatch {
					sent++
				}
			}
			if sent != 1 {
				t.Errorf("sent %d times", sent)
			}
			is, err := s.p.Status(t.Context(), s.Ref(), pr.Number)
			if err != nil || is.State != row.state {
				t.Errorf("it is %s, %v; want %s", is.State, err, row.state)
			}
			state, err := s.p.Close(t.Context(), s.Ref(), c)
			if err != nil || state != gitprovider.StateClosed {
				t.Errorf("again: %s, %v", state, err)
			}
		})
	}
}
