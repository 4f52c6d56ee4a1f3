package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/identity"
	"github.com/claudeops/claudeops/internal/system/processtree"
)

func (d *Doctor) tier() Finding {
	tier := d.Config.Permissions.Tier
	limit := d.Rules.Policy.Tiers.MaxFiles(tier)
	if limit == 0 {
		return held("tier", fmt.Sprintf("tier %s may not propose", tier),
			"set CLAUDEOPS_TIER to 2 or 3 for an agent that may")
	}
	return Finding{Name: "tier", Status: OK,
		Detail: fmt.Sprintf("tier %s may change up to %s in one pull request", tier, fault.CountFiles(limit))}
}

// held returns a finding about a choice of the operator's that stops pull requests.
func held(name, detail, do string) Finding {
	f := blocks(name, detail, do)
	f.Status = Held
	return f
}

func (d *Doctor) switches() Finding {
	switch {
	case d.Rules.ReadOnly != "":
		return held("switches", d.Rules.ReadOnly, "")
	case d.Rules.DryRun.On:
		places := strings.Join(d.Rules.DryRun.By, ", ")
		return held("switches", "the dry run is on ("+places+"): everything is checked, nothing is written",
			"switch it off in "+places+", so that pull requests are opened")
	}
	return Finding{Name: "switches", Status: OK, Detail: "neither dry run nor read-only"}
}

func (d *Doctor) policy() Finding {
	if d.Rules.Problem != "" {
		return blocks("policy", d.Rules.Problem, "correct the file that CLAUDEOPS_POLICY names")
	}
	return Finding{Name: "policy", Status: OK, Detail: d.Rules.Policy.Source + ", hash " + d.Rules.Policy.Hash()}
}

func (d *Doctor) records(ctx context.Context) Finding {
	if err := d.Records.Check(ctx); err != nil {
		return blocks(RecordsPart, fault.From(err).Message, "make the database readable and writable for claudeops")
	}
	found := append([]Finding{{Name: RecordsPart, Status: OK, Detail: d.Records.Path()}}, d.skew()...)
	if d.LeaveAudit {
		return Merge(found)[0]
	}
	v := Verified{Known: true}
	var err error
	if v.Report, err = d.Audit.Verify(ctx, ""); err != nil {
		v.Failure = fault.From(err).Message
	}
	return Merge(append(found, AuditState(v)))[0]
}

// RecordsPart is the name of the finding about the records.
const RecordsPart = "records"

// Verified is the result of a verification of the audit.
type Verified struct {
	Known   bool // there is a Report
	Report  record.AuditReport
	Failure string // why the last one could not be made; "" if it was
}

// AuditState judges what verifying the audit has found.
func AuditState(v Verified) Finding {
	const verify = "run `claudeops audit verify`, and compare with a backup (docs/explain/records.md)"
	switch {
	case v.Failure != "":
		return Finding{Name: RecordsPart, Status: Problem, Title: "The records could not be verified",
			Detail: v.Failure, Do: verify}
	case !v.Known:
		return Finding{Name: RecordsPart, Status: OK, Detail: "the audit is being verified"}
	case !v.Report.OK():
		return Finding{Name: RecordsPart, Status: Problem, Title: "The records are not whole",
			Detail: v.Report.Problem, Do: verify}
	}
	return Finding{Name: RecordsPart, Status: OK,
		Detail: fault.Count(int(v.Report.Rows), "attempt", "attempts") + ", and the audit is whole"}
}

// skew reports a database whose clock differs from that of this machine.
func (d *Doctor) skew() []Finding {
	ahead, known := d.Records.ClockSkew()
	if !known || ahead.Abs() < mostSkew {
		return nil
	}
	than := "behind"
	if ahead > 0 {
		than = "ahead of"
	}
	return []Finding{{Name: RecordsPart, Status: Warning, Title: "The clocks of the database and of this machine differ",
		Detail: fmt.Sprintf("the database's clock is %s %s this machine's; the database's decides",
			ahead.Abs().Round(time.Second), than),
		Do: "have both clocks set by NTP"}}
}

