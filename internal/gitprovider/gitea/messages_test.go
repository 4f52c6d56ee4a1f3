package gitea_test

import (
	"net/http"
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

// notOfTheAPI is a router's answer to an unknown path.
func notOfTheAPI() httpfault.Fault {
	return httpfault.Fault{Kind: httpfault.Status, Status: 404, Body: "404 page not found\n"}
}

const labelsRoute = "POST " + repoPath + "/issues/1/labels"

func TestLabelGoesByIDWhereNamesAreNotTaken(t *testing.T) {
	t.Parallel()
	have := []object{{"id": 7, "name": gitprovider.LabelOurs}}
	for _, status := range []int{400, 422, 500} {
		s := serve(t, routes{
			labelsRoute:                   []reply{{status: status, body: object{"message": "cannot unmarshal"}}, {body: have}},
			"GET " + repoPath + "/labels": list(1, have...),
		})
		wantCode(t, s.provider(t).Label(t.Context(), ref(), 1, []string{gitprovider.LabelOurs}), "")
		requests := s.faults.Requests()
		if last := requests[len(requests)-1]; last.Method != http.MethodPost || !strings.Contains(string(last.Body), "[7]") {
			t.Errorf("%d: the last request is %s %s", status, last.Method, last.Body)
		}
	}
}

func TestLabelRefusals(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		script routes
		want   fault.Code
		says   string
	}{
		"a number that does not exist": {routes{labelsRoute: refused(404, "not found")}, fault.NotFound, "#1"},
		"a user who may not": {routes{labelsRoute: refused(403, "write permission is required")}, fault.ProviderDisabled,
			"access"},
		"a label that cannot be made": {routes{labelsRoute: reply{body: []object{}},
			"POST " + repoPath + "/labels": refused(403, "user should be an owner")}, fault.ProviderDisabled, "owner"},
		"a label that is made and not taken": {routes{labelsRoute: reply{body: []object{}},
			"POST " + repoPath + "/labels": reply{status: 201, body: object{"id": 9, "name": "x"}}}, fault.UpstreamError, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := serve(t, tc.script).provider(t).Label(t.Context(), ref(), 1, []string{"x"})
			wantCode(t, err, tc.want)
			wantSays(t, err, tc.says)
		})
	}
}
