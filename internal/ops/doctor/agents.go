package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/settings/mounted"
	"github.com/claudeops/claudeops/internal/system/files"
)

// Agents says what agents lack here to do their work: a credential for their model, commands that they may run, working
// copies. None of it keeps a session from starting, and each without it costs money for little.
func (d *Doctor) Agents() []Finding {
	return d.fit([]Finding{d.credential(), d.commands(), d.workingCopies()})
}

// boundary says what keeps agents from our files and processes, and why no better one holds.
func boundary(d *Doctor) Finding {
	const name = "agents' boundary"
	if d.Boundary.Held == nil {
		return Finding{}
	}
	b, err := d.Boundary.Held()
	required := d.Rules.Problem != "" || d.Rules.Policy.Agents.RequireBoundary
	f := Finding{Name: name, Status: OK, Detail: b.String()}
	if err != nil {
		f.Status, f.Detail, f.Stops = Problem, err.Error(), stopsSessions
		return f
	}
	if b.Why != "" {
		f.Detail += "; " + b.Why
	}
	if !b.Held() {
		f.Detail += "; an agent that runs commands can do what the user of claudeops can"
	}
	if !b.Whole() {
		f.Status = Warning
		if required {
			f.Status, f.Stops = Problem, stopsSessions
			f.Detail += "; the policy requires a boundary that lacks nothing (sessions.require_boundary)"
		}
	}
	return f
}

// credential looks for the agent's credential. It sends no request, so a credential that the service would refuse looks
// valid.
func (d *Doctor) credential() Finding {
	const name = "agents' credential"
	values := map[string]string{}
	for _, variable := range d.Config.Sessions.Env {
		name, value, _ := strings.Cut(variable, "=")
		values[name] = value
	}
	for _, of := range []string{
		"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK",
		"CLAUDE_CODE_USE_VERTEX",
	} {
		if values[of] != "" {
			return Finding{Name: name, Status: OK, Detail: "that of " + of}
		}
	}
	dir := values["CLAUDE_CONFIG_DIR"]
	if dir == "" && values["HOME"] != "" {
		dir = filepath.Join(values["HOME"], ".claude")
	}
	if info, err := files.Stat(filepath.Join(dir, ".credentials.json")); dir != "" && err == nil &&
		info.Mode().IsRegular() {
		return Finding{Name: name, Status: OK, Detail: "the login that claude keeps in " + dir}
	}
	return Finding{Name: name, Status: Warning,
		Detail: "none is seen, so no agent can ask its model",
		Do:     "set ANTHROPIC_API_KEY, or CLAUDE_CODE_OAUTH_TOKEN as `claude setup-token` prints it"}
}

// commands says from which tier upwards agents may run commands.
func (d *Doctor) commands() Finding {
	const name = "agents' commands"
	byTier := map[int]int{}
	for _, t := range d.Config.Sessions.Tools {
		if strings.HasPrefix(t.Rule, "Bash(") {
			byTier[int(t.From)]++
		}
	}
	if len(byTier) == 0 {
		return Finding{Name: name, Status: Warning,
			Detail: "they may run none, so they can carry out no check and no playbook that needs one",
			Do:     "docs/guides/sessions.md has a line for CLAUDEOPS_AGENT_TOOLS with commands that only read"}
	}
	var parts []string
	for tier := 1; tier <= 3; tier++ {
		if n := byTier[tier]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d from tier %d", n, tier))
		}
	}
	f := Finding{Name: name, Status: OK, Detail: "permissions to run commands: " + strings.Join(parts, ", ")}
	if byTier[1] == 0 {
		f.Status, f.Detail = Warning, f.Detail+
			"; sessions of tier 1 may run none, so they can carry out no check that needs one"
	}
	return f
}

// workingCopies says whether there are checks for an agent to carry out.
func (d *Doctor) workingCopies() Finding {
	const name = "agents' working copies"
	offers := mounted.Repos{Dir: d.Config.Mounted.Dir}.Offers()
	if len(offers.Repositories) == 0 {
		return Finding{Name: name, Status: Warning, Detail: "there are none below " + d.Config.Mounted.Dir +
			", so agents see no checks and no playbooks",
			Do: "put working copies there, or name their folder in CLAUDEOPS_REPOS_DIR"}
	}
	if !slices.ContainsFunc(offers.Repositories, func(r mounted.Repository) bool { return len(r.Checks) > 0 }) {
		return Finding{Name: name, Status: Warning, Detail: "none below " + d.Config.Mounted.Dir +
			" has a check, so agents have nothing to look at", Do: "add files such as checks/disk.md"}
	}
	return Finding{Name: name, Status: OK,
		Detail: fmt.Sprintf("%d below %s", len(offers.Repositories), d.Config.Mounted.Dir)}
}

// connectorName is the program by which agents reach this one.
const connectorName = "claudeops-connect"

// connector says that the small program is missing which sessions start; this one stands in for it.
func (d *Doctor) connector() Finding {
	binary, err := os.Executable()
	if err != nil || runtime.GOOS == "windows" { // where sessions have no sockets
		return Finding{}
	}
	binary = files.Resolve(binary)
	if _, err := files.Stat(filepath.Join(filepath.Dir(binary), connectorName)); err == nil {
		return Finding{}
	}
	return Finding{Name: "connector", Status: Warning,
		Detail: connectorName + " is not beside " + binary + ": sessions start claudeops mcp-server --connect in " +
			"its place, which takes more time and memory", Do: "install both programs in one folder"}
}
