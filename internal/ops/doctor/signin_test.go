package doctor

import (
	"context"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/system/identity"
)

// fakeSignIn is a provider; down says that it does not answer.
type fakeSignIn struct {
	name string
	down bool
}

func (f fakeSignIn) Name() string        { return f.name }
func (f fakeSignIn) Kind() identity.Kind { return identity.OpenID }
func (f fakeSignIn) Redirect() string    { return "https://ops.example/sign-in/callback/" + f.name }
func (f fakeSignIn) Check(context.Context) ([]string, error) {
	if f.down {
		return nil, fault.New(fault.UpstreamError, "the provider %s cannot be asked", f.name)
	}
	return []string{"it can end sessions here"}, nil
}

func TestSignInIsLookedAt(t *testing.T) {
	d := New(Options{SignIn: []SignIn{fakeSignIn{name: "gitea"}, fakeSignIn{"company", true}}})
	d.Rules.Policy.People.Roles = []policy.RoleRule{{Role: policy.RoleViewer, Provider: "gitea", User: "ann"},
		{Role: policy.RoleViewer, Provider: "gone", User: "x"}}
	var got []string
	for _, f := range append(d.signIns(), d.askSignIns(t.Context())...) {
		got = append(got, f.Status+" "+f.Name+": "+f.Detail)
	}
	want := []string{
		"ok sign-in by gitea: enter as redirect address there: https://ops.example/sign-in/callback/gitea",
		"warning sign-in by company: enter as redirect address there: https://ops.example/sign-in/callback/company; the " +
			"policy gives nobody of it a role",
		"warning sign-in by gone: the policy gives roles to people of it, and CLAUDEOPS_SIGN_IN does not name it",
		"ok sign-in by gitea: its description was read; it can end sessions here",
		"problem sign-in by company: the provider company cannot be asked",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}
