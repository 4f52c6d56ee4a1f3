package forgetest

import (
	"net/http"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
)

// Proposed is an open pull request at a server whose requests may fail.
type Proposed struct {
	Provider gitprovider.Provider
	Repo     gitprovider.RepoRef
	Pull     gitprovider.PullRequest
	Faults   *httpfault.Handler
}

// FailedCloses holds that a close is requested once, in whatever way the request fails, that the status shows the
// outcome, and that the next call ends it. refusals are statuses that are final.
func FailedCloses(t *testing.T, propose func(*testing.T) Proposed, refusals ...int) {
	t.Helper()
	for kind, state := range map[httpfault.Kind]gitprovider.State{
		httpfault.ResetBefore: gitprovider.StateOpen, httpfault.ResetAfter: gitprovider.StateClosed,
		httpfault.BadGatewayAfter: gitprovider.StateClosed, httpfault.Truncated: gitprovider.StateClosed,
	} {
		t.Run(string(kind), func(t *testing.T) { propose(t).failsToClose(t, httpfault.Fault{Kind: kind}, state, true) })
	}
	for _, status := range append(refusals, http.StatusInternalServerError) {
		t.Run(http.StatusText(status), func(t *testing.T) {
			refused := httpfault.Fault{Kind: httpfault.Status, Status: status, Body: `{"message":"no"}`,
				Header: http.Header{"Content-Type": {"application/json"}}}
			propose(t).failsToClose(t, refused, gitprovider.StateOpen, status == http.StatusInternalServerError)
		})
	}
}

func (p Proposed) failsToClose(t *testing.T, failure httpfault.Fault, want gitprovider.State, ambiguous bool) {
	t.Helper()
	c := gitprovider.Closing{Number: p.Pull.Number, Branch: p.Pull.Branch, Head: p.Pull.HeadCommit, Body: "closed"}
	isClose := func(r *http.Request) bool { return r.Method == http.MethodPatch }
	p.Faults.Forget()
	p.Faults.Plan(isClose, failure)
	if _, err := p.Provider.Close(t.Context(), p.Repo, c); err == nil || fault.CodeOf(err).Ambiguous() != ambiguous {
		t.Errorf("the failure is %v", err)
	}
	sent := 0
	for _, r := range p.Faults.Requests() {
		if r.Method == http.MethodPatch {
			sent++
		}
	}
	if sent != 1 {
		t.Errorf("sent %d times", sent)
	}
	is, err := p.Provider.Status(t.Context(), p.Repo, p.Pull.Number)
	if err != nil || is.State != want {
		t.Errorf("it is %s, %v; want %s", is.State, err, want)
	}
	state, err := p.Provider.Close(t.Context(), p.Repo, c)
	if err != nil || state != gitprovider.StateClosed {
		t.Errorf("again: %s, %v", state, err)
	}
}
