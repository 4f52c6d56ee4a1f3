package access

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/identity"
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

// actor returns the person of a provider that the login belongs to.
func (l Login) actor() record.Actor { return Person{Account: l.Account, Name: l.Name}.Actor() }

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

// errClosed refuses all new sign-ins while the operator's rules cannot be read, as forbidden; nil while they can. Why
// they cannot be is for those who are in.
func (g *Gatekeeper) errClosed() error {
	if g.closed() == "" {
		return nil
	}
	return fault.New(fault.Forbidden, "the operator's rules cannot be read, and nobody can sign in anew until the operator "+
		"corrects them; `claudeops doctor` names what is wrong")
}

// SignIn makes a login for the holder of a token. The id is for the browser alone, which calls itself browser. Errors
// are those of Bearer; forbidden while the operator's rules cannot be read.
func (g *Gatekeeper) SignIn(ctx context.Context, secret, browser string) (id string, p Principal, err error) {
	p, err = g.Bearer(ctx, secret)
	if err != nil {
		return "", Principal{}, err
	}
	if closed := g.errClosed(); closed != nil {
		return "", Principal{}, closed
	}
	return g.createLogin(ctx, p, browser)
}

// createLogin makes a login for a caller who has shown a token.
func (g *Gatekeeper) createLogin(ctx context.Context, p Principal, browser string) (id string, _ Principal, err error) {
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
		return g.loginPrincipal(ctx, s, within)
	}
	p.Via = ViaLogin
	return p, nil
}

// SignOut ends the login with the id.
func (g *Gatekeeper) SignOut(ctx context.Context, id string) error {
	return g.logins.DeleteLogin(ctx, Hash(id))
}

// CodeLife is how long a one-time code is valid.
const CodeLife = 10 * time.Minute

// maxCodes limits the codes that are valid at the same time; a further one replaces the oldest.
const maxCodes = 16

// codes are the one-time codes that were given out and not used, in memory and only as hashes: a server that starts
// anew knows none.
type codes struct {
	now func() time.Time
	mu  sync.Mutex
	all []oneTimeCode
}

// oneTimeCode signs in once: as the holder of a token, or to a login that has begun.
type oneTimeCode struct {
	hash, tokenHash string
	login           string // session id; "" where the code is for a token
	until           time.Time
}

func newCodes(now func() time.Time) *codes { return &codes{now: now} }

func (c *codes) add(code oneTimeCode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, code)
	c.all = c.all[max(0, len(c.all)-maxCodes):]
}

// findCode finds a code, and uses it up if uses is true; found is false for one that is unknown, used or too old.
func (c *codes) findCode(hash string, uses bool) (code oneTimeCode, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	kept := c.all[:0]
	for _, one := range c.all { // all of them, so that the time tells nothing
		same := subtle.ConstantTimeCompare([]byte(one.hash), []byte(hash)) == 1
		good := now.Before(one.until)
		if same && good {
			code, found = one, true
		}
		if good && (!same || !uses) {
			kept = append(kept, one)
		}
	}
	c.all = kept
	return code, found
}

// OneTimeCode makes a code that signs a browser in as the holder of the token: once, and for CodeLife. Errors are those
// of Bearer.
func (g *Gatekeeper) OneTimeCode(ctx context.Context, secret string) (code string, err error) {
	p, err := g.Bearer(ctx, secret)
	if err != nil {
		return "", err
	}
	if code, err = newID(g.random); err != nil {
		return "", fault.From(err)
	}
	g.codes.add(oneTimeCode{hash: Hash(code), tokenHash: p.TokenHash, until: g.now().Add(CodeLife)})
	return code, nil
}

// HandOver makes a code that gives a login to the next host name of the same browser: once, and for CodeLife. The login
// ends with what it was begun by, as any other.
func (g *Gatekeeper) HandOver(id string) (code string, err error) {
	if code, err = newID(g.random); err != nil {
		return "", fault.From(err)
	}
	g.handed.add(oneTimeCode{hash: Hash(code), login: id, until: g.now().Add(CodeLife)})
	return code, nil
}

// SignInOnce uses a code up and makes a login for the holder of its token, or returns the login that it hands over;
// unauthenticated if it was used, is too old or was never given, or if the token was revoked. While the operator's
// rules cannot be read, a code for a token is forbidden, and stays good.
func (g *Gatekeeper) SignInOnce(ctx context.Context, code, browser string) (id string, p Principal, err error) {
	if handed, found := g.handed.findCode(Hash(code), true); found {
		p, err = g.Login(ctx, handed.login)
		return handed.login, p, err
	}
	closed := g.errClosed()
	good, found := g.codes.findCode(Hash(code), closed == nil)
	if found && closed != nil {
		return "", Principal{}, closed
	}
	if found {
		p, found, err = g.holder(ctx, good.tokenHash)
	}
	switch {
	case err != nil:
		return "", Principal{}, err
	case !found:
		return "", Principal{}, fault.New(fault.Unauthenticated,
			"the one-time address was used already, or is too old: sign in with a token")
	}
	return g.createLogin(ctx, p, browser)
}

// looking lets one request about a person at a time ask the provider: a refresh token is good once.
type looking struct {
	mu   sync.Mutex
	now  map[Account]*turn
	down map[Account]outage
}

// outage says why a provider could not be asked about a person.
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

// rememberFailure remembers until a time why a provider could not be asked.
func (l *looking) rememberFailure(of Account, why error, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down[of] = outage{why, until}
}

