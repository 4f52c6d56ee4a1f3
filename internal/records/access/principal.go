package access

import (
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Via is the way in which a caller was recognised.
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
	Actor record.Actor // at no door yet
	Via   Via
	// Ceiling lowers the server's tier; it never raises it.
	Ceiling gitprovider.Tier
	Scopes  Scopes
	// TokenHash is the hash of the token behind ViaToken and ViaSession.
	TokenHash string
}

// Name is for people to read. It does not identify a person: see Actor.Account.
func (p Principal) Name() string {
	if p.Actor.IsZero() {
		return ""
	}
	return p.Actor.String()
}

// Still compares a caller with who they were when their call began: tier_denied if their tier was lowered since,
// forbidden if they have lost the scope, unauthenticated if the credential is another one's now.
func (p Principal) Still(was Principal, scope Scope) error {
	switch {
	case p.Actor.Account() != was.Actor.Account():
		return fault.New(fault.Unauthenticated, "the credential is not that of %s any more; nothing was done", was.Name())
	case p.Ceiling < was.Ceiling:
		return tierLowered(was.Name())
	case scope != "" && !p.Scopes.Has(scope):
		return fault.New(fault.Forbidden, "%s lost the scope %s while the call waited; nothing was done", was.Name(),
			scope)
	}
	return nil
}

// Names of callers that are not people.
const (
	anonymousName  = record.SystemAnonymous
	configuredName = "CLAUDEOPS_API_TOKENS"
)

// Reserved reports whether a name, in any case, is one that the records have for others, or that of a provider of
// identities: neither a token nor a program may have it.
func Reserved(name string, providers ...string) bool {
	return record.ReservedName(name) || notAPerson(name) ||
		slices.ContainsFunc(providers, func(p string) bool { return strings.EqualFold(p, strings.TrimSpace(name)) })
}

func notAPerson(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	return name == anonymousName || strings.HasPrefix(name, strings.ToLower(configuredName)) ||
		strings.HasPrefix(name, TokenPrefix)
}

// anonymous may read, and nothing else: it may be an agent.
func anonymous() Principal {
	return Principal{
		Actor:   record.Actor{System: anonymousName},
		Via:     ViaAnonymous,
		Ceiling: gitprovider.TierObserve,
		Scopes:  Scopes{Read},
	}
}

// proxied returns a person that a trusted proxy has recognised: all scopes, at the server's tier.
func proxied(user string) Principal {
	who := &record.Person{Issuer: record.IssuerProxy, Subject: user, Name: record.IssuerProxy + ":" + user}
	return Principal{Actor: record.Actor{Person: who}, Via: ViaProxy, Ceiling: gitprovider.TierRemediate,
		Scopes: AllScopes()}
}
