// Package doctor says what would stop a pull request. It opens what is configured, and looks up the repositories that
// are named: without a network those of the local provider, online all of them.
package doctor

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/mcpconfig"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/system/processtree"
	"github.com/claudeops/claudeops/internal/system/sandbox"
)

// Records checks the records; *store.Store implements it.
type Records interface {
	// Check reports whether they can be read and written.
	Check(ctx context.Context) error
	Path() string
	// ClockSkew returns how far the clock of their server is ahead of this machine's; known is false if they have no
	// server.
	ClockSkew() (ahead time.Duration, known bool)
}

// Audit verifies the audit, and says how far it was exported; *store.Audit is one.
type Audit interface {
	Verify(ctx context.Context, expectHead string) (record.AuditReport, error)
	Exports(ctx context.Context) ([]record.AuditExport, error)
}

// Outbox counts the notices; *store.Outbox is one.
type Outbox interface {
	NoticeCounts(ctx context.Context) (record.NoticeCounts, error)
}

// Git is the git command of the local provider; *local.Provider is one.
type Git interface {
	gitprovider.Pinger
	GitVersion(ctx context.Context) (string, error)
}

// Rules are the operator's rules, as far as they can be read.
type Rules struct {
	Policy   policy.Policy
	Problem  string // why the policy file cannot be read, or ""
	ReadOnly string // why proposals are refused altogether, or ""
	// ReposProblem says what is wrong with CLAUDEOPS_REPOS, or is "".
	ReposProblem string
	DryRun       policy.Switch
	Secrets      []config.SecretProblem // of the process that looks
	// Servers says by which rules the servers judge that run on this machine; nil: that is not looked at.
	Servers func(ctx context.Context) []Server
}

// Server is a server that runs, and the rules by which it judges.
type Server struct {
	PID   int          `json:"pid"`
	Rules policy.State `json:"rules"`
}

// Boundary holds the questions about the boundary between agents and us.
type Boundary struct {
	// Held returns the boundary that applies; an error names the setting that cannot be used. nil: agents are not checked.
	Held func() (sandbox.Boundary, error)
	// Exposed says which files of ours agents could change or read by the files' modes, owners and access lists, so that
	// no session can start; "" for none. nil: that is not looked at.
	Exposed func() string
	Scripts func() []string // the places of the operator's scripts; nil: there are none
	// Managed says why the CLI would start no MCP server of a session; "" if it would. nil: that is not looked at.
	Managed func() string
}

// Options configure a Doctor. All are required but Git.
type Options struct {
	Config  config.Config
	Rules   Rules
	Records Records
	Audit   Audit
	// LeaveAudit says that somebody else verifies the audit (AuditState), which reads all of it.
	LeaveAudit bool
	Outbox     Outbox
	// Proposed reports whether anything was ever proposed at a provider; nil where that cannot be asked.
	Proposed func(ctx context.Context, provider string) (bool, error)
	// Key reads the key of the marks without making one; nil if there is none yet.
	Key      func() ([]byte, error)
	Registry *gitprovider.Registry
	Git      Git // nil without local repositories
	// OtherRecords are records beside ours with pull requests of the local repositories; see local.OtherRecords.
	OtherRecords []string
	Notifying    []string // names of the targets of notifications
	// MergeMCP merges our MCP servers with those that mounted working copies offer.
	MergeMCP func(offers config.Offers) (mcpconfig.Result, error)
	Redact   func(text string) string
	Boundary Boundary
	SignIn   []SignIn // providers by which people sign in
}

// Doctor looks. It is safe for concurrent use.
type Doctor struct{ Options }

// New makes a Doctor.
func New(o Options) *Doctor { return &Doctor{o} }

// Look checks what is configured, without network access.
func (d *Doctor) Look(ctx context.Context) []Finding {
	out := []Finding{d.tier(), d.switches(), d.policy(), d.records(ctx), d.sinks(ctx), d.checkMarkKey(), modes(d)}
	out = append(out, d.providers(ctx)...)
	out = append(out, d.git(ctx), OtherRecords(d.OtherRecords), d.defaultProvider())
	out = append(out, d.checkAllowlist()...)
	for _, repo := range d.exactRepositories() {
		if d.providerOf(repo) == "local" {
			out = append(out, d.examineRepository(ctx, repo)...)
		}
	}
	out = append(out, d.mounted(), d.notifications(ctx), d.sessions())
	if _, err := processtree.Find(d.Config.Sessions.Binary); err == nil { // else no agent runs here
		out = append(out, boundary(d), managed(d), d.connector(), d.credential(), d.commands(), d.workingCopies())
	}
	out = append(out, d.ends(), d.forgeHooks(), d.server())
	out = append(out, d.servers(ctx)...)
	out = append(out, d.secrets()...)
	out = append(out, d.signIns()...)
	for _, w := range d.Config.Warnings {
		out = append(out, Finding{Name: "configuration", Status: Warning, Detail: w})
	}
	return d.fit(out)
}

