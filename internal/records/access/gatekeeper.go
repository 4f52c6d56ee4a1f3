// Package access says who may call the server and what: bearer tokens, logins of browsers that came with one or with a
// one-time code, a user name from a trusted proxy, and, where the operator wants it, anybody for reading. It knows no
// HTTP and no database.
package access

import (
	"context"
	"crypto/subtle"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Tokens is the memory of tokens. internal/records/store implements it; errors are faults.
type Tokens interface {
	// FindToken returns the token with the hash, revoked ones included.
	FindToken(ctx context.Context, hash string) (t Token, found bool, err error)
	// FindAccess returns the token of an agent for which an access token with the hash is good at a time; see Grant.
	FindAccess(ctx context.Context, hash string, now time.Time) (t Token, found bool, err error)
	// TouchToken notes when the token with the hash was used.
	TouchToken(ctx context.Context, hash string, used time.Time) error
}

// usedEvery is the precision with which the last use of a token is recorded.
const usedEvery = 5 * time.Minute

// MinConfigured is the minimum length of a configured token, in bytes. A shorter one is never accepted.
const MinConfigured = 16

// Gatekeeper recognises callers. It is safe for concurrent use.
type Gatekeeper struct {
	tokens     Tokens
	logins     Logins
	configured func() []string
	anonymous  bool
	codes      *codes
	handed     *codes // logins that go on at another host name
	directory  Directory
	operator   record.Actor
	closed     func() string
	looking    *looking
	now        func() time.Time
	random     io.Reader
}

// Options configure a Gatekeeper; all are required but Configured, AnonymousRead, Closed and Directory.
type Options struct {
	Tokens Tokens
	Logins Logins
	// Configured are the tokens of CLAUDEOPS_API_TOKENS as they are now: every scope, at the server's tier. nil: none.
	Configured func() []string
	// AnonymousRead lets callers without credentials read if the door considers them local.
	AnonymousRead bool
	// Closed says why new sign-ins are refused now, or "": the operator's rules cannot be read. nil: never.
	Closed    func() string
	Directory Directory // of persons who sign in by providers; the zero value for none
	// Operator is the user of the operating system that runs this process, and who made its configuration.
	Operator record.Actor
	Now      func() time.Time
	Random   io.Reader
}

// NewGatekeeper makes a Gatekeeper.
func NewGatekeeper(o Options) *Gatekeeper {
	g := &Gatekeeper{
		tokens: o.Tokens, logins: o.Logins, anonymous: o.AnonymousRead, codes: newCodes(o.Now),
		handed: newCodes(o.Now), now: o.Now, random: o.Random,
		directory: o.Directory, operator: o.Operator, looking: newLooking(), configured: o.Configured,
		closed: o.Closed,
	}
	if g.closed == nil {
		g.closed = func() string { return "" }
	}
	if g.configured == nil {
		g.configured = func() []string { return nil }
	}
	return g
}

// Bearer recognises the holder of a token. unauthenticated for anything but a good one, in the same words whatever is
// wrong with it.
func (g *Gatekeeper) Bearer(ctx context.Context, secret string) (Principal, error) {
	p, ok, err := g.holder(ctx, Hash(secret))
	if err == nil && !ok {
		err = fault.New(fault.Unauthenticated,
			"the token is not valid: it is unknown or was revoked; ask the operator for one "+
				"(claudeops token create)")
	}
	p.Via = ViaToken
	return p, err
}

// holder returns the principal of the token with the hash, if it is valid.
func (g *Gatekeeper) holder(ctx context.Context, hash string) (p Principal, ok bool, err error) {
	p, t, ok, err := g.lookupToken(ctx, hash)
	if ok && t.Hash != "" {
		g.used(ctx, t)
	}
	return p, ok, err
}

// lookupToken returns the principal of the token with the hash, and the stored Token; the zero Token for one of the
// configuration.
func (g *Gatekeeper) lookupToken(ctx context.Context, hash string) (p Principal, t Token, ok bool, err error) {
	p.TokenHash = hash
	for i, secret := range g.configured() { // all of them, so that the time tells nothing
		same := subtle.ConstantTimeCompare([]byte(Hash(secret)), []byte(hash)) == 1
		if same && len(secret) >= MinConfigured {
			p.Actor, p.Ceiling, p.Scopes, ok = g.holderOf(i), gitprovider.TierRemediate, AllScopes(), true
		}
	}
	if ok {
		return p, Token{}, true, nil
	}
	t, found, err := g.tokens.FindToken(ctx, hash)
	if err != nil || !found || !t.Good(g.now()) || t.Agent ||
		subtle.ConstantTimeCompare([]byte(t.Hash), []byte(hash)) != 1 {
		return Principal{}, Token{}, false, err
	}
	p.Actor, p.Ceiling, p.Scopes = t.Actor(), t.MaxTier, t.Scopes
	p, ok, err = g.owned(ctx, t, p)
	return p, t, ok, err
}

// holderOf returns the holder of a configured token. The operator has them all, and wrote them down for this process.
func (g *Gatekeeper) holderOf(i int) record.Actor {
	name := fmt.Sprintf("%s[%d]", configuredName, i)
	c := &record.Credential{Kind: record.CredentialConfigured, ID: name, Name: name}
	if !g.operator.IsZero() {
		c.Maker = &g.operator
	}
	return record.Actor{Credential: c}
}

// used records the use of a token. It informs people only, so a failed write does not refuse the caller.
func (g *Gatekeeper) used(ctx context.Context, t Token) {
	if now := g.now(); now.Sub(t.UsedAt) >= usedEvery {
		_ = g.tokens.TouchToken(context.WithoutCancel(ctx), t.Hash, now)
	}
}

// owned lowers the rights of a token to those of the token that it was made with, and of its person. It is invalid
// without both.
func (g *Gatekeeper) owned(ctx context.Context, t Token, p Principal) (Principal, bool, error) {
	if t.Grantor != "" {
		by, _, ok, err := g.lookupToken(ctx, t.Grantor)
		if err != nil || !ok {
			return Principal{}, false, err
		}
		p = p.under(by)
	}
	if t.Owner == (Account{}) {
		return p, true, nil
	}
	if g.directory.People == nil {
		return Principal{}, false, nil
	}
	owner, err := g.owner(ctx, t.Owner)
	if fault.CodeOf(err) == fault.Unauthenticated {
		return Principal{}, false, nil
	}
	if err != nil {
		return Principal{}, false, err
	}
	role := g.directory.roleOf(owner)
	if role == "" {
		return Principal{}, false, nil
	}
	return p.under(owner.principal(role)), true, nil
}

// under returns the caller with no more rights than another one has.
func (p Principal) under(has Principal) Principal {
	p.Ceiling = min(p.Ceiling, has.Ceiling)
	p.Scopes = slices.DeleteFunc(slices.Clone(p.Scopes), func(s Scope) bool { return !has.Scopes.Has(s) })
	return p
}

// AgentToken recognises the holder of an agent's token, which opens the door over MCP and nothing else. unauthenticated
// for anything but a good one, a person's token included.
func (g *Gatekeeper) AgentToken(ctx context.Context, secret string) (Token, error) {
	t, err := g.agentBy(ctx, secret)
	if err != nil {
		return Token{}, err
	}
	if t.MaxTier, err = g.agentTier(ctx, t); err != nil {
		return Token{}, err
	}
	g.used(ctx, t)
	return t, nil
}

// StillAgent recognises the holder of an agent's token that was admitted before, by what was known then:
// unauthenticated if it is not valid any more, tier_denied if its tier was lowered since.
func (g *Gatekeeper) StillAgent(ctx context.Context, was Token) error {
	t, found, err := g.tokens.FindToken(ctx, was.Hash)
	switch {
	case err != nil:
		return err
	case !found || !t.Agent || !t.Good(g.now()):
		return fault.New(fault.Unauthenticated,
			"the agent's token %s was revoked or has expired while the call waited; nothing was done", was.Name)
	}
	if t.MaxTier, err = g.agentTier(ctx, t); err == nil && t.MaxTier < was.MaxTier {
		return tierLowered(was.Name)
	}
	return err
}

// agentTier returns the highest tier that an agent's token gives now. A token that a person has made is good as long as
// they may make one, and may do what it stands for.
func (g *Gatekeeper) agentTier(ctx context.Context, t Token) (gitprovider.Tier, error) {
	needs := append(Scopes{Operate}, ScopesOfAgent(t.MaxTier, t.ReadOnly)...)
	p, ok, err := g.owned(ctx, t, Principal{Ceiling: t.MaxTier, Scopes: needs})
	switch {
	case err != nil:
		return 0, err
	case ok && g.directory.People != nil && g.closed() != "": // roles cannot be read: who is in may read
		return gitprovider.TierObserve, nil
	case !ok || len(p.Scopes.Lacks(needs)) > 0:
		return 0, ownerLeft(t)
	}
	return p.Ceiling, nil
}

func ownerLeft(t Token) error {
	return fault.New(fault.Unauthenticated,
		"the token %s lets nobody in now: the token that it was made with has ended, its person may give none here any more, "+
			"their provider does not stand by them, or they have not signed in for %d days", t.Name, int(OwnerLife.Hours()/24))
}

func tierLowered(name string) error {
	return fault.New(fault.TierDenied,
		"the tier of %s was lowered while the call waited, and nothing was done; make the call again", name)
}

// Proxied returns the principal that a trusted proxy names; unauthenticated for a name that may be a token or that no
// person can have. The caller checks that the proxy is trusted.
func (g *Gatekeeper) Proxied(user string) (Principal, error) {
	if notAPerson(user) {
		return Principal{}, fault.New(fault.Unauthenticated,
			"the proxy names a user as no person of this server can be named; rename the user")
	}
	return proxied(user), nil
}

// Anonymous lets a caller without credentials read, if the operator wants that; otherwise it returns unauthenticated.
// The door calls it only for callers that it considers local.
func (g *Gatekeeper) Anonymous() (Principal, error) {
	if !g.anonymous {
		return Principal{}, NeedsToken()
	}
	return anonymous(), nil
}

// NeedsToken returns the refusal of a caller who shows nothing.
func NeedsToken() error {
	return fault.New(fault.Unauthenticated, "a token is needed: send it as `Authorization: Bearer ...`, or sign in")
}

// Client is a program that asks people for access as an agent (OAuth 2.1). Anybody may register one and publish one, so
// nothing of it may be trusted but that the host of ClientDomain has published it.
type Client struct {
	ID        string // random, or the address of the document that describes the program
	Name      string // as the program calls itself; untrusted text
	Redirects []string
	CreatedAt time.Time
}

// Code records a person's consent for a program. The program exchanges it for a token, once.
type Code struct {
	Hash      string
	ClientID  string
	Redirect  string // where the browser was sent back to
	Challenge string // of PKCE: base64url of the SHA-256 of what the program keeps
	// Token is the token for the program: name, tier, repositories, owner and grantor. Its ID is "" until the code was
	// exchanged, and then that of the new token. A number may have been appended to its name.
	Token     Token
	ExpiresAt time.Time
}

// Keys are the hashes of what a program shows for its token.
type Keys struct {
	Family       string // what all its refresh tokens begin with
	Refresh      string // the only refresh token that is good
	RefreshUntil time.Time
	Access       string
	AccessUntil  time.Time
}

// Grant is a token of an agent that a person has given to a program, with what that shows for it.
type Grant struct {
	Token    Token
	ClientID string
	Keys
}

// Granted returns the highest tier that a token of an agent gives now; unauthenticated if the person who gave it may
// not any more.
func (g *Gatekeeper) Granted(ctx context.Context, t Token) (gitprovider.Tier, error) {
	return g.agentTier(ctx, t)
}

// agentBy returns the good token of an agent for which a secret is shown: its own, or an access token of the program
// that has it.
func (g *Gatekeeper) agentBy(ctx context.Context, secret string) (Token, error) {
	hash := Hash(secret)
	t, found, err := g.tokens.FindToken(ctx, hash)
	found = found && subtle.ConstantTimeCompare([]byte(t.Hash), []byte(hash)) == 1
	if err == nil && !found {
		t, found, err = g.tokens.FindAccess(ctx, hash, g.now())
	}
	if err != nil {
		return Token{}, err
	}
	if !found || !t.Agent || !t.Good(g.now()) {
		return Token{}, fault.New(fault.Unauthenticated,
			"the token is not a valid agent token: it is unknown, was revoked, has expired, or is a "+
				"person's; ask the operator for one (claudeops token create --agent)")
	}
	return t, nil
}
