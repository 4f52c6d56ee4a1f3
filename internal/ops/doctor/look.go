package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/plural"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/mounted"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/processtree"
)

func (d *Doctor) tier() Finding {
	tier := d.Config.Permissions.Tier
	limit := d.Rules.Policy.Tiers.MaxFiles(tier)
	if limit == 0 {
		return blocks("tier", fmt.Sprintf("tier %s may not propose; set CLAUDEOPS_TIER to 2 or 3 for an agent that may",
			tier))
	}
	return Finding{Name: "tier", Status: ok,
		Detail: fmt.Sprintf("tier %s may change up to %s in one pull request", tier, plural.Files(limit))}
}

func (d *Doctor) switches() Finding {
	switch {
	case d.Rules.ReadOnly != "":
		return blocks("switches", d.Rules.ReadOnly)
	case d.Config.Permissions.DryRun:
		return blocks("switches", "CLAUDEOPS_DRY_RUN is on: everything is checked, nothing is written")
	}
	return Finding{Name: "switches", Status: ok, Detail: "neither dry run nor read-only"}
}

func (d *Doctor) policy() Finding {
	if d.Rules.Problem != "" {
		return blocks("policy", d.Rules.Problem)
	}
	return Finding{Name: "policy", Status: ok, Detail: d.Rules.Policy.Source + ", hash " + d.Rules.Policy.Hash()}
}

func (d *Doctor) records(ctx context.Context) Finding {
	if err := d.Records.Check(ctx); err != nil {
		return blocks("records", fault.From(err).Message)
	}
	report, err := d.Audit.Verify(ctx, "")
	if err != nil {
		return blocks("records", fault.From(err).Message)
	}
	if !report.OK() {
		return Finding{Name: "records", Status: Warning, Detail: "the audit is not whole: " + report.Problem}
	}
	return Finding{Name: "records", Status: ok, Detail: fmt.Sprintf("%s, %d attempts", d.Records.Path(), report.Rows)}
}

// key is the key of the marks. Without one the first proposal makes it, in the state folder.
func (d *Doctor) key() Finding {
	key, err := d.Key()
	switch {
	case err != nil:
		return blocks("key of the marks", fault.From(err).Message)
	case d.Config.Records.MarkKey != "":
		return Finding{Name: "key of the marks", Status: ok, Detail: "that of CLAUDEOPS_MARK_KEY"}
	case key != nil:
		return Finding{Name: "key of the marks", Status: ok, Detail: "that of the state folder"}
	case d.Config.Records.DatabaseURL != "":
		return Finding{Name: "key of the marks", Status: Warning,
			Detail: "the first proposal makes one in this machine's state folder; machines " +
				"that share a database need the same CLAUDEOPS_MARK_KEY"}
	}
	return Finding{Name: "key of the marks", Status: ok, Detail: "the first proposal makes one in the state folder"}
}

// providers tells those that nobody configured from those that are configured and no good.
func (d *Doctor) providers() (out []Finding) {
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
			out = append(out, Finding{Name: name, Status: ok, Detail: "hosts " + strings.Join(e.Hosts, ", ")})
		case configured[e.Name]:
			out = append(out, blocks(name, e.Disabled))
		default:
			out = append(out, Finding{Name: name, Status: off, Detail: e.Disabled})
		}
	}
	if enabled == 0 {
		out = append(out, blocks("providers", "none is enabled; run claudeops init, or set "+
			strings.Join(append(needed, "CLAUDEOPS_LOCAL_ROOT"), ", or ")))
	}
	return out
}

// git matters to the local provider alone.
func (d *Doctor) git(ctx context.Context) Finding {
	if d.Git == nil {
		return Finding{Name: "git", Status: off, Detail: "used by the local provider only"}
	}
	version, err := d.Git.GitVersion(ctx)
	if err != nil {
		return blocks("git", fault.From(err).Message)
	}
	if err := d.Git.Ping(ctx); err != nil {
		return blocks("local root", fault.From(err).Message+" ("+d.Config.Forges.LocalRoot+")")
	}
	return Finding{Name: "git", Status: ok, Detail: version}
}

