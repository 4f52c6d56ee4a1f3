package doctor

import (
	"context"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/system/identity"
)

// SignIn is a provider by which people sign in; *identity.Provider is one.
type SignIn interface {
	Name() string
	Kind() identity.Kind
	Redirect() string // address to enter at the provider
	// Check asks the provider, and returns what an operator should know about it.
	Check(ctx context.Context) (notes []string, err error)
}

// signIns say what to enter at each provider, and who gets a role from the policy there.
func (d *Doctor) signIns() (out []Finding) {
	known := []string{}
	for _, p := range d.SignIn {
		known = append(known, p.Name())
		f := Finding{Name: "sign-in by " + p.Name(), Status: OK, Detail: "enter as redirect address there: " + p.Redirect()}
		if !slices.ContainsFunc(d.Rules.Policy.People.Roles, func(r policy.RoleRule) bool { return r.Provider == p.Name() }) {
			f.Status, f.Stops, f.Do = Warning, "signing in by "+p.Name(), "give people of it a role in the policy (roles)"
			f.Detail += "; the policy gives nobody of it a role"
		}
		out = append(out, f)
	}
	for _, rule := range d.Rules.Policy.People.Roles {
		if !slices.Contains(known, rule.Provider) {
			known = append(known, rule.Provider)
			out = append(out, Finding{
				Name: "sign-in by " + rule.Provider, Status: Warning,
				Detail: "the policy gives roles to people of it, and CLAUDEOPS_SIGN_IN does not name it",
				Do:     "name it in CLAUDEOPS_SIGN_IN, or take the roles out",
			})
		}
	}
	return out
}

// askSignIns asks each provider for its description of itself.
func (d *Doctor) askSignIns(ctx context.Context) (out []Finding) {
	for _, p := range d.SignIn {
		f := Finding{Name: "sign-in by " + p.Name(), Status: OK, Detail: "its description was read"}
		switch notes, err := p.Check(ctx); {
		case err != nil:
			f.Status, f.Detail, f.Stops = Problem, fault.From(err).Message, "signing in by "+p.Name()
		case p.Kind() == identity.GitHub:
			f.Detail = "GitHub has no description to read; it is asked when somebody signs in"
		case len(notes) > 0:
			f.Detail += "; " + strings.Join(notes, "; ")
		}
		out = append(out, f)
	}
	return out
}