// fit leaves out what says nothing, makes one finding of all about a part, and keeps our tokens out.
func (d *Doctor) fit(findings []Finding) []Finding {
	findings = Merge(slices.DeleteFunc(findings, func(f Finding) bool { return f.Name == "" }))
	for i := range findings {
		findings[i].Detail, findings[i].Do = d.Redact(findings[i].Detail), d.Redact(findings[i].Do)
	}
	return findings
}

// Finding describes the state of one part: since when, what it stops, and what to do. Doctor, pages, REST, probes and
// metrics show this value; none of them judges a part by itself.
type Finding struct {
	Name   string     `json:"name"`
	Status string     `json:"status"          enum:"ok,warning,off,held,problem" doc:"off: not configured, which is not an error; held: the operator has chosen that it stops something"`
	Title  string     `json:"title,omitempty"                                    doc:"What is wrong, in a few words"`
	Detail string     `json:"detail"`
	Since  *time.Time `json:"since,omitempty"                                    doc:"Since when its status is so, as far as the server that answers has seen"`
	Stops  string     `json:"stops,omitempty"                                    doc:"What it stops"`
	Do     string     `json:"do,omitempty"                                       doc:"What an operator does about it"`
	Blocks bool       `json:"blocks"                                             doc:"Stops every pull request, or every one at the provider or to the repository that it names"`
}

// The values of Finding.Status.
const (
	OK      = "ok"
	Off     = "off"     // not configured, which is not a mistake
	Warning = "warning" // works, and is not as it should be
	Held    = "held"    // stops something because the operator has chosen so
	Problem = "problem" // does not work
)

// What parts stop.
const (
	stopsProposals = "every proposal"
	stopsSessions  = "agents' sessions"
)

// blocks returns a problem that stops pull requests. do says what to do about it; "" where the detail is all there is.
func blocks(name, detail, do string) Finding {
	return Finding{Name: name, Status: Problem, Detail: detail, Do: do, Stops: proposalsOf(name), Blocks: true}
}

// proposalsOf says which proposals a part stops that is broken.
func proposalsOf(name string) string {
	switch kind, of, _ := strings.Cut(name, " "); kind {
	case "provider":
		return "proposals at " + of
	case "repository":
		return "proposals to " + of
	case "local":
		return "proposals at local"
	case "allowlist":
		return "proposals to what that entry names"
	}
	return stopsProposals
}

// Headline says in a few words what is wrong with a part.
func (f Finding) Headline() string {
	first, size := utf8.DecodeRuneInString(f.Name)
	name := string(unicode.ToUpper(first)) + f.Name[size:]
	if f.Stops != "" {
		return cmp.Or(f.Title, name+" stops "+f.Stops)
	}
	return cmp.Or(f.Title, name+" needs a look")
}

// Told returns the part's state and what to do about it, on one line.
func (f Finding) Told() string { return joined(f.Detail, f.Do) }

// weight orders statuses: the heavier one decides where a part has two.
func (f Finding) weight() int {
	return slices.Index([]string{Off, OK, Warning, Held, Problem}, f.Status)
}

// Merge makes one finding of all that have a name, in the order of the names. The worst decides, and comes first.
func Merge(findings []Finding) (out []Finding) {
	for _, f := range findings {
		at := slices.IndexFunc(out, func(o Finding) bool { return o.Name == f.Name })
		if at < 0 {
			out = append(out, f)
			continue
		}
		worse, better := out[at], f
		if better.weight() > worse.weight() {
			worse, better = better, worse
		}
		worse.Title, worse.Stops = cmp.Or(worse.Title, better.Title), cmp.Or(worse.Stops, better.Stops)
		worse.Detail, worse.Do = joined(worse.Detail, better.Detail), joined(worse.Do, better.Do)
		worse.Blocks = worse.Blocks || better.Blocks
		out[at] = worse
	}
	return out
}

func joined(first, second string) string {
	if first == "" || second == "" || first == second {
		return cmp.Or(first, second)
	}
	return first + "; " + second
}

// Blocking names, once each, what stops pull requests.
func Blocking(findings []Finding) []string {
	out := []string{}
	for _, f := range findings {
		if f.Blocks && !slices.Contains(out, f.Name) {
			out = append(out, f.Name)
		}
	}
	return out
}
