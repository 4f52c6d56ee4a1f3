package access

import (
	"context"
	"crypto/subtle"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Client is a program that has registered to ask people for access as an agent (OAuth 2.1). Anybody may register, so
// nothing of it may be trusted.
type Client struct {
	ID        string
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
			"the token is no good agent's token: it is unknown, was revoked, has expired, or is a "+
				"person's; ask the operator for one (claudeops token create --agent)")
	}
	return t, nil
}
