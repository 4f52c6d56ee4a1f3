package operation

import (
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Kind is a set of kinds of callers.
type Kind uint8

// The kinds.
const (
	Agent    Kind = 1 << iota // over MCP
	Person                    // at the terminal, or signed in at the dashboard
	Program                   // with a token, over REST
	People   = Person | Program
	Everyone = Agent | People
)

// kindOf returns the kinds of callers behind a door. A person's token may be used by a program.
func kindOf(door record.Door) Kind {
	switch door {
	case record.DoorMCP:
		return Agent
	case record.DoorREST:
		return People
	case record.DoorWebhook, record.DoorPoll:
		return Program
	}
	return Person
}

// Dry says how an operation acts where the operator wants a dry run (CLAUDEOPS_DRY_RUN).
type Dry uint8

// What there is.
const (
	DryRefused Dry = iota
	DryTried       // it runs, changes nothing, and says what it would have done
	DryDone        // it is done all the same: it changes nothing that a dry run protects
)

// Needs are the operator's rules that a call must meet. Define adds to those of an agent's tool what follows from its
// effect.
type Needs struct {
	For   Kind             // who may ask; 0: everyone
	Tier  gitprovider.Tier // the lowest that may ask; 0 for acts of people, which no tier binds
	Scope access.Scope     // that the token of a caller of REST or of the dashboard needs; the guard asks for it
	// Harmless says that a tool writes only what this program keeps for itself, such as a cache: from tier 2, and without
	// the operator's leave to write. A harmless tool that runs programs changes nothing: it is for the tier that it names,
	// and for read-only servers too.
	Harmless bool
	Leave    bool // the operator lets tools write (CLAUDEOPS_ALLOW_WRITE)
	Writable bool // the process is not read-only (CLAUDEOPS_READ_ONLY)
	// Policy refuses the operation while the policy, or CLAUDEOPS_REPOS, cannot be read: an unknown rule must not be
	// replaced by a wider one.
	Policy bool
	Listed bool // the repository of its Target is on the operator's list
	Yes    bool // the argument yes must be true
	// Gated says that gates of its own judge tier, dry run and read-only, and that its handler asks, before its first
	// write, whether the caller is still admitted (Caller.Admitted). The tier here then only says who may expect to pass.
	Gated bool
	Dry   Dry
}

// under returns the needs of a tool with an effect. Writing needs the highest tier, if it is not to the program's own
// folders.
func (n Needs) under(effect Effect) Needs {
	switch {
	case n.Gated:
	case effect == Write && !n.Harmless:
		n.Tier, n.Leave, n.Writable = gitprovider.TierRemediate, true, true
	case effect == Write, effect == Exec && !n.Harmless:
		n.Tier, n.Writable = max(n.Tier, gitprovider.TierInvestigate), true
	case effect == Exec:
		n.Tier = max(n.Tier, gitprovider.TierObserve)
	}
	return n
}

// Target names the subject of a call, for its audit row. Fields that do not apply are empty.
type Target struct {
	Provider, Owner, Name string           // repository
	Number                int              // pull request
	Tier                  gitprovider.Tier // of the session that is to start
	Action                string           // what is done, in place of the operation's; "" for that
	Paths                 []string         // files of the repository
	// Withhold says that one of the paths looked like a secret: its place is taken, and the row has no text of the
	// failure.
	Withhold bool
}

// after returns the target of arguments of which some are wrong: the repository only if it can be one.
func (t Target) after(violations []fault.Violation) Target {
	if len(violations) > 0 && (gitprovider.CheckRepoPart(t.Owner) != nil || gitprovider.CheckRepoPart(t.Name) != nil) {
		t.Provider, t.Owner, t.Name = "", "", ""
	}
	return t
}
