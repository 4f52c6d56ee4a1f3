package app

import (
	"context"
	"net/http"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/system/identity"
	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/web/signin"
)

// newIdentities makes the providers by which people sign in. They are asked nothing before somebody does.
func newIdentities(p *Parts) (out []*identity.Provider) {
	pool := transport.NewPool(http.ProxyFromEnvironment)
	for _, s := range p.Cfg.Web.SignIn {
		out = append(out, identity.New(s, identity.Options{Over: pool, Redirect: p.Cfg.Web.PublicURL + signin.CallbackPath,
			Now: p.Store.Now, Secret: func() string { return p.secrets.Client(s.Name) }}))
	}
	return out
}

// newDirectory returns the gatekeeper's directory of people; the zero value where sign-in by a provider is not
// configured.
func newDirectory(p *Parts) access.Directory {
	if len(p.identities) == 0 {
		return access.Directory{}
	}
	named := func(name, issuer string) *identity.Provider {
		for _, provider := range p.identities {
			if provider.Name() == name && provider.Issuer() == issuer {
				return provider
			}
		}
		return nil
	}
	return access.Directory{
		People: p.Store.Access, Key: p.grantKey,
		Look: func(ctx context.Context, was identity.Person, g identity.Grant) (identity.Person, identity.Grant, error) {
			provider := named(was.Provider, was.Issuer)
			if provider == nil {
				return identity.Person{}, g, fault.New(fault.Unauthenticated, "people do not sign in by %s any more", was.Provider)
			}
			return provider.Look(ctx, was, g)
		},
		Role: func(issuer string, who policy.Known) policy.Role {
			if named(who.Provider, issuer) == nil {
				return ""
			}
			return p.Rules.Now().roleOf(who)
		},
		Closed: func() string { return p.Rules.Now().Problem },
		Record: func(ctx context.Context, a record.Attempt) error { return p.Store.Ledger.Record(ctx, a, nil) },
		NewID:  NewID,
	}
}

// identityNames returns the names of the providers by which people sign in.
func identityNames(p *Parts) (out []string) {
	for _, provider := range p.identities {
		out = append(out, provider.Name())
	}
	return out
}