// mostSkew is by how much clocks may differ that are kept in step.
const mostSkew = 5 * time.Second

// checkMarkKey returns the key of the marks. Without one the first proposal makes it, in the state folder.
func (d *Doctor) checkMarkKey() Finding {
	key, err := d.Key()
	switch {
	case err != nil:
		return blocks("key of the marks", fault.From(err).Message, "")
	case d.Config.Records.MarkKey != "":
		return Finding{Name: "key of the marks", Status: OK, Detail: "that of CLAUDEOPS_MARK_KEY"}
	case key != nil:
		return Finding{Name: "key of the marks", Status: OK, Detail: "that of the state folder"}
	case d.Config.Records.DatabaseURL != "":
		return Finding{Name: "key of the marks", Status: Warning,
			Detail: "the first proposal makes one in this machine's state folder",
			Do:     "give machines that share a database the same CLAUDEOPS_MARK_KEY"}
	}
	return Finding{Name: "key of the marks", Status: OK, Detail: "the first proposal makes one in the state folder"}
}

// providers reports the providers, and distinguishes those that are not configured from those whose configuration is
// wrong.
func (d *Doctor) providers(ctx context.Context) (out []Finding) {
	configured := map[string]bool{"local": d.Config.Forges.LocalRoot != ""}
	var needed []string
	for _, f := range d.Config.Forges.All {
		configured[f.Driver.Name] = f.Configured
		needed = append(needed, f.Driver.Needed())
	}
	enabled := 0
	for _, e := range d.Registry.Entries() {
		name := "provider " + e.Name
		switch {
		case e.Provider != nil:
			enabled++
			out = append(out, Finding{Name: name, Status: OK, Detail: "hosts " + strings.Join(e.Hosts, ", ")})
		case configured[e.Name] || d.used(ctx, e.Name):
			f := blocks(name, e.Disabled, "")
			f.Title, f.Blocks = "The forge "+e.Name+" is off", configured[e.Name] // who has left it is not stopped
			out = append(out, f)
		default:
			out = append(out, Finding{Name: name, Status: Off, Detail: e.Disabled})
		}
	}
	if enabled == 0 {
		none := blocks("providers", "none is enabled",
			"run `claudeops init`, or set "+strings.Join(append(needed, "CLAUDEOPS_LOCAL_ROOT"), ", or "))
		none.Title = "No forge is set up"
		out = append(out, none)
	}
	return out
}

// used reports whether there are changes at a provider. One that is used must be there, whether or not it is
// configured.
func (d *Doctor) used(ctx context.Context, provider string) bool {
	if d.Proposed == nil {
		return false
	}
	used, err := d.Proposed(ctx, provider)
	return err == nil && used
}

// git matters to the local provider alone.
func (d *Doctor) git(ctx context.Context) Finding {
	if d.Git == nil {
		return Finding{Name: "git", Status: Off, Detail: "used by the local provider only"}
	}
	version, err := d.Git.GitVersion(ctx)
	if err != nil {
		return blocks("git", fault.From(err).Message, "install git 2.38 or newer")
	}
	if err := d.Git.Ping(ctx); err != nil {
		return blocks("local root", fault.From(err).Message+" ("+d.Config.Forges.LocalRoot+")", "")
	}
	return Finding{Name: "git", Status: OK, Detail: version}
}

// OtherRecords is the finding about other records with pull requests of the folder of local repositories; nothing
// without any.
func OtherRecords(others []string) Finding {
	if len(others) == 0 {
		return Finding{}
	}
	return Finding{Name: "local root", Status: Warning, Detail: "other records hold pull requests of these repositories: " +
		strings.Join(others, ", ") + "; neither side sees the other's, and both make branches",
		Do: "serve each folder of repositories from one CLAUDEOPS_STATE_DIR, or one database"}
}

