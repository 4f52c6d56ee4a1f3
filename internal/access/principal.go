package access

import "github.com/claudeops/claudeops/internal/gitprovider"

// Via is how a caller was recognised.
type Via string

// The ways.
const (
	ViaToken     Via = "token"
	ViaSession   Via = "session"
	ViaProxy     Via = "proxy"
	ViaAnonymous Via = "anonymous" // loopback, no token configured
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
}

// anonymous may propose and read, at the server's tier. It may be an agent, so it decides nothing.
func anonymous() Principal {
	return Principal{Name: "anonymous", Via: ViaAnonymous, Ceiling: gitprovider.TierRemediate, Scopes: Scopes{Propose, Read}}
}

// proxied is a person whom a trusted proxy has recognised: everything, at the server's tier.
func proxied(user string) Principal {
	return Principal{Name: user, Via: ViaProxy, Ceiling: gitprovider.TierRemediate, Scopes: AllScopes()}
}
