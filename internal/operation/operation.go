// Package operation defines what can be asked of Claude Ops, once for all protocols, and processes the calls. An
// Operation is a value; its MCP tool, its REST route with the description in OpenAPI, its command, its page and its
// lines in the docs are made from it.
//
// The Kernel takes the calls of an operation that Define has made. Those of a tool of agents pass, in this order:
//
//  1. the toolset is enabled,
//  2. tier and effect: a tool that writes needs the operator's leave,
//  3. approval: the argument yes, where the tool asks for it,
//  4. the arguments, with everything that is wrong with them at once,
//  5. dry run, if the server or the call asks for one: the handler must change nothing, and no lock is taken,
//  6. the locks of the roots that are written, between processes too,
//  7. whether the caller is still admitted, and the time limit,
//  8. the handler; the client hears at intervals that it still runs,
//  9. redaction of our own tokens,
//  10. the cap of the answer,
//  11. one row in the audit for every write, run and refusal of 1 to 3, before the answer leaves. Other
//     calls that only read leave none, but for what their handlers note, such as where they fetched from.
//
// An act of a person goes the same way with other rules: they are asked after 4, since some ask for the repository, and
// in place of 1 to 3; no tier binds a person. The handler appends the row of its success itself (Call.Done), in the
// transaction of what it does where there is one; the kernel appends those of refusals and failures, all of them. Acts
// that only read leave no row. Who the person is, and which scopes they have, the server has found out before.
//
// A failure of a tool is a Fault, which has the code of the toolset's contract and the program's own.
package operation

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Effect says whether an operation reads, writes or runs programs.
type Effect string

// The effects.
const (
	Read  Effect = "read" // changes nothing
	Write Effect = "write"
	Exec  Effect = "exec" // runs programs
)

// Operation describes one request that every door offers. Define makes one.
type Operation struct {
	Name    string // unique, and the name of its tool
	Summary string // one line, for people
	Effect  Effect
	Action  string // as the audit names it; "": Name
	Needs   Needs  // the kernel enforces them

	// The protocols. The zero value of each leaves it out.
	Tool    Tool
	Route   Route
	Command string // the words after claudeops, such as "pr list"
	Shown   Shown

	Types
	// Schemas are the schemas of an operation that is found while the program runs; see Toolset.Found. Types is not used
	// then.
	Schemas Schemas
	Handling
}

// Types are the struct types of the two sides of an operation. The tags of their fields describe them to all protocols:
// json, doc, required, default, example, and the limits of strictjson.Limits.
type Types struct{ Input, Output reflect.Type }

// Handling has the functions that carry out a call.
type Handling struct {
	Handle Handler
	// Reject records a call that never came to Handle: its caller may not, or it could not be read. It returns the error
	// with the request id of the row. nil: Toolset.Reject does.
	Reject func(ctx context.Context, call Call, why error) error
}

// ForPeople reports whether it is an act of people, which no agent may ask for.
func (o Operation) ForPeople() bool { return o.Needs.For != 0 && o.Needs.For&Agent == 0 }

// mustValidate panics for an operation that a door could not serve, so that no start and no test passes with one.
func (o Operation) mustValidate() {
	wrong := func(format string, args ...any) { panic("operation " + o.Name + ": " + fmt.Sprintf(format, args...)) }
	switch {
	case o.Route.Path != "" && o.Route.Method == "":
		wrong("the route %s has no method", o.Route.Path)
	case o.Tool.Title != "" && o.ForPeople():
		wrong("an act of people has a tool")
	case o.Schemas.Input != nil:
		return // its types say nothing
	case o.Input.Kind() != reflect.Struct:
		wrong("its input is %s: no struct, and it has no schemas", o.Input)
	case o.Shown.Page.Path != "" && o.Effect == Read && o.Shown.View == nil:
		wrong("its page has no view to show")
	case o.Shown.Page.Path != "" && o.Effect != Read && o.Shown.Page.Button == "":
		wrong("its page has no button")
	}
	seen, inPath := map[string]bool{}, map[string]bool{}
	for _, f := range Fields(o.Input) {
		if seen[f.JSON] {
			wrong("its input has the field %q twice", f.JSON)
		}
		seen[f.JSON] = true
		if name := f.Tag.Get("path"); name != "" && o.Route.Path != "" && !strings.Contains(o.Route.Path, "{"+name) {
			wrong("the path of its route has no {%s}, which its input has", name)
		}
		inPath[f.Tag.Get("path")] = true
	}
	for _, part := range strings.Split(o.Route.Path, "{")[1:] {
		if name, _, _ := strings.Cut(strings.TrimSuffix(part, "..."), "}"); !inPath[strings.TrimSuffix(name, "...")] {
			wrong("its input has no field for {%s} of its route", name)
		}
	}
}