func (d *Doctor) notifications(ctx context.Context) Finding {
	const name = "notifications"
	if len(d.Notifying) == 0 {
		return Finding{Name: name, Status: Off, Detail: "neither CLAUDEOPS_APPRISE_URLS nor CLAUDEOPS_WEBHOOK_URL is set"}
	}
	counts, err := d.Outbox.NoticeCounts(ctx)
	if err != nil {
		return Finding{Name: name, Status: Warning, Detail: fault.From(err).Message}
	}
	f := Finding{Name: name, Status: OK,
		Detail: fmt.Sprintf("%s; %d wait, %d were given up", strings.Join(d.Notifying, ", "), counts.Pending, counts.GivenUp)}
	if counts.LastError != "" && counts.Pending+counts.GivenUp > 0 {
		f.Status, f.Title, f.Stops = Problem, "Notices are not delivered", "notices to people"
		f.Detail += ": " + counts.LastError
		f.Do = "correct CLAUDEOPS_APPRISE_URLS or CLAUDEOPS_WEBHOOK_URL, or mend what they name"
	}
	return f
}

// NoSession says why no session can start here; "" if one can.
func (d *Doctor) NoSession() string {
	if f := d.sessions(); f.Status != OK {
		return f.Detail
	}
	return ""
}

// sessions says whether agents could be run here. Their CLI is looked for and not started: a session asks for its
// version.
func (d *Doctor) sessions() Finding {
	c := d.Config.Sessions
	f := Finding{Name: "sessions", Status: Warning, Stops: stopsSessions}
	path, err := processtree.Find(c.Binary)
	switch {
	case c.Problem != "":
		f.Detail = c.Problem
		return f
	case c.Schedule.Problem != "":
		f.Detail = c.Schedule.Problem + "; claudeops serve does not start"
		return f
	case err != nil && c.Binary != config.DefaultClaude:
		f.Detail = "CLAUDEOPS_CLAUDE_BIN names " + c.Binary + ", which cannot be run"
		return f
	case err != nil:
		f.Status, f.Stops, f.Detail = Off, "", "there is no "+c.Binary+" to run"
		f.Do = "install the Claude CLI, or name it in CLAUDEOPS_CLAUDE_BIN"
		return f
	}
	if c.PromptsDir != "" && !files.IsFolder(c.PromptsDir) {
		f.Detail = "CLAUDEOPS_PROMPTS_DIR names " + c.PromptsDir + ", which is not a folder"
		return f
	}
	f.Status, f.Stops, f.Detail = OK, "", fmt.Sprintf("%s, up to tier %s", path, c.MaxTier)
	if !c.Schedule.Cadence.IsZero() {
		f.Detail += fmt.Sprintf(", %s with claudeops serve", c.Schedule.Cadence.Words())
		if limit := c.Limits.ScheduledUSD; limit > 0 {
			f.Detail += fmt.Sprintf(", at most %g USD each", limit)
		} else {
			f.Detail += ", without a limit of cost (CLAUDEOPS_MAX_COST_USD=none)"
		}
	}
	return f
}

// ends reports how a server learns of merged and closed pull requests.
func (d *Doctor) ends() Finding {
	const name = "ends of pull requests"
	var ways []string
	for _, f := range d.Config.Forges.All {
		if f.HookSecret != "" {
			ways = append(ways, "webhooks of "+f.Driver.Name)
		}
	}
	slices.Sort(ways)
	if every := d.Config.Forges.PollInterval; every > 0 {
		ways = append(ways, fmt.Sprintf("polling every %s", every))
	}
	if len(ways) == 0 {
		return Finding{Name: name, Status: Off, Detail: "CLAUDEOPS_POLL_INTERVAL is 0, and there is no secret for webhooks"}
	}
	return Finding{Name: name, Status: OK, Detail: "claudeops serve learns of merged and closed pull requests by " + strings.Join(ways, " and ")}
}

