package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/identity"
)

// looking lets one request about a person at a time ask the provider: a refresh token is good once.
type looking struct {
	mu   sync.Mutex
	now  map[Account]*turn
	down map[Account]outage
}

// outage is why a provider could not be asked about a person.
type outage struct {
	why   error
	until time.Time // when it is asked again
}

type turn struct {
	mu    sync.Mutex
	users int
}

func newLooking() *looking {
	return &looking{now: map[Account]*turn{}, down: map[Account]outage{}}
}

// failed remembers until a time why a provider could not be asked.
func (l *looking) failed(of Account, why error, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down[of] = outage{why, until}
}

// failure is what failed remembers; nil for nothing.
func (l *looking) failure(of Account, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o, known := l.down[of]; known && now.Before(o.until) {
		return o.why
	}
	delete(l.down, of)
	return nil
}

// take waits for the person's turn, which ends with done.
func (l *looking) take(of Account) (done func()) {
	l.mu.Lock()
	t := l.now[of]
	if t == nil {
		t = &turn{}
		l.now[of] = t
	}
	t.users++
	l.mu.Unlock()
	t.mu.Lock()
	return func() {
		t.mu.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(l.now, of)
		}
	}
}

// person is who has signed in by a provider with a login that is good. What the provider has said may be as old as
// within.
func (g *Gatekeeper) person(ctx context.Context, s Login, within time.Duration) (Principal, error) {
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
	who, err = g.asked(ctx, who, within)
	if fault.CodeOf(err) == fault.Unauthenticated {
		return Principal{}, g.end(ctx, s, who.Name, fault.From(err).Message)
	}
	if err != nil {
		return Principal{}, err
	}
	role := g.directory.roleOf(who)
	if role == "" {
		return Principal{}, g.end(ctx, s, who.Name, "the person has no role any more")
	}
	return who.principal(role), nil
}

// asked is a person as their provider said at most within ago; it is asked if that was longer ago. One request at a
// time asks, for whatever login, token or program of the person: a refresh token is good once. With an error, the
// person is as was known before. unauthenticated if the provider does not stand by them.
func (g *Gatekeeper) asked(ctx context.Context, was Person, within time.Duration) (Person, error) {
	if !was.Refused && g.now().Sub(was.LookedAt) < within {
		return was, nil
	}
	began := g.now()
	defer g.looking.take(was.Account)()
	who, found, err := g.directory.People.FindPerson(ctx, was.Account) // another request may have asked meanwhile
	switch {
	case err != nil:
		return was, err
	case !found:
		return was, fault.New(fault.Unauthenticated, "the person is not known any more")
	case who.Refused:
		return who, notStoodBy(who)
	case who.LookedAt.After(began) || within > 0 && g.now().Sub(who.LookedAt) < within:
		return who, nil
	}
	grant, err := g.unsealed(who)
	if err != nil {
		return who, fault.New(fault.Unauthenticated, "what lets the provider be asked again cannot be read")
	}
	return g.look(ctx, who, grant)
}

// look asks the provider who a person is now. One that cannot be asked ends nothing, and lets nobody in.
func (g *Gatekeeper) look(ctx context.Context, who Person, grant identity.Grant) (Person, error) {
	// The caller may go away: a refresh token that was used and not kept would sign the person out.
	ctx = context.WithoutCancel(ctx)
	seen := identity.Person{Provider: who.Provider, Issuer: who.Issuer, Subject: who.Subject}
	now, next, err := g.directory.Look(ctx, seen, grant)
	if fault.CodeOf(err) == fault.Unauthenticated {
		return g.notStoodBy(ctx, who, grant, err)
	}
	sealed, sealErr := g.sealed(who.Account, next)
	if sealErr != nil {
		return who, sealErr
	}
	if err != nil {
		kept := who
		kept.Sealed = sealed
		_, keptErr := g.directory.People.KeepGrant(ctx, kept, who.Sealed)
		return who, cmp.Or(keptErr, err)
	}
	fresh := personOf(now, g.now())
	fresh.Sealed = sealed
	return g.directory.People.KeepPerson(ctx, fresh)
}

