package access

import (
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Via is how a caller was recognised.
type Via string

// The ways.
const (
	ViaToken     Via = "token"
	ViaLogin     Via = "session"
	ViaProxy     Via = "proxy"
	ViaAnonymous Via = anonymousName // who shows nothing, where the operator lets them read
)

// Principal is a caller, and what the operator lets it do.
type Principal struct {
	// Name is for the record. Names that the operator did not give, those of a proxy, are untrusted text.
	Name string
	Via  Via
	// Ceiling lowers the server's tier; it never raises it.
	Ceiling gitprovider.Tier
	Scopes  Scopes
	// TokenHash is that of the token behind ViaToken and ViaSession.
	TokenHash string
	// Account is that of a person of a provider, also behind a token that is theirs; the zero value for others.
	Account Account
}

// Still compares a caller with who they were when their call began: tier_denied if their tier was lowered since,
// forbidden if they have lost the scope, unauthenticated if the credential is another one's now.
func (p Principal) Still(was Principal, scope Scope) error {
	switch {
	case p.Name != was.Name:
		return fault.New(fault.Unauthenticated, "the credential is not that of %s any more; nothing was done", was.Name)
	case p.Ceiling < was.Ceiling:
		return tierLowered(was.Name)
	case scope != "" && !p.Scopes.Has(scope):
		return fault.New(fault.Forbidden, "%s lost the scope %s while the call waited; nothing was done", was.Name, scope)
	}
	return nil
}

// Names of callers that are no names of people.
const (
	anonymousName  = "anonymous"
	configuredName = "CLAUDEOPS_API_TOKENS"
)

// Reserved reports whether a name, in any case, is one that the record has for other callers: neither a token of the
// store nor a user of a proxy may have it.
func Reserved(name string) bool {
	name = strings.ToLower(name)
	return name == anonymousName || strings.HasPrefix(name, strings.ToLower(configuredName)) ||
		strings.HasPrefix(name, TokenPrefix)
}

// anonymous may read, and nothing else: it may be an agent.
func anonymous() Principal {
	return Principal{Name: anonymousName, Via: ViaAnonymous, Ceiling: gitprovider.TierObserve, Scopes: Scopes{Read}}
}

// proxied is a person whom a trusted proxy has recognised: everything, at the server's tier.
func proxied(user string) Principal {
	return Principal{Name: user, Via: ViaProxy, Ceiling: gitprovider.TierRemediate, Scopes: AllScopes()}
}
