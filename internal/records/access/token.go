package access

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/files"
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
	// ClientID is the id of that program; see ClientDomain.
	ClientID string

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

// CheckMaker says why a maker can make no token, and let in no program: forbidden at the end of a line of
// record.MaxDescent credentials.
func CheckMaker(maker record.Actor) error {
	line := maker.Descent()
	if len(line) < record.MaxDescent {
		return nil
	}
	return fault.New(fault.Forbidden, "%s is the last of %d tokens that were each made with the one before, and there may "+
		"be no further one; use a token nearer to the first, %s", line[0].Name, len(line), line[len(line)-1].Name)
}

// ClientDomain returns the host that vouches for a program, by its id: that of the address at which its document is. ""
// for a program that has registered, for which nobody vouches.
func ClientDomain(id string) string {
	at, err := url.Parse(id)
	if err != nil || at.Scheme != "https" {
		return ""
	}
	return at.Host
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

// operatorName is the name of the token that a server makes, in the record of all that it does.
const operatorName = "operator"

// FirstToken is the token that a server makes for its operator at its first start, if there is no other way to sign in
// yet. All fields are required.
type FirstToken struct {
	Folder, File string // where it is kept
	// Read returns the token in the file; "" if there is none that we may read.
	Read func() string
	// AnyToken reports whether a token was ever made.
	AnyToken func(ctx context.Context) (bool, error)
	// Insert puts the new token into the records; conflict if another process was faster.
	Insert     func(ctx context.Context, t Token) error
	Gatekeeper *Gatekeeper
	Operator   record.Actor        // the user that runs the server
	Learn      func(secret string) // is called with the token before it is used, to redact it
	Now        func() time.Time
	NewID      func() string
	Random     io.Reader
}

// Path returns the path of the token.
func (f FirstToken) Path() string { return filepath.Join(f.Folder, f.File) }

// Secret returns the token, and makes it if none was ever made. It is "" if there are others, and if it was revoked.
// misconfigured if it cannot be kept.
//
// The file is written before the token is known to the records, so that a server that is killed in between finds it
// again.
func (f FirstToken) Secret(ctx context.Context) (string, error) {
	known, err := f.AnyToken(ctx)
	if err != nil {
		return "", err
	}
	if !known {
		if err := f.createFirst(ctx); err != nil {
			return "", err
		}
	}
	return f.known(ctx)
}

// Make is Secret for the operator who asks for the token: where there are others, it is made as well. It is "" if it
// was revoked.
func (f FirstToken) Make(ctx context.Context) (string, error) {
	if secret, err := f.known(ctx); err != nil || secret != "" {
		return secret, err
	}
	if err := f.createFirst(ctx); err != nil {
		return "", err
	}
	return f.known(ctx)
}

// known returns the token that is kept; "" if there is none, or it is not good.
func (f FirstToken) known(ctx context.Context) (string, error) {
	secret := f.Read()
	if secret == "" {
		return "", nil
	}
	f.Learn(secret) // the configuration was read before there was one, or another process has made it since
	if _, err := f.Gatekeeper.Bearer(ctx, secret); err != nil {
		if fault.CodeOf(err) == fault.Unauthenticated {
			return "", nil
		}
		return "", err
	}
	return secret, nil
}

func (f FirstToken) createFirst(ctx context.Context) error {
	text, err := files.LoadSecret(f.Folder, f.File, func() (string, error) {
		secret, err := NewSecret(f.Random)
		return secret + "\n", err
	})
	if err != nil {
		return fault.Wrap(err, fault.Misconfigured,
			"the operator's token cannot be kept in %s: %s; let this user write the folder, or set "+
				"CLAUDEOPS_API_TOKENS", f.Path(), err)
	}
	secret := strings.TrimSpace(text)
	if len(secret) < MinConfigured {
		return fault.New(fault.Misconfigured, "%s holds no token; remove it, and a new one is made", f.Path())
	}
	err = f.Insert(ctx, Token{
		ID: f.NewID(), Name: operatorName, Hash: Hash(secret), MaxTier: gitprovider.TierRemediate, Scopes: AllScopes(),
		CreatedAt: f.Now(), Maker: f.Operator,
	})
	if fault.CodeOf(err) == fault.Conflict { // another process was faster
		return nil
	}
	return err
}

// UsableSecret reports whether one of the tokens is long enough to be accepted.
func UsableSecret(tokens []string) bool {
	return slices.ContainsFunc(tokens, func(t string) bool { return len(t) >= MinConfigured })
}

// AnyGood reports whether one of the tokens lets somebody sign in at a time.
func AnyGood(tokens []Token, now time.Time) bool {
	return slices.ContainsFunc(tokens, func(t Token) bool { return t.Good(now) && !t.Agent })
}