// forgeHooks names hooks that people start at a forge, where no forge has a webhook that could tell of it.
func (d *Doctor) forgeHooks() Finding {
	var names []string
	for _, h := range d.Rules.Policy.Agents.Hooks {
		if len(h.Forge) > 0 {
			names = append(names, h.Name)
		}
	}
	told := slices.ContainsFunc(d.Config.Forges.All, func(f config.Forge) bool { return f.HookSecret != "" })
	if len(names) == 0 || told {
		return Finding{}
	}
	return Finding{Name: "hooks", Status: Warning, Title: "No forge tells of its issues",
		Detail: "the policy lets people start sessions at issues by " + strings.Join(names, ", ") +
			", and webhooks are off at each forge",
		Stops: "sessions that people start at issues",
		Do:    "set up a webhook at the forge, with a secret; see docs/guides/webhooks.md"}
}

// server says what keeps claudeops serve from starting; nothing if there is nothing.
func (d *Doctor) server() Finding {
	if problem := d.Config.Web.Problem; problem != "" {
		return Finding{Name: "server", Status: Warning, Detail: problem, Stops: "the start of claudeops serve"}
	}
	return Finding{}
}

// servers says which running servers judge by other rules than those that were read here.
func (d *Doctor) servers(ctx context.Context) (out []Finding) {
	if d.Rules.Servers == nil {
		return nil
	}
	const name = "server"
	hash := d.Rules.Policy.Hash()
	for _, s := range d.Rules.Servers(ctx) {
		who := fmt.Sprintf("claudeops serve (process %d)", s.PID)
		switch {
		case s.Rules.Problem != "":
			f := blocks(name, who+" cannot read its rules: "+s.Rules.Problem,
				"correct what it names; the server sees it within two seconds")
			f.Title, f.Stops = "The running server has no rules", "every proposal there, and signing in"
			out = append(out, f)
		case s.Rules.Hash != hash:
			out = append(out, Finding{Name: name, Status: Warning, Title: "The running server judges by other rules",
				Detail: fmt.Sprintf("%s judges by the policy with the hash %s, since %s; this command reads one with the hash %s",
					who, s.Rules.Hash, s.Rules.Since.UTC().Format(time.RFC3339), hash),
				Do: "run this command with the environment of the server, or restart the server with that of this command"})
		default:
			out = append(out, Finding{Name: name, Status: OK, Detail: who + " judges by the same policy"})
		}
	}
	return out
}

// secrets says which secrets that come from files cannot be read, or hold only after a restart.
func (d *Doctor) secrets() (out []Finding) {
	for _, s := range d.Rules.Secrets {
		f := Finding{Name: "secrets", Status: Problem, Title: "A secret cannot be read", Detail: s.Detail,
			Do: "correct the file that " + s.Name + "_FILE names"}
		if s.Restart {
			f.Status, f.Title, f.Do = Warning, "A secret holds only after a restart", "restart claudeops serve"
		}
		out = append(out, f)
	}
	return out
}

// mounted says what is mounted, and how much of it is left out.
func (d *Doctor) mounted() Finding {
	f := Finding{Name: "mounted repositories", Status: OK}
	dir := d.Config.Mounted.Dir
	if !files.IsFolder(dir) {
		f.Status, f.Detail = Off, dir+" is not a folder"
		if dir != config.DefaultReposDir {
			f.Status, f.Do = Warning, "correct CLAUDEOPS_REPOS_DIR"
		}
		return f
	}
	offers := config.Repos{Dir: dir}.Offers()
	problems := len(offers.Problems)
	for _, r := range offers.Repositories {
		problems += len(r.Problems)
	}
	f.Detail = fmt.Sprintf("%s: %d, which may name their provider and offer procedures", dir, len(offers.Repositories))
	merged, err := d.MergeMCP(offers)
	if err != nil {
		f.Status, f.Detail = Warning, f.Detail+"; their MCP servers cannot be merged: "+err.Error()
		return f
	}
	if refused := len(merged.Refused); refused > 0 || problems > 0 {
		f.Status = Warning
		f.Detail += "; " + fault.Count(refused, "contribution", "contributions") + " refused, " +
			fault.Count(problems, "problem", "problems")
		f.Do = "see `claudeops mcp-config --explain`"
	}
	if n := len(merged.Servers) - 1; n > 0 {
		f.Detail += fmt.Sprintf("; MCP servers merged: %d", n)
	}
	return f
}

