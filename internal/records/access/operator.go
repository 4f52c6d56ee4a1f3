package access

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/secretfile"
)

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
		if err := f.create(ctx); err != nil {
			return "", err
		}
	}
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

func (f FirstToken) create(ctx context.Context) error {
	text, err := secretfile.Load(f.Folder, f.File, func() (string, error) {
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
