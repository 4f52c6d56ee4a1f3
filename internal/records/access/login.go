package access

import (
	"context"
	"errors"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// How long a login lives: without use, and in all.
const (
	LoginIdle = 12 * time.Hour
	LoginLife = 7 * 24 * time.Hour
)

// loginIDLength is the length of a login's ID that people see.
const loginIDLength = 16

// touchEvery is the precision with which the last use of a login is recorded: a page of many requests is one write.
const touchEvery = time.Minute

// Login is the stored record of a signed-in browser. Its rights are the present rights of its token or person.
type Login struct {
	Hash      string // of the id in the cookie
	TokenHash string // "" for a person of a provider
	CreatedAt time.Time
	SeenAt    time.Time

	ID      string // for people, not secret; "" for logins of earlier versions
	Browser string // as it calls itself; untrusted text
	// Of a person of a provider:
	Account
	ProviderSession string // of the person at the provider; "" where it has none

	// Name is the name of the person or token that it belongs to, and Holder that token, where Logins has found them.
	Name   string
	Holder record.Actor
}

// Of reports whether it is a login of the actor's: of the same person or, where there is none, of the same token.
func (l Login) Of(who record.Actor) bool {
	mine := l.Holder.Account()
	if l.Account != (Account{}) {
		mine = l.Account
	}
	return mine != Account{} && mine == who.Account()
}

// person returns the person of a provider that the login belongs to.
func (l Login) person() record.Actor { return Person{Account: l.Account, Name: l.Name}.Actor() }

// Logins is the memory of logins. internal/records/store implements it; errors are faults.
type Logins interface {
	// InsertLogin keeps a login, drops those that were made before madeBefore or not seen since seenBefore, and appends
	// the rows to the audit.
	InsertLogin(ctx context.Context, s Login, madeBefore, seenBefore time.Time, rows ...record.Attempt) error
	FindLogin(ctx context.Context, hash string) (s Login, found bool, err error)
	// TouchLogin notes when the login was seen. One that is gone stays gone.
	TouchLogin(ctx context.Context, hash string, at time.Time) error
	// DeleteLogin forgets a login. A missing one is not an error.
	DeleteLogin(ctx context.Context, hash string) error
	// Logins lists all logins, newest first, with the names of their holders.
	Logins(ctx context.Context) ([]Login, error)
	// EndLogin forgets the login with the ID, and appends the rows to the audit; not_found if there is none.
	EndLogin(ctx context.Context, id string, rows ...record.Attempt) error
}

// SignIn makes a login for the holder of a token. The id is for the browser alone, which calls itself browser. Errors
// are those of Bearer.
func (g *Gatekeeper) SignIn(ctx context.Context, secret, browser string) (id string, p Principal, err error) {
	p, err = g.Bearer(ctx, secret)
	if err != nil {
		return "", Principal{}, err
	}
	return g.begin(ctx, p, browser)
}

// begin makes a login for a caller who has shown a token.
func (g *Gatekeeper) begin(ctx context.Context, p Principal, browser string) (id string, _ Principal, err error) {
	id, err = newID(g.random)
	if err != nil {
		return "", Principal{}, fault.From(err)
	}
	now := g.now()
	public, err := newID(g.random)
	if err != nil {
		return "", Principal{}, fault.From(err)
	}
	login := Login{Hash: Hash(id), TokenHash: p.TokenHash, CreatedAt: now, SeenAt: now, ID: public[:loginIDLength],
		Browser: browser}
	if err := g.logins.InsertLogin(ctx, login, now.Add(-LoginLife), now.Add(-LoginIdle)); err != nil {
		return "", Principal{}, err
	}
	p.Via = ViaLogin
	return id, p, nil
}

// errSignedOut returns the one answer for every invalid id of a login.
func errSignedOut() error {
	return fault.New(fault.Unauthenticated, "the session has ended; sign in again")
}

// Login recognises the browser with the id of a login; unauthenticated if the login has ended, or its token was
// revoked. For a person of a provider see LookEvery; upstream_error and timeout if the provider cannot be asked when it
// has to be.
func (g *Gatekeeper) Login(ctx context.Context, id string) (Principal, error) {
	return g.login(ctx, id, LookEvery)
}

// LoginNow is Login for a person who is about to change something: the provider is asked at once.
func (g *Gatekeeper) LoginNow(ctx context.Context, id string) (Principal, error) {
	return g.login(ctx, id, 0)
}

func (g *Gatekeeper) login(ctx context.Context, id string, within time.Duration) (Principal, error) {
	hash, now := Hash(id), g.now()
	s, found, err := g.logins.FindLogin(ctx, hash)
	switch {
	case err != nil:
		return Principal{}, err
	case !found:
		return Principal{}, errSignedOut()
	}
	person := s.Account != Account{}
	var p Principal
	ok := person
	if !person {
		p, ok, err = g.holder(ctx, s.TokenHash)
	}
	if err != nil {
		return Principal{}, err
	}
	if !ok || !now.Before(s.CreatedAt.Add(LoginLife)) || !now.Before(s.SeenAt.Add(LoginIdle)) {
		return Principal{}, errors.Join(errSignedOut(), g.logins.DeleteLogin(ctx, hash))
	}
	if now.Sub(s.SeenAt) >= touchEvery {
		if err := g.logins.TouchLogin(ctx, hash, now); err != nil {
			return Principal{}, err
		}
	}
	if person {
		return g.person(ctx, s, within)
	}
	p.Via = ViaLogin
	return p, nil
}

// SignOut ends the login with the id.
func (g *Gatekeeper) SignOut(ctx context.Context, id string) error {
	return g.logins.DeleteLogin(ctx, Hash(id))
}
