package record

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Actor says who acts: the one value behind each row of the audit, each proposal, approval and merge. It carries its
// line of descent, so that a row needs no other record to say who stands behind it. Names are for people to read and
// are never compared.
type Actor struct {
	Door Door `json:"door,omitempty"`
	// Person is the human who acts, or whose credential acts; nil where none is known.
	Person *Person `json:"person,omitempty"`
	// Credential is the one that was shown; nil for a person without one, such as the user of a terminal.
	Credential *Credential `json:"credential,omitempty"`
	// Session is the agent's session that acts; nil for none.
	Session *ActorSession `json:"session,omitempty"`
	// System names what acts where neither a person nor a credential does; see the constants.
	System string `json:"system,omitempty"`
	// Client is a program's name for itself, or the user whom a forge names for something done there. It is untrusted, and
	// proves nothing.
	Client string `json:"client,omitempty"`
}

// Person identifies a human by an issuer.
type Person struct {
	Issuer  string `json:"issuer"`  // of identities, or one of the constants below
	Subject string `json:"subject"` // what the issuer calls them, for ever
	Name    string `json:"name"`    // as the records have it
	// Forge says that a forge named the person, who acted there and did not sign in here. The issuer is then that of
	// people who sign in by the forge, or else its address.
	Forge bool `json:"forge,omitempty"`
}

// Issuers of persons other than the providers of identities, which are URLs.
const (
	IssuerOS    = "os"    // users of the operating system: Subject is the uid
	IssuerProxy = "proxy" // users that the trusted proxy names
)

// CredentialKind says what was shown.
type CredentialKind string

// The kinds.
const (
	CredentialToken      CredentialKind = "token"      // of a person or a program
	CredentialAgent      CredentialKind = "agent"      // an agent's token
	CredentialGrant      CredentialKind = "grant"      // given to a program by consent in a browser (OAuth)
	CredentialConfigured CredentialKind = "configured" // of CLAUDEOPS_API_TOKENS
)

// Credential is something that lets its holder in.
type Credential struct {
	Kind CredentialKind `json:"kind"`
	ID   string         `json:"id"` // unique; not secret
	Name string         `json:"name"`
	// Maker made it, with what it showed then. nil where that is not known.
	Maker *Actor `json:"maker,omitempty"`
}

// MaxDescent bounds the line of credentials in which each made the next one. Every row of the audit carries the line of
// its actor.
const MaxDescent = 4

// Descent lists the credential that was shown, the one that made it, and so on to the first.
func (a Actor) Descent() (line []Credential) {
	for at := &a; at != nil && at.Credential != nil; at = at.Credential.Maker {
		line = append(line, *at.Credential)
	}
	return line
}

// ActorSession is an agent's session, as an actor.
type ActorSession struct {
	ID string `json:"id"`
	// Starter started it. A session that another one handed over to has that one's agent as its starter. nil where that
	// is not known.
	Starter *Actor `json:"starter,omitempty"`
	// Read lists the people whose words it read beside its starter's, from the sessions before it.
	Read []Actor `json:"read,omitempty"`
}

// Values of Actor.System.
const (
	SystemAnonymous = "anonymous" // a reader who shows nothing
	SystemSchedule  = "schedule"
	SystemRetention = "retention"
	SystemServe     = "claudeops serve"
	SystemConnector = "connector" // a process that has not been admitted
)

// OSUser returns a user of the operating system at the command line. name is that of the user database, "" if it has
// none.
func OSUser(uid, name string) Actor {
	return Actor{Door: DoorCLI, Person: &Person{Issuer: IssuerOS, Subject: uid, Name: osName(uid, name)}}
}

func osName(uid, name string) string {
	if name == "" {
		return "uid " + uid
	}
	return fmt.Sprintf("uid %s (%s)", uid, name)
}

// Account returns the account that identifies the person; the zero value for none.
func (p *Person) Account() gitprovider.Account {
	if p == nil {
		return gitprovider.Account{}
	}
	return gitprovider.Account{Issuer: p.Issuer, Subject: p.Subject}
}

// Vouched reports whether a provider of identities or a trusted proxy has recognised the person.
func (p *Person) Vouched() bool { return p != nil && p.Issuer != IssuerOS }

// SignedIn reports whether a provider of identities has recognised the person.
func (p *Person) SignedIn() bool { return p.Vouched() && p.Issuer != IssuerProxy }

// IsZero reports whether nothing is known of the actor.
func (a Actor) IsZero() bool {
	return a.Person == nil && a.Credential == nil && a.Session == nil && a.System == "" && a.Client == ""
}

// At returns the actor at a door.
func (a Actor) At(door Door) Actor {
	a.Door = door
	return a
}

// Account tells the actor from all others: the person or, where none is known, the credential. It is the zero value for
// agents without a credential, and for what acts by itself.
func (a Actor) Account() gitprovider.Account {
	switch {
	case a.Session != nil:
		return gitprovider.Account{}
	case a.Person != nil:
		return a.Person.Account()
	case a.Credential != nil:
		return a.Credential.account()
	}
	return gitprovider.Account{}
}

func (c Credential) account() gitprovider.Account {
	return gitprovider.Account{Issuer: "credential", Subject: c.ID}
}

