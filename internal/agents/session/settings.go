package session

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/agents/gateway"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

// Limits bound a session. Zero means none for Turns, CostUSD and ScheduledUSD.
type Limits struct {
	Time    time.Duration // from the start of the CLI to its end
	Turns   int
	CostUSD float64
	// ScheduledUSD is CostUSD for sessions that no person started: those of a schedule, and those that they hand over to.
	ScheduledUSD float64
	Start        time.Duration // for the CLI to say that it has begun
	Grace        time.Duration // from SIGTERM to SIGKILL, and for what the CLI left behind
	Version      time.Duration // for `claude --version`
	Clear        time.Duration // for processes of a session whose supervisor was killed, before the next one is refused
}

// DefaultLimits returns the limits that apply unless configured otherwise. A write that is under way has its own time,
// when the door of the session is closed.
func DefaultLimits() Limits {
	return Limits{
		Time: 30 * time.Minute, Turns: 60, Start: 2 * time.Minute, Grace: 10 * time.Second, Version: 30 * time.Second,
		Clear: 10 * time.Second,
	}
}

// ToolRule is a permission that the operator gives to agents, in the CLI's own form, from a tier upwards.
type ToolRule struct {
	From gitprovider.Tier
	Rule string // such as Bash(systemctl status *)
}

// Settings are the operator's settings of sessions.
type Settings struct {
	Claude  Claude
	Server  Server
	Folders Folders
	Offers  func() Offering // what mounted repositories add, asked anew for each session; nil for nothing
	// Update brings the working copies up to date before a session; nil: they are not updated.
	Update  func(context.Context) []CheckoutState
	MaxTier gitprovider.Tier
	Limits  Limits
	Tools   []ToolRule
	Deny    []string                      // permission rules that hold for every agent
	Rules   func(gitprovider.Tier) string // what a tier may propose, for the agent's first message; nil for nothing
	DryRun  func() bool                   // as it is when a session starts; nil: none
	// Confinement keeps agents from our files and processes.
	Confinement Confinement
	Problem     string // why no session may start, naming the variable; "" if one may
	// Paused returns paused while people have paused everything; nil: nothing ever is. The record of the beginning asks
	// again.
	Paused func(ctx context.Context) error
}

// Claude is the Claude CLI, and what it is started with.
type Claude struct {
	Binary  string // a path, or a name that is looked for in PATH
	Prompts fs.FS  // tier1-observe.md and so on
	Models  map[gitprovider.Tier]string
	Env     []string // the agent's environment, all of it
}

// Server is the agent's MCP server, which is ours. Command and Env are for systems without doors.
type Server struct {
	Command []string
	Env     map[string]string // without tier and session
	// Toolsets are the toolsets of the server.
	Toolsets []string
	// Scripts names the operator's scripts that agents of a tier have as tools, for the first message; nil for none.
	Scripts func(gitprovider.Tier) string
	// Doors serves sessions in this process, at Rights with the tier of each; the CLI starts Connector, which holds no
	// secret. nil: the CLI starts Command with Env, tokens among it.
	Doors     *gateway.Host
	Rights    gateway.Rights // without session, tier and dry run
	Connector []string

	actor record.Actor                    // the session at hand
	still func(ctx context.Context) error // checks whether the current session may go on; nil: not checked
}

// Folders are the folders that sessions use.
type Folders struct {
	Repos  string   // working copies, which agents may read
	State  string   // where the locks are
	Temp   string   // where the private folder of a session is made; "" for os.TempDir()
	Hidden []string // those that no agent may read: absolute paths
}

// Offering holds what mounted repositories add to a session.
type Offering struct {
	Servers map[string]json.RawMessage // further MCP servers, by name; one named claudeops is left out
	Text    string                     // for the agent's first message, marked as data; "" for none
	Refused []string                   // what was left out and why, one sentence each
}

func (s Settings) offering() Offering {
	if s.Offers == nil {
		return Offering{}
	}
	return s.Offers()
}

// Runner runs sessions, one for each call of Run. All fields are required, but Pulls and Journal.
type Runner struct {
	Settings Settings
	Records  sessions.Records
	Pulls    Pulls            // nil: sessions read about no pull request
	Journal  sessions.Journal // nil: there is none
	Secrets  Secrets
	Now      func() time.Time
	Timer    Timer         // nil: time.NewTimer
	NewID    func() string // sortable by time; see Spec.ID
	Log      *slog.Logger

	versions versions
}

// Timer is a channel on which a value comes after d, and what ends the wait for it.
type Timer func(d time.Duration) (c <-chan time.Time, stop func())

func realTimer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// resourceTools returns the CLI's own tools that read what MCP servers offer beside their tools: ours has the files
// that may be proposed.
func resourceTools() []string { return []string{"ListMcpResourcesTool", "ReadMcpResourceTool"} }

// builtIn returns the CLI's own tools that an agent has. Reading is confined to the working copies and the folder of
// the handoff, Write to the handoff itself and the journal; Bash and WebFetch exist only where the operator permits a
// pattern.
func (s Settings) builtIn(tier gitprovider.Tier) []string {
	tools := append([]string{"Read", "Glob", "Grep", "Write"}, resourceTools()...)
	for _, optional := range []string{"Bash", "WebFetch"} {
		for _, t := range s.Tools {
			if t.From <= tier && strings.HasPrefix(t.Rule, optional+"(") {
				tools = append(tools, optional)
				break
			}
		}
	}
	return tools
}