func (d *Doctor) notifications(ctx context.Context) Finding {
	const name = "notifications"
	if len(d.Notifying) == 0 {
		return Finding{Name: name, Status: off, Detail: "neither CLAUDEOPS_APPRISE_URLS nor CLAUDEOPS_WEBHOOK_URL is set"}
	}
	counts, err := d.Outbox.NoticeCounts(ctx)
	if err != nil {
		return Finding{Name: name, Status: Warning, Detail: fault.From(err).Message}
	}
	return Finding{Name: name, Status: ok,
		Detail: fmt.Sprintf("%s; %d wait, %d were given up", strings.Join(d.Notifying, ", "), counts.Pending, counts.GivenUp)}
}

// NoSession is why no session can start here; "" if one can.
func (d *Doctor) NoSession() string {
	if f := d.sessions(); f.Status != ok {
		return f.Detail
	}
	return ""
}

// sessions says whether agents could be run here. Their CLI is looked for and not started: a session asks for its
// version.
func (d *Doctor) sessions() Finding {
	c := d.Config.Sessions
	f := Finding{Name: "sessions", Status: Warning}
	path, err := processtree.Find(c.Binary)
	switch {
	case c.Problem != "":
		f.Detail = c.Problem + "; no session can start"
		return f
	case c.Schedule.Problem != "":
		f.Detail = c.Schedule.Problem + "; claudeops serve does not start"
		return f
	case err != nil && c.Binary != config.DefaultClaude:
		f.Detail = "CLAUDEOPS_CLAUDE_BIN names " + c.Binary + ", which cannot be run; no session can start"
		return f
	case err != nil:
		f.Status, f.Detail = off, "there is no "+c.Binary+" to run; CLAUDEOPS_CLAUDE_BIN names the Claude CLI"
		return f
	}
	if c.PromptsDir != "" && !files.IsFolder(c.PromptsDir) {
		f.Detail = "CLAUDEOPS_PROMPTS_DIR names " + c.PromptsDir + ", which is no folder; no session can start"
		return f
	}
	f.Status, f.Detail = ok, fmt.Sprintf("%s, up to tier %s", path, c.MaxTier)
	if c.Schedule.Interval > 0 {
		f.Detail += fmt.Sprintf(", every %s with claudeops serve", c.Schedule.Interval)
		if limit := c.Limits.ScheduledUSD; limit > 0 {
			f.Detail += fmt.Sprintf(", at most %g USD each", limit)
		} else {
			f.Detail += ", without a limit of cost (CLAUDEOPS_MAX_COST_USD=none)"
		}
	}
	return f
}

// ends says by what a server hears of what becomes of pull requests.
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
		ways = append(ways, fmt.Sprintf("a look every %s", every))
	}
	if len(ways) == 0 {
		return Finding{Name: name, Status: off, Detail: "CLAUDEOPS_POLL_INTERVAL is 0, and there is no secret for webhooks"}
	}
	return Finding{Name: name, Status: ok, Detail: "claudeops serve hears of them by " + strings.Join(ways, " and ")}
}

// server says what keeps claudeops serve from starting; nothing if there is nothing.
func (d *Doctor) server() Finding {
	if problem := d.Config.Web.Problem; problem != "" {
		return Finding{Name: "server", Status: Warning, Detail: problem + "; claudeops serve does not start"}
	}
	return Finding{}
}

// mounted says what is mounted, and how much of it is left out.
func (d *Doctor) mounted() Finding {
	f := Finding{Name: "mounted repositories", Status: ok}
	dir := d.Config.Mounted.Dir
	if !files.IsFolder(dir) {
		f.Status, f.Detail = off, dir+" is no folder"
		if dir != config.DefaultReposDir {
			f.Status, f.Detail = Warning, f.Detail+"; correct CLAUDEOPS_REPOS_DIR"
		}
		return f
	}
	offers := mounted.Repos{Dir: dir}.Offers()
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
		f.Detail += fmt.Sprintf("; %d contributions refused, %d problems: see claudeops mcp-config --explain", refused,
			problems)
	}
	if n := len(merged.Servers) - 1; n > 0 {
		f.Detail += fmt.Sprintf("; MCP servers merged: %d", n)
	}
	return f
}