// String returns the actor in a line of a record: the name of the credential, of the person or of the program. An
// agent's name for itself only ever stands in parentheses, so that it is not confused with anybody else.
func (a Actor) String() string {
	shown := "unknown"
	switch {
	case a.System != "":
		shown = a.System
	case a.Credential != nil:
		shown = a.Credential.Name
	case a.Door == DoorMCP:
		shown = "agent"
	case a.Person != nil:
		return a.Person.Name
	case a.Client != "":
		return a.Client
	}
	if a.Client == "" {
		return shown
	}
	return shown + " (" + a.Client + ")"
}

// Lineage returns the actor and everybody that it descends from: persons, makers of credentials, starters of sessions,
// and those whose words a session read. Persons and credentials stand once each.
func (a Actor) Lineage() (out []Ancestor) {
	seen := map[gitprovider.Account]bool{}
	var walk func(a Actor)
	add := func(n Ancestor) {
		if !seen[n.Account] {
			seen[n.Account] = true
			out = append(out, n)
		}
	}
	walk = func(a Actor) {
		if a.Person != nil {
			add(Ancestor{Account: a.Person.Account(), Name: a.Person.Name, Person: true, Vouched: a.Person.Vouched(),
				Forge: a.Person.Forge})
		}
		if c := a.Credential; c != nil {
			add(Ancestor{Account: c.account(), Name: c.Name})
			if c.Maker != nil {
				walk(*c.Maker)
			}
		}
		if s := a.Session; s != nil {
			if s.Starter != nil {
				walk(*s.Starter)
			}
			for _, read := range s.Read {
				walk(read)
			}
		}
	}
	walk(a)
	return out
}

// Ancestor is a person or a credential that an actor descends from.
type Ancestor struct {
	gitprovider.Account
	Name    string
	Person  bool // else a credential
	Vouched bool // a person that a provider of identities or the proxy has recognised
	Forge   bool // a person that a forge has named
}

// is reports whether two are the same, or may be: who is root on a machine is every user there, and a proxy passes on a
// user name in the letters in which the person typed it, where the directory behind it knows no case.
func (n Ancestor) is(other Ancestor) bool {
	const root = "0"
	return n.Account == other.Account ||
		n.Issuer == IssuerProxy && other.Issuer == IssuerProxy && strings.EqualFold(n.Subject, other.Subject) ||
		n.Issuer == IssuerOS && other.Issuer == IssuerOS && (n.Subject == root || other.Subject == root)
}

// SecondTo says why an actor does not count as another person than the one who started something; "" if it does.
//
// They must share no person and no credential in their lines of descent. If it was started by a person known to a
// provider of identities, the second has to be such a person as well: a token or a user of the operating system may be
// that same person's. If a forge named who started it, the second has to be known by an account of that forge: another
// kind of account may be that same person's.
func (a Actor) SecondTo(started Actor) (why string) {
	if started.IsZero() || started.Session != nil && started.Session.Starter == nil {
		return "the record does not say who stands behind it"
	}
	mine, theirs := a.Lineage(), started.Lineage()
	known := false
	for _, n := range mine {
		known = known || n.Vouched
	}
	for _, s := range theirs {
		for _, n := range mine {
			if n.is(s) {
				return fmt.Sprintf("%s stands behind it, and behind %s", s.Name, a)
			}
		}
	}
	for _, s := range theirs {
		if s.Vouched && !known {
			return fmt.Sprintf("%s stands behind it, and %s may be the same person: sign in, or use a token of your own", s.Name,
				a)
		}
	}
	for _, s := range theirs {
		sameIssuer := func(n Ancestor) bool { return n.Person && n.Issuer == s.Issuer }
		if s.Forge && !slices.ContainsFunc(mine, sameIssuer) {
			return fmt.Sprintf("%s stands behind it by an account of the forge, and %s may be the same person: sign in with an "+
				"account of that forge", s.Name, a)
		}
	}
	if len(mine) == 0 {
		return fmt.Sprintf("%s is not a person", a)
	}
	return ""
}

// ReservedName reports whether a name looks like one that only the records give: that of a person of an issuer, of a
// user of the operating system, of what acts by itself, or of a configured token. Look-alikes count. Tokens, programs
// and users of a proxy cannot have one.
func ReservedName(name string) bool {
	name = strings.ToLower(strings.TrimSpace(textscan.Undisguise(name)))
	switch name {
	case SystemAnonymous, SystemSchedule, SystemRetention, SystemServe, SystemConnector, "agent", "unknown", IssuerOS,
		IssuerProxy:
		return true
	}
	const colons = ":\u02d0\u05c3\u0703\u2236\ua789" // and what looks like one
	colon := strings.IndexAny(name, colons)
	return strings.HasPrefix(name, "uid ") || strings.HasPrefix(name, "agent (") ||
		colon > 0 && !strings.Contains(name[:colon], " ")
}

// Connection is an agent that is connected over MCP to a process that holds tokens and records.
type Connection struct {
	ID         string
	Session    string // the agent's session; "" for none
	Credential string // the name of the token by which it was admitted; "" for a session's ticket
	Tier       gitprovider.Tier
	DryRun     bool
	ReadOnly   bool
	Way        string // how it came in: unix, https
	Peer       string // who is at the other end, as far as it is known: "pid 12, uid 1000", an address
	Since      time.Time
	Calls      int // calls of tools under way when its process last said so, at most a second or two ago
	// when a person cut it off; zero if not. The process that serves it ends it within a second or two.
	CutAt time.Time
	CutBy string // who cut it off; "" if not
}