// recentFailure returns the error that failed recorded, while it is valid; otherwise nil.
func (l *looking) recentFailure(of Account, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o, known := l.down[of]; known && now.Before(o.until) {
		return o.why
	}
	delete(l.down, of)
	return nil
}

// lockAccount waits for the person's turn, which ends with done.
func (l *looking) lockAccount(of Account) (done func()) {
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

// loginPrincipal returns the principal of a valid login by a provider. The provider's answer may be as old as within.
func (g *Gatekeeper) loginPrincipal(ctx context.Context, s Login, within time.Duration) (Principal, error) {
	if g.directory.People == nil { // no provider is configured any more
		return Principal{}, errors.Join(errSignedOut(), g.logins.DeleteLogin(ctx, s.Hash))
	}
	who, found, err := g.directory.People.FindPerson(ctx, s.Account)
	if err != nil {
		return Principal{}, err
	}
	if !found {
		return Principal{}, g.terminateLogin(ctx, s, who.Name, "the person is not known any more")
	}
	who, err = g.currentPerson(ctx, who, within)
	if fault.CodeOf(err) == fault.Unauthenticated {
		return Principal{}, g.terminateLogin(ctx, s, who.Name, fault.From(err).Message)
	}
	if err != nil {
		return Principal{}, err
	}
	role, why := g.directory.roleOf(who), g.closed()
	switch {
	case role != "":
		return who.principal(role), nil
	case why != "": // a server that started with rules that it cannot read has never known the roles
		return Principal{}, fault.New(fault.Forbidden, "%s; roles are not known until the operator corrects it", why)
	}
	return Principal{}, g.terminateLogin(ctx, s, who.Name, "the person has no role any more")
}

// currentPerson returns a person as their provider said at most within ago; it is asked if that was longer ago. One
// request at a time asks, for whatever login, token or program of the person: a refresh token is good once. With an
// error, the person is as was known before. unauthenticated if the provider no longer recognises them.
func (g *Gatekeeper) currentPerson(ctx context.Context, was Person, within time.Duration) (Person, error) {
	if !was.Refused && g.now().Sub(was.LookedAt) < within {
		return was, nil
	}
	began := g.now()
	defer g.looking.lockAccount(was.Account)()
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
	return g.recheckPerson(ctx, who, grant)
}

// recheckPerson asks the provider about a person. If the provider cannot be reached, the login remains, but the error
// refuses this call.
func (g *Gatekeeper) recheckPerson(ctx context.Context, who Person, grant identity.Grant) (Person, error) {
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

// notStoodBy records that the provider no longer recognises a person, for the reason why. An expired access token says
// nothing about the person.
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

// owner returns the owner of a token, as their provider described them at most LookEvery ago. While it cannot be
// reached, its last answer is valid for DownLife; where it cannot be asked without the person, for OwnerLife.
// unauthenticated if it no longer recognises them, and upstream_error beyond DownLife.
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

// askedOrDown is asked with LookEvery; after a failure it returns that error for downPause.
func (g *Gatekeeper) askedOrDown(ctx context.Context, who Person) (Person, error) {
	if err := g.looking.recentFailure(who.Account, g.now()); err != nil {
		return who, err
	}
	now, err := g.currentPerson(ctx, who, LookEvery)
	if err != nil && fault.CodeOf(err) != fault.Unauthenticated {
		g.looking.rememberFailure(who.Account, err, g.now().Add(downPause))
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

// sealed returns the grant, encrypted for storage, with which the provider can be asked about a person.
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

// terminateLogin ends a login, records why, and returns the answer to its browser.
func (g *Gatekeeper) terminateLogin(ctx context.Context, s Login, name, why string) error {
	answer := fault.New(fault.Unauthenticated, "the session has ended: %s; sign in again", why)
	s.Name = name
	row := g.auditRow(ActionEnd, g.directory.NewID(), s.actor(), nil, "login "+s.ID+": "+why)
	err := g.logins.EndLogin(context.WithoutCancel(ctx), s.ID, row)
	if err != nil && fault.CodeOf(err) != fault.NotFound { // else another request has ended it
		return err
	}
	return answer
}

// What lets a provider be asked about a person is kept sealed with a key that is not in the records: who has the
// records alone can do nothing with it. It belongs to one person, whose every login, token and program is judged by
// what it brings.

func sealer(key []byte) (cipher.AEAD, error) {
	sum := sha256.Sum256(append([]byte("claudeops grant of a person\x00"), key...))
	block, err := aes.NewCipher(sum[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func seal(key []byte, of Account, g identity.Grant, random io.Reader) (string, error) {
	plain, err := json.Marshal(g)
	if err != nil {
		return "", err
	}
	c, err := sealer(key)
	if err != nil {
		return "", err
	}
	nonce := make([]byte, c.NonceSize())
	if _, err := io.ReadFull(random, nonce); err != nil {
		return "", err
	}
	return base64.RawStdEncoding.EncodeToString(c.Seal(nonce, nonce, plain, accountData(of))), nil
}

func unseal(key []byte, of Account, sealed string) (g identity.Grant, err error) {
	raw, err := base64.RawStdEncoding.DecodeString(sealed)
	if err != nil {
		return g, err
	}
	c, err := sealer(key)
	if err != nil {
		return g, err
	}
	if len(raw) < c.NonceSize() {
		return g, errors.New("it is cut short")
	}
	plain, err := c.Open(nil, raw[:c.NonceSize()], raw[c.NonceSize():], accountData(of))
	if err != nil {
		return g, err
	}
	return g, json.Unmarshal(plain, &g)
}

// accountData ties what is sealed to its person.
func accountData(of Account) []byte { return []byte(of.Issuer + "\x00" + of.Subject) }
