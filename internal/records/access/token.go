package access

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// TokenPrefix begins every token that NewSecret makes, so that people and scanners of secrets recognise one.
const TokenPrefix = "cops_"

// secretBytes is the number of random bytes of a token or of a login's id. So many cannot be guessed, so it is safe to
// store a plain hash of them, and a lookup by hash reveals nothing to a caller.
const secretBytes = 32

// Token is the stored record of a token: not the secret, only its hash.
type Token struct {
	ID        string // for people: not secret
	Name      string
	Hash      string // see Hash
	MaxTier   gitprovider.Tier
	Scopes    Scopes
	CreatedAt time.Time
	RevokedAt time.Time // zero: it is good
	ExpiresAt time.Time // zero: never
	// Agent says that it opens the door for an agent, over MCP, and nothing else: it has no scopes.
	Agent bool
	// Repos are the repositories that an agent's token is for, as entries of CLAUDEOPS_REPOS; none for those that the
	// server allows.
	Repos []string
	// DryRun and ReadOnly lower what an agent's token lets it do, whatever the server's own are: nothing is written at
	// git providers and in folders; nothing is proposed.
	DryRun, ReadOnly bool
	// Owner is the person whose it is; the zero value for one that stands for itself. It may do no more than they may.
	Owner     Account
	OwnerName string // of the person, where the records have found it
	// Maker made it, or allowed it: the root of what is done with it. The zero value where that is not known.
	Maker record.Actor
	// Client is the program that the person gave it to by consent in a browser, as the program calls itself; "" for a
	// token that was shown to a person. Grantor is the hash of the token that it was made with: it may do no
	// more than that, and no longer.
	Client, Grantor string

	UsedAt time.Time // when it was last used, to some minutes; zero: never
}

// Good reports whether the token is valid at a time.
func (t Token) Good(now time.Time) bool {
	return t.RevokedAt.IsZero() && (t.ExpiresAt.IsZero() || now.Before(t.ExpiresAt))
}

// Actor returns the holder of the token, at no door yet.
func (t Token) Actor() record.Actor {
	c := &record.Credential{Kind: record.CredentialToken, ID: t.ID, Name: t.Name}
	switch {
	case t.Client != "":
		c.Kind = record.CredentialGrant
	case t.Agent:
		c.Kind = record.CredentialAgent
	}
	if !t.Maker.IsZero() {
		maker := t.Maker
		c.Maker = &maker
	}
	a := record.Actor{Credential: c}
	if t.Owner != (Account{}) {
		a.Person = &record.Person{Issuer: t.Owner.Issuer, Subject: t.Owner.Subject, Name: t.OwnerName}
	}
	return a
}

// NewSecret makes a token from random bytes.
func NewSecret(random io.Reader) (string, error) {
	id, err := newID(random)
	return TokenPrefix + id, err
}

func newID(random io.Reader) (string, error) {
	b := make([]byte, secretBytes)
	if _, err := io.ReadFull(random, b); err != nil {
		return "", fmt.Errorf("no random bytes: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(b), nil
}

// Hash returns the value that is stored and compared in place of a secret: SHA-256 in hexadecimal digits.
func Hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