// sinks says how far the heads of the audit were exported.
func (d *Doctor) sinks(ctx context.Context) Finding {
	const name = "sinks of the audit"
	required := d.Rules.Policy.Server.RequireSink
	exports, err := d.Audit.Exports(ctx)
	switch {
	case err != nil:
		return Finding{Name: name, Status: Warning, Detail: fault.From(err).Message}
	case len(exports) == 0 && required:
		return blocks(name,
			"the policy requires one (audit.require_sink), and CLAUDEOPS_AUDIT_SINK names none that can be used",
			"name one in CLAUDEOPS_AUDIT_SINK")
	case len(exports) == 0 && len(d.Config.Records.AuditSinks) > 0:
		return Finding{Name: name, Status: Warning, Detail: "CLAUDEOPS_AUDIT_SINK names none that can be used"}
	case len(exports) == 0:
		return Finding{Name: name, Status: Off,
			Detail: "CLAUDEOPS_AUDIT_SINK is not set",
			Do:     "name a sink: without one, anyone who can write the database could replace the whole audit unnoticed"}
	}
	f := Finding{Name: name, Status: OK}
	var parts []string
	for _, e := range exports {
		switch {
		case e.Problem != "":
			f.Status = Warning
			parts = append(parts, fmt.Sprintf("%s (since %s)", e.Problem, e.ProblemAt.UTC().Format(time.RFC3339)))
		case e.Last.Seq == 0:
			parts = append(parts, e.Sink+": nothing yet")
		default:
			parts = append(parts, fmt.Sprintf("%s: up to row %d", e.Sink, e.Last.Seq))
		}
	}
	f.Detail = strings.Join(parts, "; ")
	if f.Status == Warning && required {
		return blocks(name, f.Detail, "")
	}
	return f
}

// SignIn is a provider by which people sign in; *identity.Provider is one.
type SignIn interface {
	Name() string
	Kind() identity.Kind
	Redirect() string // address to enter at the provider
	// Check asks the provider, and returns what an operator should know about it.
	Check(ctx context.Context) (notes []string, err error)
}

// signIns say what to enter at each provider, and who gets a role from the policy there.
func (d *Doctor) signIns() (out []Finding) {
	known := []string{}
	for _, p := range d.SignIn {
		known = append(known, p.Name())
		f := Finding{Name: "sign-in by " + p.Name(), Status: OK, Detail: "enter as redirect address there: " + p.Redirect()}
		if !slices.ContainsFunc(d.Rules.Policy.People.Roles, func(r policy.RoleRule) bool { return r.Provider == p.Name() }) {
			f.Status, f.Stops, f.Do = Warning, "signing in by "+p.Name(), "give people of it a role in the policy (roles)"
			f.Detail += "; the policy gives nobody of it a role"
		}
		out = append(out, f)
	}
	for _, rule := range d.Rules.Policy.People.Roles {
		if !slices.Contains(known, rule.Provider) {
			known = append(known, rule.Provider)
			out = append(out, Finding{
				Name: "sign-in by " + rule.Provider, Status: Warning,
				Detail: "the policy gives roles to people of it, and CLAUDEOPS_SIGN_IN does not name it",
				Do:     "name it in CLAUDEOPS_SIGN_IN, or take the roles out",
			})
		}
	}
	return out
}

// askSignIns asks each provider for its description of itself.
func (d *Doctor) askSignIns(ctx context.Context) (out []Finding) {
	for _, p := range d.SignIn {
		f := Finding{Name: "sign-in by " + p.Name(), Status: OK, Detail: "its description was read"}
		switch notes, err := p.Check(ctx); {
		case err != nil:
			f.Status, f.Detail, f.Stops = Problem, fault.From(err).Message, "signing in by "+p.Name()
		case p.Kind() == identity.GitHub:
			f.Detail = "GitHub has no description to read; it is asked when somebody signs in"
		case len(notes) > 0:
			f.Detail += "; " + strings.Join(notes, "; ")
		}
		out = append(out, f)
	}
	return out
}
