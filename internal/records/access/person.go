package access

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/system/identity"
)

// Via is the way in which a caller was recognised.
type Via string

// The ways.
const (
	ViaToken     Via = "token"
	ViaLogin     Via = "session"
	ViaProxy     Via = "proxy"
	ViaAnonymous Via = anonymousName // who shows nothing, where the operator lets them read
)

// Principal is a caller, and what the operator lets it do.
type Principal struct {
	Actor record.Actor // at no door yet
	Via   Via
	// Ceiling lowers the server's tier; it never raises it.
	Ceiling gitprovider.Tier
	Scopes  Scopes
	// TokenHash is the hash of the token behind ViaToken and ViaLogin.
	TokenHash string
}

// Name is for people to read. It does not identify a person: see Actor.Account.
func (p Principal) Name() string {
	if p.Actor.IsZero() {
		return ""
	}
	return p.Actor.String()
}

// Still compares a caller with who they were when their call began: tier_denied if their tier was lowered since,
// forbidden if they have lost the scope, unauthenticated if the credential is another one's now.
func (p Principal) Still(was Principal, scope Scope) error {
	switch {
	case p.Actor.Account() != was.Actor.Account():
		return fault.New(fault.Unauthenticated, "the credential is not that of %s any more; nothing was done", was.Name())
	case p.Ceiling < was.Ceiling:
		return tierLowered(was.Name())
	case scope != "" && !p.Scopes.Has(scope):
		return fault.New(fault.Forbidden, "%s lost the scope %s while the call waited; nothing was done", was.Name(),
			scope)
	}
	return nil
}

// Names of callers that are not people.
const (
	anonymousName  = record.SystemAnonymous
	configuredName = "CLAUDEOPS_API_TOKENS"
)

// Reserved reports whether a name, in any case or with letters that look like others, is one that the records have for
// others, or that of a provider of identities: neither a token nor a program may have it.
func Reserved(name string, providers ...string) bool {
	name = textscan.Undisguise(name)
	return record.ReservedName(name) || notAPerson(name) ||
		slices.ContainsFunc(providers, func(p string) bool { return strings.EqualFold(p, strings.TrimSpace(name)) })
}

func notAPerson(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	return name == anonymousName || strings.HasPrefix(name, strings.ToLower(configuredName)) ||
		strings.HasPrefix(name, TokenPrefix)
}

// anonymous may read, and nothing else: it may be an agent.
func anonymous() Principal {
	return Principal{
		Actor:   record.Actor{System: anonymousName},
		Via:     ViaAnonymous,
		Ceiling: gitprovider.TierObserve,
		Scopes:  Scopes{Read},
	}
}

// proxied returns a person that a trusted proxy has recognised: all scopes, at the server's tier.
func proxied(user string) Principal {
	who := &record.Person{Issuer: record.IssuerProxy, Subject: user, Name: record.IssuerProxy + ":" + user}
	return Principal{Actor: record.Actor{Person: who}, Via: ViaProxy, Ceiling: gitprovider.TierRemediate,
		Scopes: AllScopes()}
}

// Scope is one thing that a caller may be let do.
type Scope string

// The scopes. Each stands for itself: propose does not include read.
const (
	Propose Scope = "propose" // make proposals
	Review  Scope = "review"  // decide about them: promote a dry run, approve, merge, close
	Read    Scope = "read"    // look at everything that is recorded
	Operate Scope = "operate" // start and stop agents
)

// Scopes is a set of scopes, in the order of AllScopes.
type Scopes []Scope

// AllScopes returns every scope.
func AllScopes() Scopes { return Scopes{Propose, Review, Read, Operate} }

// ScopesOfAgent returns the scopes that an agent of a tier stands for; see MayGive.
func ScopesOfAgent(tier gitprovider.Tier, readOnly bool) Scopes {
	if readOnly || tier == gitprovider.TierObserve {
		return Scopes{Read}
	}
	return Scopes{Propose, Read}
}