// Schemas are the JSON Schemas of the two sides of an operation. Both are objects.
type Schemas struct{ Input, Output json.RawMessage }

// Handler does what an operation is for. The answer is of the operation's output type. An error is a *fault.Error,
// perhaps with a request id (see Logged and Recorded).
type Handler func(ctx context.Context, call Call) (any, error)

// Call is one request for an operation. The door says who asks for what; the kernel adds the rest for the handler.
type Call struct {
	Caller Caller
	// Ceiling is the highest tier that the caller's credential has; Unlimited where the server's own tier alone decides.
	Ceiling gitprovider.Tier
	Scopes  access.Scopes // of a person's credential: callers can grant only scopes that they have
	// Person says that a person asks at a door for people. The server's tier, which is that of its agent, does not bind
	// them.
	Person bool
	// Arguments is the JSON object of the input as received, not validated.
	Arguments []byte
	// Input is the decoded input, of the operation's input type, from a door that decodes it itself; it replaces
	// Arguments. nil for none.
	Input any
	ID    string // of the request, and of its row in the audit; a door leaves it empty for a new one

	DryRun bool // do everything but change anything, and say so in the answer
	// Progress tells the client, if it asked for that, what is being done or waited for. It is never nil.
	Progress func(phase string)
	// Note adds to the row that the audit will have of a tool's call, whether it succeeds or fails. A call that only reads
	// has a row if it is noted for it, such as which address it fetched from. It may be called once.
	Note func(n Note)
	// Done is the row of a call that was done, which the handler appends to the audit itself, in the transaction of what
	// it does where there is one: always that of an act of a person, and that of a tool which has called Records. message
	// says what it was, for acts that are about no pull request.
	Done func(message string) record.Attempt
	// Records says that the handler appends the row of a success itself (see Done), and that failure appends that of a
	// failure, which the audit may have already. The context of failure outlives the caller's, for recordTimeout.
	Records func(failure func(ctx context.Context, e *fault.Error) error)
}

// UncappedTier is the ceiling of a caller that no credential limits.
const UncappedTier = gitprovider.TierRemediate

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

// callerKind returns the kinds of callers behind a door. A person's token may be used by a program.
func callerKind(door record.Door) Kind {
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
	// CacheOnly says that a tool writes only what this program keeps for itself, such as a cache: from tier 2, and without
	// the operator's leave to write. A harmless tool that runs programs changes nothing: it is for the tier that it names,
	// and for read-only servers too.
	CacheOnly  bool
	AllowWrite bool // the operator lets tools write (CLAUDEOPS_ALLOW_WRITE)
	Writable   bool // the process is not read-only (CLAUDEOPS_READ_ONLY)
	// Policy refuses the operation while the policy, or CLAUDEOPS_REPOS, cannot be read: an unknown rule must not be
	// replaced by a wider one.
	Policy bool
	Listed bool // the repository of its Target is on the operator's list
	Yes    bool // the argument yes must be true
	// OwnGates says that gates of its own judge tier, dry run and read-only, and that its handler asks, before its first
	// write, whether the caller is still admitted (Caller.Admitted). The tier here then only says who may expect to pass.
	OwnGates bool
	Dry      Dry
	// Pausable says that nobody may do it while people have paused everything. Tools that write or run programs are.
	Pausable bool
}

