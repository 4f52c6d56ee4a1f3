// Package tokens is the use case of what a person does to the tokens of REST and sign-in: make one, list them, make one useless. The
// command line, REST and the dashboard call it, so that one rule holds for all; see internal/operation/people.
package tokens

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/content"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/people"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
)

// MaxName bounds the name of a token, in bytes. It is in the record of all that the token does.
const MaxName = 64

// Store keeps tokens. internal/records/store implements it; errors are faults.
type Store interface {
	InsertToken(ctx context.Context, t access.Token, rows ...record.Attempt) error
	Tokens(ctx context.Context) ([]access.Token, error)
	RevokeToken(ctx context.Context, idOrName string, rows ...record.Attempt) error
}

// Options are what a Service is made of. All are required.
type Options struct {
	Store  Store
	People *people.Service
	Random io.Reader
	Now    func() time.Time
	NewID  func() string
}

// Service is the use case. It is safe for concurrent use.
type Service struct{ Options }

// New makes a Service.
func New(o Options) *Service { return &Service{o} }

// Grant is the most that who asks may give to others. Nobody gives what they have not.
type Grant struct {
	Tier   gitprovider.Tier
	Scopes access.Scopes
}

// Everything is the grant of the person at the terminal of the server.
func Everything() Grant { return Grant{operation.Unlimited, access.AllScopes()} }

// Wanted is the token that is asked for.
type Wanted struct {
	Name    string
	MaxTier gitprovider.Tier
	Scopes  string // separated by commas; none for an agent's
	// Agent asks for one that lets an agent in over MCP, and opens nothing else.
	Agent bool
	// Lifetime is how long it is good; 0: until it is revoked.
	Lifetime time.Duration
}

// Create makes a token, records that, and returns it with its secret, which nobody can read again.
//
// Errors: invalid_argument for a name, tier or scope that is none, forbidden for what the grant lacks, conflict for a name that another
// good token has.
func (s *Service) Create(ctx context.Context, by operation.Caller, grant Grant, w Wanted) (t access.Token, secret string, err error) {
	err = s.People.Do(ctx, people.Act{Action: people.CreateToken, By: by}, func(row people.Row) error {
		if t, secret, err = s.make(grant, w); err != nil {
			return err
		}
		return s.Store.InsertToken(ctx, t, row(Describe(t)))
	})
	if err != nil {
		return access.Token{}, "", err
	}
	return t, secret, nil
}

func (s *Service) make(grant Grant, w Wanted) (access.Token, string, error) {
	none := access.Token{}
	scopes, err := w.scopes()
	lacks := slices.DeleteFunc(slices.Clone(scopes), grant.Scopes.Has)
	switch {
	case err != nil:
		return none, "", fault.New(fault.InvalidArgument, "%s", err)
	case w.MaxTier < gitprovider.TierObserve || w.MaxTier > gitprovider.TierRemediate:
		return none, "", fault.New(fault.InvalidArgument, "the highest tier of a token is 1, 2 or 3")
	case access.Reserved(w.Name):
		return none, "", fault.New(fault.InvalidArgument, "%s is a name that the record has for other callers; choose another one", w.Name)
	case !goodName(w.Name):
		return none, "", fault.New(fault.InvalidArgument, "the name of a token must be 1 to %d bytes without control characters", MaxName)
	case len(lacks) > 0:
		return none, "", fault.New(fault.Forbidden, "you have not the scope %s yourself, and cannot give it", lacks)
	case w.MaxTier > grant.Tier:
		return none, "", fault.New(fault.Forbidden, "you have tier %s at most, and cannot give tier %s", grant.Tier, w.MaxTier)
	}
	secret, err := access.NewSecret(s.Random)
	if err != nil {
		return none, "", err
	}
	t := access.Token{
		ID: s.NewID(), Name: w.Name, Hash: access.Hash(secret), MaxTier: w.MaxTier, Scopes: scopes, CreatedAt: s.Now(), Agent: w.Agent,
	}
	if w.Lifetime > 0 {
		t.ExpiresAt = t.CreatedAt.Add(w.Lifetime)
	}
	return t, secret, nil
}

func (w Wanted) scopes() (access.Scopes, error) {
	if w.Agent && w.Scopes == "" {
		return nil, nil
	}
	if w.Agent {
		return nil, fmt.Errorf("an agent's token has no scopes")
	}
	return access.ParseScopes(w.Scopes)
}

func goodName(name string) bool {
	return name != "" && len(name) <= MaxName && utf8.ValidString(name) && content.Clean(name, MaxName) == name &&
		!strings.ContainsFunc(name, unicode.IsControl) && strings.TrimSpace(name) == name
}

// Describe is a token as the audit has it, without its secret.
func Describe(t access.Token) string {
	what := "scopes " + t.Scopes.String()
	if t.Agent {
		what = "for an agent, over MCP alone"
	}
	if !t.ExpiresAt.IsZero() {
		what += ", until " + t.ExpiresAt.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("token %s (%s): at most tier %s, %s", t.Name, t.ID, t.MaxTier, what)
}

// List returns every token, revoked ones included, oldest first.
func (s *Service) List(ctx context.Context) ([]access.Token, error) { return s.Store.Tokens(ctx) }

// Revoke makes a good token, by its id or name, and the logins made with it useless from now on, and records that. not_found if there
// is none, invalid_argument for what may be the secret of one.
func (s *Service) Revoke(ctx context.Context, by operation.Caller, idOrName string) error {
	return s.People.Do(ctx, people.Act{Action: people.RevokeToken, By: by}, func(row people.Row) error {
		if strings.HasPrefix(idOrName, access.TokenPrefix) {
			return fault.New(fault.InvalidArgument, "give the name or the id of the token, and never its secret")
		}
		return s.Store.RevokeToken(ctx, idOrName, row("token "+idOrName))
	})
}

// Refused records what was refused before it came to Create or Revoke. It returns the error with the request id of the row.
func (s *Service) Refused(ctx context.Context, by operation.Caller, action people.Action, why error) error {
	return s.People.Refused(ctx, people.Act{Action: action, By: by}, why)
}