// MayGive returns forbidden unless a caller who has these scopes may let an agent of the tier in. Every way to do so
// asks it: a token, consent in a browser, and the start of a session. An agent never has a right that its maker lacks.
// who names the caller.
func (s Scopes) MayGive(who string, tier gitprovider.Tier, readOnly bool) error {
	if len(s.Lacks(ScopesOfAgent(tier, readOnly))) == 0 {
		return nil
	}
	return fault.New(fault.Forbidden, "an agent of tier %s reads, and proposes from tier 2 on; %s has %s", tier, who, s)
}

// HighestAgent returns the highest tier, up to a ceiling, of an agent that a caller who has these scopes may let in; 0
// for none.
func (s Scopes) HighestAgent(ceiling gitprovider.Tier) gitprovider.Tier {
	for tier := ceiling; tier >= gitprovider.TierObserve; tier-- {
		if len(s.Lacks(ScopesOfAgent(tier, false))) == 0 {
			return tier
		}
	}
	return 0
}

// Lacks returns the scopes of others that are not in the set.
func (s Scopes) Lacks(others Scopes) Scopes {
	return slices.DeleteFunc(slices.Clone(others), s.Has)
}

// Has reports whether the scope is in the set.
func (s Scopes) Has(scope Scope) bool { return slices.Contains(s, scope) }

// String returns the set as ParseScopes reads it.
func (s Scopes) String() string {
	words := make([]string, len(s))
	for i, scope := range s {
		words[i] = string(scope)
	}
	return strings.Join(words, ",")
}

// ParseScopes reads a list separated by commas. An empty list and unknown words are errors.
func ParseScopes(list string) (Scopes, error) {
	wanted := map[Scope]bool{}
	for _, word := range strings.Split(list, ",") {
		scope := Scope(strings.TrimSpace(word))
		if !AllScopes().Has(scope) {
			return nil, fmt.Errorf("%.20q is not a scope; the scopes are %s", word, AllScopes())
		}
		wanted[scope] = true
	}
	return slices.DeleteFunc(AllScopes(), func(s Scope) bool { return !wanted[s] }), nil
}

// LookEvery is how long a provider's answer about a person is valid. Before a person changes something, the provider is
// asked in any case.
const LookEvery = 15 * time.Minute

// DownLife is how long a provider's answer about the owner of a token stays valid while the provider cannot be reached.
const DownLife = time.Hour

// downPause is the pause before a provider that could not be reached about the owner of a token is asked again.
const downPause = 30 * time.Second

// OwnerLife is how long the tokens of a person stay valid after their provider last recognised them, where it cannot be
// asked without the person: somebody who has left for good cannot sign in again.
const OwnerLife = 30 * 24 * time.Hour

// Account is the permanent id of a person at a provider of identities. The zero value belongs to no one.
type Account = gitprovider.Account

// Person is the stored record of somebody whom a provider has recognised.
type Person struct {
	Account
	Provider string   // as the operator names it
	Name     string   // in the record; given once, and never reused for another person
	User     string   // at the provider; "" where it has none
	Groups   []string // as the provider last said
	LookedAt time.Time
	Sealed   string // what lets the provider be asked again; see seal. "" for nothing
	// Refused says that the provider no longer recognises the person's sign-in. It stays until they sign in again.
	Refused bool
}

// Actor returns the person, at no door yet.
func (p Person) Actor() record.Actor {
	return record.Actor{Person: &record.Person{Issuer: p.Issuer, Subject: p.Subject, Name: p.Name}}
}

// policySubject returns the person as the policy asks.
func (p Person) policySubject() policy.Known {
	return policy.Known{Provider: p.Provider, Subject: p.Subject, User: p.User, Groups: p.Groups}
}

