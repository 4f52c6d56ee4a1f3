package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/settings/config"
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

// managed says that an administrator keeps the CLI from starting the MCP servers of sessions.
func managed(d *Doctor) Finding {
	if d.Boundary.Managed == nil {
		return Finding{}
	}
	why := d.Boundary.Managed()
	if why == "" {
		return Finding{}
	}
	return Finding{Name: "agents' MCP server", Status: Problem, Detail: why, Stops: stopsSessions}
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
	home := config.FoldersOf(func(name string) (string, bool) { value, set := values[name]; return value, set }).Home()
	if dir == "" && home != "" {
		dir = filepath.Join(home, ".claude")
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
			Do:     "set CLAUDEOPS_AGENT_TOOLS; docs/guides/sessions.md has a line with commands that only read"}
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
	offers := config.Repos{Dir: d.Config.Mounted.Dir}.Offers()
	if len(offers.Repositories) == 0 {
		return Finding{Name: name, Status: Warning, Detail: "there are none below " + d.Config.Mounted.Dir +
			", so agents see no checks and no playbooks",
			Do: "put working copies there, or name their folder in CLAUDEOPS_REPOS_DIR"}
	}
	if !slices.ContainsFunc(offers.Repositories, func(r config.Repository) bool { return len(r.Checks) > 0 }) {
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

// Guarded returns the files and folders that an agent must not be able to write, and those of secrets not even to read.
// scripts are the places of the operator's scripts.
func Guarded(c config.Config, scripts []string) []files.ModeSubject {
	out := []files.ModeSubject{
		{What: "the environment file", Path: c.EnvironmentFile, Secret: true},
		{What: "the policy file", Path: c.Permissions.PolicyFile},
		{What: "the prompts", Path: c.Sessions.PromptsDir, Tree: true},
		{What: "the folder of local repositories", Path: c.Forges.LocalRoot},
		{What: "the settings of scripts", Path: c.Permissions.Confinement.Scripts},
		{What: "the settings of definitions", Path: c.Tools.Definitions.ConfigFile},
		{What: "the home of deployments", Path: c.Tools.Deploy.AgentpackHome},
	}
	if dir := c.Records.Dir; dir != "" {
		out = append(out,
			files.ModeSubject{What: "the state folder", Path: dir},
			files.ModeSubject{What: "the key of the marks", Path: filepath.Join(dir, config.MarkKeyName), Secret: true},
			files.ModeSubject{What: "the key that seals what providers have given", Path: filepath.Join(dir, config.GrantsKeyName),
				Secret: true},
			files.ModeSubject{What: "the operator's token", Path: filepath.Join(dir, config.OperatorTokenFile), Secret: true},
			files.ModeSubject{What: "the records", Path: filepath.Join(dir, "claudeops.db"), Secret: true},
		)
	}
	for _, path := range c.Permissions.Confinement.Secret {
		if path != c.Permissions.Confinement.Scripts {
			out = append(out, files.ModeSubject{What: "the file of a secret", Path: path, Secret: true})
		}
	}
	for _, path := range scripts {
		out = append(out, files.ModeSubject{What: "the scripts", Path: path, Tree: true})
	}
	return out
}

// Repositories lists the files of local repositories that only pull requests may change. Of their objects only the
// folder counts: objects are read-only, and named by their contents.
func Repositories(root string) (out []files.ModeSubject) {
	if root == "" {
		return nil
	}
	for _, path := range files.Glob(root, "*/*.git") {
		for _, part := range []string{"HEAD", "config", "packed-refs", "objects", "refs", "hooks"} {
			out = append(out, files.ModeSubject{What: "a local repository", Path: filepath.Join(path, part),
				Tree: part == "refs" || part == "hooks"})
		}
	}
	return out
}

// modes says which of them somebody else could change. Where agents run as the user of claudeops, modes keep nothing
// from them: the boundary does.
func modes(d *Doctor) Finding {
	const name = "modes and owners"
	var scripts []string
	if d.Boundary.Scripts != nil {
		scripts = d.Boundary.Scripts()
	}
	var found []string
	for _, p := range files.FindModeProblems(files.ModeUser{}, Guarded(d.Config, scripts)) {
		found = append(found, p.String())
	}
	f := Finding{Name: name, Status: OK,
		Detail: "nobody else can write the environment file, the state folder, keys, policy, prompts or scripts"}
	if len(found) > 0 {
		f.Status, f.Detail = Warning, strings.Join(found, "; ")
	}
	if d.Boundary.Exposed == nil {
		return f
	}
	if why := d.Boundary.Exposed(); why != "" {
		f.Status, f.Detail, f.Stops = Problem, why, stopsSessions
	}
	return f
}