// settingsFile returns the CLI's settings file for one session: permissions and hooks.
func (s Settings) settingsFile(tier gitprovider.Tier, f *folder) ([]byte, error) {
	type permissions struct {
		Allow  []string `json:"allow"`
		Deny   []string `json:"deny"`
		Bypass string   `json:"disableBypassPermissionsMode"`
	}
	allow := append([]string{"mcp__" + serverName + "__*", "Edit(/" + f.handoffFile() + ")", "Edit(/" + f.journalFile() +
		")"}, resourceTools()...)
	if s.Folders.Repos != "" {
		allow = append(allow, "Read(/"+s.Folders.Repos+"/**)")
	}
	for _, t := range s.Tools {
		if t.From <= tier {
			allow = append(allow, t.Rule)
		}
	}
	deny := append([]string{}, s.Deny...)
	hidden := append([]string{f.private()}, s.Folders.Hidden...)
	if f.door != nil {
		hidden = append(hidden, f.door.Folder()) // a ticket is useless to others, but need not be in the record of a session
	}
	for _, path := range hidden {
		deny = append(deny, "Read(/"+path+"/**)", "Edit(/"+path+"/**)", "Bash(*"+path+"*)")
	}
	return json.Marshal(map[string]any{"permissions": permissions{Allow: allow, Deny: deny, Bypass: "disable"},
		"hooks": s.hooks(f)})
}

// arguments of the CLI, as observed with 2.1.329: --restricted ignores the settings of user and project and confines
// the file tools to the working folders; dontAsk with --permission-prompts none refuses what is not permitted instead
// of waiting; --tools removes what it does not name; --include-partial-messages says how many tokens a message took
// when it is complete, where its parts come with the number at its beginning. None of them is a secret: arguments are
// for everybody to see.
func (s Settings) arguments(spec Spec, f *folder) []string {
	tier, limits := spec.Tier, s.limits(spec)
	args := []string{
		"-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages", "--restricted",
		"--no-session-persistence",
		"--disable-slash-commands", "--permission-mode", "dontAsk", "--permission-prompts", "none",
		"--strict-mcp-config", "--mcp-config", f.config(), "--settings", f.settingsFile(),
		"--append-system-prompt-file", f.prompt(), "--model", s.Claude.Models[tier],
		"--tools", strings.Join(s.builtIn(tier), ","), "--add-dir", f.handoffDir(),
	}
	if s.Folders.Repos != "" {
		args = append(args, "--add-dir", s.Folders.Repos)
	}
	if limits.Turns > 0 {
		args = append(args, "--max-turns", strconv.Itoa(limits.Turns))
	}
	if limits.CostUSD > 0 {
		args = append(args, "--max-budget-usd", formatUSD(limits.CostUSD))
	}
	return args
}

// limits returns the limits of one session.
func (s Settings) limits(spec Spec) Limits {
	limits := s.Limits
	if spec.Scheduled {
		limits.CostUSD = limits.ScheduledUSD
	}
	return limits
}

// detached returns a context for what has to be recorded even though the session was told to end.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	const recordTime = 20 * time.Second
	return context.WithTimeout(context.WithoutCancel(ctx), recordTime)
}

func formatUSD(amount float64) string { return strconv.FormatFloat(amount, 'f', -1, 64) }

// spent says what a session that reached its limit of cost has spent of it.
func (l Limits) spent(u sessions.Usage) string {
	about := ""
	if u.CostSource != sessions.CostClient {
		about = "about "
	}
	return fmt.Sprintf("it spent %s$%.2f of its $%.2f (CLAUDEOPS_MAX_COST_USD)", about, u.CostUSD, l.CostUSD)
}

// isDryRun reports whether a session that starts now is in dry run.
func (s Settings) isDryRun() bool { return s.DryRun != nil && s.DryRun() }

// Spec describes the session to run. All of it comes from the operator, except Handoff and Alerts.
type Spec struct {
	ID      string // "" for a new one
	Tier    gitprovider.Tier
	Trigger sessions.Trigger
	Starter record.Actor // the person who started it; otherwise the schedule, or the session that handed over
	Note    string       // the operator's words to the agent, at most MaxNote bytes
	Parent  string       // the session that handed over; "" for none
	Handoff *sessions.Handoff
	Alerts  *ToldAlerts // what a hook was called with; nil for a session of none
	Issue   string      // address of the issue at which a person started it; "" for none

	// Scheduled says that no person started it, nor the session that handed over to it: Limits.ScheduledUSD applies.
	Scheduled bool
	// Ceiling caps the tier of the session and of those that it escalates to, beside Settings.MaxTier; 0 caps nothing.
	Ceiling gitprovider.Tier
	// Admit is asked, with the session's id, when nothing else runs and before anything has begun. Its error is that of
	// the start, and nothing starts. It must not call the Supervisor. nil admits.
	Admit func(ctx context.Context, id string) error

	processes *processes // keeps the session's processes from others; nil for nothing
}

// MaxNote bounds the operator's words, in bytes.
const MaxNote = 8 << 10