// People is the memory of persons. internal/records/store implements it; errors are faults.
type People interface {
	// KeepPerson keeps what a provider has said. Name is ignored: the one that the person has is returned or, at the first
	// time, a new one that no token and no other person has.
	KeepPerson(ctx context.Context, p Person) (Person, error)
	// KeepGrant keeps Sealed and Refused of a person whose Sealed is still was; kept is false, and nothing is written, if
	// it is not.
	KeepGrant(ctx context.Context, p Person, was string) (kept bool, err error)
	FindPerson(ctx context.Context, a Account) (p Person, found bool, err error)
	// LogoutKnown reports whether a provider's logout token was taken before; KeepLogout remembers one until a time.
	LogoutKnown(ctx context.Context, issuer, id string) (known bool, err error)
	KeepLogout(ctx context.Context, issuer, id string, until time.Time) error
}

// Directory looks up people and the rights that the operator gives them. The zero value has no people.
type Directory struct {
	People People
	// Key seals what lets providers be asked again. It must stay the same.
	Key func() ([]byte, error)
	// Look asks a provider again about a person.
	Look func(ctx context.Context, was identity.Person, g identity.Grant) (identity.Person, identity.Grant, error)
	// Role returns the role that the policy gives to a person of an issuer; "" for none, also where the provider is not
	// configured any more.
	Role func(issuer string, who policy.Known) policy.Role
	// Record appends to the audit.
	Record func(ctx context.Context, a record.Attempt) error
	NewID  func() string
}

// ScopesOf returns the scopes of a role.
func ScopesOf(role policy.Role) Scopes {
	switch role {
	case policy.RoleOperator:
		return AllScopes()
	case policy.RoleReviewer:
		return Scopes{Review, Read}
	case policy.RoleViewer:
		return Scopes{Read}
	}
	return Scopes{}
}

// principal returns the person in a role.
func (p Person) principal(role policy.Role) Principal {
	out := Principal{Actor: p.Actor(), Via: ViaLogin, Ceiling: gitprovider.TierRemediate, Scopes: ScopesOf(role)}
	if role == policy.RoleViewer {
		out.Ceiling = gitprovider.TierObserve
	}
	return out
}

// roleOf returns the role of a person.
func (d Directory) roleOf(p Person) policy.Role {
	if d.Role == nil {
		return ""
	}
	return d.Role(p.Issuer, p.policySubject())
}

// Actions of the audit.
const (
	ActionSignIn = "sign-in"
	ActionEnd    = "sign-in.end" // of a login, by whatever ended it
)

// auditRow returns a row of the audit about a person.
func (g *Gatekeeper) auditRow(action, id string, who record.Actor, err error, message string) record.Attempt {
	row := record.Attempt{
		Time: g.now(), RequestID: id, Actor: who.At(record.DoorWeb), Action: action, Outcome: record.OutcomeDone,
		Message: message,
	}
	if err != nil {
		e := fault.From(err)
		row.Code, row.Outcome, row.Message = e.Code, record.OutcomeOf(e.Code), e.Message
	}
	return row
}

// Identity is a person that a provider has just recognised, at a browser.
type Identity struct {
	Person  identity.Person
	Grant   identity.Grant
	Browser string // as it calls itself
	ID      string // of the request
}