// under returns the needs of a tool with an effect. Writing needs the highest tier, if it is not to the program's own
// folders.
func (n Needs) under(effect Effect) Needs {
	n.Pausable = !n.OwnGates && (effect == Exec || effect == Write && !n.CacheOnly)
	switch {
	case n.OwnGates:
	case effect == Write && !n.CacheOnly:
		n.Tier, n.AllowWrite, n.Writable = gitprovider.TierRemediate, true, true
	case effect == Write, effect == Exec && !n.CacheOnly:
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

// validTarget returns the target of arguments of which some are wrong: the repository only if it can be one.
func (t Target) validTarget(violations []fault.Violation) Target {
	if len(violations) > 0 && (gitprovider.CheckRepoPart(t.Owner) != nil || gitprovider.CheckRepoPart(t.Name) != nil) {
		t.Provider, t.Owner, t.Name = "", "", ""
	}
	return t
}

// Tool describes an operation to MCP clients.
type Tool struct {
	Title       string // "" if it is not offered to them
	Description string // for a model: what it does, what to do about its answers
	Destructive bool   // it may overwrite or remove what somebody else made
	// Repeatable says that the same call again has no further effect. Reading always is.
	Repeatable bool
}

// ToolPath begins the path of each tool of the other toolsets than that of pull requests; its name follows.
const ToolPath = "/tools/"

// Route describes an operation to REST.
type Route struct {
	Method string // "" if REST does not have it
	// Path is the path below /api/v1, such as /prs/{number}. A part in braces is the field of the input with the tag path;
	// the other fields are the body of a route with MaxBody, and the query of any other. {path...} at its end takes
	// slashes, too.
	Path  string
	ID    string // operationId in OpenAPI; a client's generated code is named for it
	Notes string // what only callers of REST need to know

	Status   int    // of success; 0: 200
	Creates  bool   // the output is a Creation
	Keyed    bool   // it takes an Idempotency-Key
	MaxBody  int64  // bytes that a body may have; 0 if it reads none
	TooLarge string // what to do about a larger one
	// Takes is the longest that it may take, the time that it waits for others aside; 0 for what any request may.
	Takes time.Duration
}

// Creation is an output that may be something new. REST answers 201 then, and 200 otherwise.
type Creation interface{ Created() bool }

// Located is an output about something that has an address of its own: what follows /api/v1. REST names it as Location.
type Located interface{ Location() string }

// NoETag is an output that may be different the next time without anybody's doing, so that REST gives it no ETag
// then.
type NoETag interface{ Changes() bool }

// ListAnswer is an output that the contract of its toolset has as a list. MCP needs an object around it; the command
// line prints the list.
type ListAnswer interface {
	AsList() (list any, notes []string)
}

// Partial is an output that may lack a part of what was asked for. The command line then ends with an error, after its
// answer.
type Partial interface{ Incomplete() bool }

// MaxArguments bounds the arguments of a call over REST, in bytes.
const MaxArguments = 1 << 20

// route returns the place of a tool in REST: its arguments are the body. What does more than read needs the scope for
// starting and stopping agents, since it changes the machine that the server runs on.
func route(o Operation, takes time.Duration) (Route, access.Scope) {
	scope := access.Read
	if o.Effect != Read {
		scope = access.Operate
	}
	return Route{
		Method: http.MethodPost, Path: ToolPath + o.Name, ID: "call" + camel(o.Name),
		Notes: "The body has the arguments of the tool. In an error, failure is what MCP clients get: the error in the " +
			"form of the tool's contract.",
		MaxBody: MaxArguments, TooLarge: "give less at once", Takes: takes + lockWait,
	}, scope
}

// camel returns a name such as agent_list as AgentList.
func camel(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

// Field is a field of an input or an output.
type Field struct {
	reflect.StructField
	JSON     string // its name
	Optional bool   // an output may lack it
}

// Fields lists the fields of a struct type that JSON has.
func Fields(t reflect.Type) (fields []Field) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && name != "-" {
			fields = append(fields, Field{f, name, strings.Contains(options, "omitempty")})
		}
	}
	return fields
}