// notStoodBy keeps that the provider does not stand by a person any more, for the reason why. An access token that has
// run out says nothing of the person.
func (g *Gatekeeper) notStoodBy(ctx context.Context, who Person, grant identity.Grant, why error) (Person, error) {
	if !lasts(grant) && !g.now().Before(grant.Expires) {
		return who, why
	}
	refused := who
	refused.Sealed, refused.Refused = "", true
	kept, err := g.directory.People.KeepGrant(ctx, refused, who.Sealed)
	if err != nil {
		return who, err
	}
	if kept {
		return who, why
	}
	// Another process has asked with the same refresh token, which the provider takes once.
	now, found, err := g.directory.People.FindPerson(ctx, who.Account)
	if err == nil && (!found || now.Refused) {
		err = why
	}
	return now, err
}

func notStoodBy(who Person) error {
	return fault.New(fault.Unauthenticated, "the provider %s does not stand by the sign-in any more", who.Provider)
}

// owner is the person whose a token is, as their provider said at most LookEvery ago. While it cannot be asked, what it
// said last holds for DownLife; where it cannot be asked without the person, for OwnerLife. unauthenticated if it does
// not stand by them, and upstream_error beyond DownLife.
func (g *Gatekeeper) owner(ctx context.Context, a Account) (Person, error) {
	who, found, err := g.directory.People.FindPerson(ctx, a)
	if err != nil {
		return Person{}, err
	}
	age := g.now().Sub(who.LookedAt)
	if !found || who.Refused {
		return Person{}, notStoodBy(who)
	}
	if age < LookEvery {
		return who, nil
	}
	grant, err := g.unsealed(who)
	switch {
	case err != nil: // sealed with another key
		return Person{}, notStoodBy(who)
	case lasts(grant) || g.now().Before(grant.Expires):
	case age >= OwnerLife:
		return Person{}, notStoodBy(who)
	default:
		return who, nil
	}
	now, err := g.askedOrDown(ctx, who)
	switch {
	case err == nil:
		return now, nil
	case fault.CodeOf(err) == fault.Unauthenticated:
		return Person{}, err
	case age < DownLife:
		return who, nil
	}
	return Person{}, fault.Wrap(err, fault.UpstreamError, "the provider %s has not said for %s what %s may do, and cannot be "+
		"asked now: their tokens rest until it answers; try again later", who.Provider, age.Round(time.Minute), who.Name)
}

// askedOrDown is asked with LookEvery, and for downPause what it failed with.
func (g *Gatekeeper) askedOrDown(ctx context.Context, who Person) (Person, error) {
	if err := g.looking.failure(who.Account, g.now()); err != nil {
		return who, err
	}
	now, err := g.asked(ctx, who, LookEvery)
	if err != nil && fault.CodeOf(err) != fault.Unauthenticated {
		g.looking.failed(who.Account, err, g.now().Add(downPause))
	}
	return now, err
}

// Bounded says what bounds the rights of tokens and programs of a person where their provider cannot be asked about
// them at any time; "" where it can, and for who has not signed in by one.
func (g *Gatekeeper) Bounded(ctx context.Context, who record.Actor) (string, error) {
	if !who.Person.SignedIn() || g.directory.People == nil {
		return "", nil
	}
	p, found, err := g.directory.People.FindPerson(ctx, who.Person.Account())
	if err != nil || !found {
		return "", err
	}
	if grant, err := g.unsealed(p); err == nil && lasts(grant) {
		return "", nil
	}
	return fmt.Sprintf("%s gives this server no means to ask about you while you are away. What you make here keeps the "+
		"rights that you have now until you sign in again, and rests %d days after your last sign-in.", p.Provider,
		int(OwnerLife.Hours()/24)), nil
}

// lasts reports whether a provider can be asked by a grant at any time.
func lasts(grant identity.Grant) bool { return grant.Refresh != "" || grant.Expires.IsZero() }

// sealed is what lets a provider be asked about a person, as it is kept.
func (g *Gatekeeper) sealed(of Account, grant identity.Grant) (string, error) {
	key, err := g.directory.Key()
	if err != nil {
		return "", err
	}
	return seal(key, of, grant, g.random)
}

func (g *Gatekeeper) unsealed(who Person) (identity.Grant, error) {
	key, err := g.directory.Key()
	if err != nil {
		return identity.Grant{}, err
	}
	return unseal(key, who.Account, who.Sealed)
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