// Arrive makes a login for a person that a provider has recognised, and records it.
//
// Errors: forbidden, and recorded, if the policy gives them no role, or cannot be read.
func (g *Gatekeeper) Arrive(ctx context.Context, a Identity) (id string, p Principal, err error) {
	who := personOf(a.Person, g.now())
	if closed := g.errClosed(); closed != nil {
		who.Name = who.Provider + ":" + cmp.Or(who.User, who.Subject)
		return "", Principal{}, g.Refused(ctx, a.ID, who.Actor(), closed)
	}
	if who.Sealed, err = g.sealed(who.Account, a.Grant); err != nil {
		return "", Principal{}, err
	}
	role := g.directory.roleOf(who)
	if role == "" {
		return "", Principal{}, g.noRole(ctx, a.ID, who)
	}
	if who, err = g.directory.People.KeepPerson(ctx, who); err != nil {
		return "", Principal{}, err
	}
	if id, err = newID(g.random); err != nil {
		return "", Principal{}, fault.From(err)
	}
	now := g.now()
	login := Login{
		Hash: Hash(id), ID: g.directory.NewID(), CreatedAt: now, SeenAt: now, Browser: a.Browser,
		Account: who.Account, ProviderSession: a.Person.Session,
	}
	said := fmt.Sprintf("as %s, by %s (issuer %s, subject %s); login %s", role, who.Provider, who.Issuer, who.Subject,
		login.ID)
	row := g.auditRow(ActionSignIn, a.ID, who.Actor(), nil, said)
	if err := g.logins.InsertLogin(ctx, login, now.Add(-LoginLife), now.Add(-LoginIdle), row); err != nil {
		return "", Principal{}, err
	}
	return id, who.principal(role), nil
}

// noRole records a person without a role in the policy, and returns the answer. The record of one who had a role is
// updated, since their tokens depend on it.
func (g *Gatekeeper) noRole(ctx context.Context, id string, who Person) error {
	if g.directory.People != nil {
		_, known, err := g.directory.People.FindPerson(ctx, who.Account)
		if err == nil && known {
			_, err = g.directory.People.KeepPerson(ctx, who)
		}
		if err != nil {
			return err
		}
	}
	called := cmp.Or(who.User, who.Subject)
	who.Name = who.Provider + ":" + called
	return g.Refused(ctx, id, who.Actor(),
		fault.New(fault.Forbidden, "%s knows you as %s (subject %s), and the operator has given "+
			"you no role here; the policy names people by user, subject or group", who.Provider, called, who.Subject))
}

func personOf(p identity.Person, now time.Time) Person {
	return Person{
		Account:  Account{Issuer: p.Issuer, Subject: p.Subject},
		Provider: p.Provider,
		User:     p.User,
		Groups:   p.Groups,
		LookedAt: now,
	}
}

// Refused records that somebody was not signed in, and returns why. who they are, as far as it is known.
func (g *Gatekeeper) Refused(ctx context.Context, id string, who record.Actor, why error) error {
	if g.directory.Record == nil {
		return why
	}
	if err := g.directory.Record(ctx, g.auditRow(ActionSignIn, id, who, why, "")); err != nil {
		return fault.From(err)
	}
	return why
}

// LoggedOut ends the logins of a person who has signed out at the provider: those of one of its sessions, or all of
// them if it names none. It returns how many there were. A token that comes again ends nothing: the person may have
// signed in anew. It is remembered once its logins have ended, so that a failure is made good by the provider's next
// try.
func (g *Gatekeeper) LoggedOut(ctx context.Context, l identity.Logout) (ended int, err error) {
	if g.directory.People == nil {
		return 0, nil
	}
	known, err := g.directory.People.LogoutKnown(ctx, l.Issuer, l.ID)
	if err != nil || known {
		return 0, err
	}
	all, err := g.logins.Logins(ctx)
	if err != nil {
		return 0, err
	}
	for _, login := range all {
		same := login.Issuer == l.Issuer && (l.Subject == "" || login.Subject == l.Subject) &&
			(l.Session == "" || login.ProviderSession == l.Session)
		if !same || login.Issuer == "" {
			continue
		}
		row := g.auditRow(ActionEnd, g.directory.NewID(), login.actor(), nil,
			"login "+login.ID+": the person signed out at the provider")
		if err := g.logins.EndLogin(ctx, login.ID, row); err != nil && fault.CodeOf(err) != fault.NotFound {
			return ended, err
		}
		ended++
	}
	return ended, g.directory.People.KeepLogout(ctx, l.Issuer, l.ID, g.now().Add(identity.LogoutLife))
}
