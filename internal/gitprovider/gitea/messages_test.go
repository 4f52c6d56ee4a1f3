package gitea_test

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegitea"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
)

// reads are the calls that people make most.
func (sc *scene) reads() map[string]error {
	errs := map[string]error{}
	_, errs["ListOpen"] = sc.p.ListOpen(sc.t.Context(), sc.Ref(), gitprovider.LabelOurs)
	_, errs["Status"] = sc.p.Status(sc.t.Context(), sc.Ref(), 1)
	_, errs["Snapshot"] = sc.p.Snapshot(sc.t.Context(), sc.query(nil))
	return errs
}

func TestThatPullRequestsAreSwitchedOffIsSaid(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.configure(func(s *fakegitea.Settings) { s.Features.NoPulls = true })
	for method, err := range sc.reads() {
		wantCode(t, err, fault.RepoNotAllowed)
		if !strings.Contains(err.Error(), "switched off") || strings.Contains(err.Error(), "write access") {
			t.Errorf("%s: %v", method, err)
		}
	}
}

func TestThatTheUserMayNotSignInIsSaid(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]string{
		"blocked": fakegitea.Prohibited, "not activated": fakegitea.NotActivated,
		"has to choose a password": fakegitea.MustChangePassword,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc := newScene(t)
			sc.s.SetAccount(wrong)
			errs := sc.reads()
			errs["Label"] = sc.p.Label(t.Context(), sc.Ref(), 1, []string{gitprovider.LabelOurs})
			errs["Ping"] = sc.p.Ping(t.Context())
			for method, err := range errs {
				wantCode(t, err, fault.ProviderDisabled)
				if !strings.Contains(err.Error(), "may not sign in") || strings.Contains(err.Error(), "write access") {
					t.Errorf("%s: %v", method, err)
				}
			}
		})
	}
}

func TestABranchThatIsProtectedFromDeletionIsSaidToBe(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	made, err := sc.commit(sc.p, ourBranch, providertest.Update("checks/disk.md", "new"))
	sc.must(err)
	sc.configure(func(s *fakegitea.Settings) { s.Protection.ProtectedPatterns = []string{"claude-ops/**"} })
	err = sc.p.DeleteBranch(t.Context(), sc.Ref(), ourBranch, made.ID)
	wantCode(t, err, fault.RepoNotAllowed)
	if !strings.Contains(err.Error(), "branch protection") || strings.Contains(err.Error(), "write access") {
		t.Error(err)
	}
}

func TestAnAddressThatIsNotTheInstallationsSaysWhatToDo(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	for _, below := range []string{"/joe", "/joe/repo-1", "/api/v1"} {
		p := newProvider(t, sc.s.URL()+below, sc.s.Token())
		sc.s.Faults().Plan(nil, notOfTheAPI())
		_, err := p.ListOpen(t.Context(), sc.Ref(), gitprovider.LabelOurs)
		wantCode(t, err, fault.ProviderDisabled)
		if !strings.Contains(err.Error(), "below "+below) || !strings.Contains(err.Error(), "leave out owner") {
			t.Errorf("%s: %v", below, err)
		}
	}
}

// notOfTheAPI is what a router answers to a path that it does not know.
func notOfTheAPI() httpfault.Fault {
	return httpfault.Fault{Kind: httpfault.Status, Status: 404, Body: "404 page not found\n"}
}
