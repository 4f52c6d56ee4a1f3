package access

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/identity"
)

// looking lets one request of a browser at a time ask the provider: a refresh token is good once.
type looking struct {
	mu  sync.Mutex
	now map[string]*turn // by hash of the login
}

type turn struct {
	mu    sync.Mutex
	users int
}

func newLooking() *looking { return &looking{now: map[string]*turn{}} }

// take waits for the login's turn, which ends with done.
func (l *looking) take(hash string) (done func()) {
	l.mu.Lock()
	t := l.now[hash]
	if t == nil {
		t = &turn{}
		l.now[hash] = t
	}
	t.users++
	l.mu.Unlock()
	t.mu.Lock()
	return func() {
		t.mu.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(l.now, hash)
		}
	}
}

// person is who has signed in by a provider with a login that is good. What the provider has said may be as old as
// within.
func (g *Gatekeeper) person(ctx context.Context, id string, s Login, within time.Duration) (Principal, error) {
	if g.directory.People == nil { // no provider is configured any more
		return Principal{}, errors.Join(errSignedOut(), g.logins.DeleteLogin(ctx, s.Hash))
	}
	who, found, err := g.directory.People.FindPerson(ctx, s.Account)
	if err != nil {
		return Principal{}, err
	}
	if !found {
		return Principal{}, g.end(ctx, s, who.Name, "the person is not known any more")
	}
	if g.now().Sub(s.LookedAt) >= within {
		if who, err = g.lookAgain(ctx, id, s, who, within); err != nil {
			return Principal{}, err
		}
	}
	role := g.directory.roleOf(who)
	if role == "" {
		return Principal{}, g.end(ctx, s, who.Name, "the person has no role any more")
	}
	return who.principal(role), nil
}

// lookAgain asks the provider who the person is now. One that cannot be asked ends nothing, and lets nobody in.
func (g *Gatekeeper) lookAgain(ctx context.Context, id string, s Login, was Person, within time.Duration) (Person,
	error) {
	began := g.now()
	defer g.looking.take(s.Hash)()
	s, found, err := g.logins.FindLogin(ctx, s.Hash) // another request may have asked meanwhile
	switch {
	case err != nil:
		return Person{}, err
	case !found:
		return Person{}, errSignedOut()
	case s.LookedAt.After(began) || within > 0 && g.now().Sub(s.LookedAt) < within:
		now, _, err := g.directory.People.FindPerson(ctx, s.Account)
		return now, err
	}
	grant, err := unseal(id, s.Sealed)
	if err != nil {
		return Person{}, g.end(ctx, s, was.Name, "what lets the provider be asked again cannot be read")
	}
	seen := identity.Person{Provider: was.Provider, Issuer: was.Issuer, Subject: was.Subject, Session: s.ProviderSession}
	// The browser may go away: a refresh token that was used and not kept would sign the person out.
	now, grant, err := g.directory.Look(context.WithoutCancel(ctx), seen, grant)
	if fault.CodeOf(err) == fault.Unauthenticated {
		return Person{}, g.end(ctx, s, was.Name, fault.From(err).Message)
	}
	if keptErr := g.keepGrant(ctx, id, s, grant, err == nil); keptErr != nil {
		return Person{}, keptErr
	}
	if err != nil {
		return Person{}, err
	}
	return g.directory.People.KeepPerson(context.WithoutCancel(ctx), personOf(now, g.now()))
}

// keepGrant keeps what lets the provider be asked the next time.
func (g *Gatekeeper) keepGrant(ctx context.Context, id string, s Login, grant identity.Grant, looked bool) error {
	sealed, err := seal(id, grant, g.random)
	if err != nil {
		return err
	}
	if s.Sealed = sealed; looked {
		s.LookedAt = g.now()
	}
	return g.logins.UpdateLogin(context.WithoutCancel(ctx), s)
}

// end ends a login, records why, and returns the answer to its browser.
func (g *Gatekeeper) end(ctx context.Context, s Login, name, why string) error {
	answer := fault.New(fault.Unauthenticated, "the session has ended: %s; sign in again", why)
	s.Name = name
	row := g.row(ActionEnd, g.directory.NewID(), s.person(), nil, "login "+s.ID+": "+why)
	err := g.logins.EndLogin(context.WithoutCancel(ctx), s.ID, row)
	if err != nil && fault.CodeOf(err) != fault.NotFound { // else another request has ended it
		return err
	}
	return answer
}
