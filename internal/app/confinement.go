package app

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/sandbox"
)

// decideBoundary returns the boundary between agents and us on this machine. An error names the setting that cannot be
// used.
func decideBoundary(c config.Config) (sandbox.Boundary, []sandbox.Account, error) {
	set := c.Permissions.Confinement
	choice := sandbox.Choice{Account: set.AgentUser}
	if set.Net == config.NetModel {
		choice.Ports, choice.NoUDP = config.ModelPorts(c.Sessions.Env), !config.ModelNeedsNames(c.Sessions.Env)
	}
	if set.Boundary != config.BoundaryAuto {
		choice.Kind = sandbox.Kind(set.Boundary)
	}
	boundary, accounts, err := sandbox.Decide(choice, sandbox.ThisMachine())
	if err == nil && boundary.Kind == sandbox.User && boundary.ABI == 0 { // the files' modes alone keep it out
		for _, account := range accounts {
			if open := account.CanRead(hiddenFromAgents(c)); len(open) > 0 {
				boundary.Missing = append(boundary.Missing, "the agents' user "+account.Name+" may read "+
					strings.Join(open, " and "))
				break
			}
		}
	}
	return boundary, accounts, err
}

// agentProfile returns what every agent may reach, in every session. Within a landlock boundary it lists what may be
// read and changed; with a separate user it lists what is out of reach beyond the files' modes.
func agentProfile(c config.Config, boundary sandbox.Boundary) sandbox.Profile {
	p := sandbox.Profile{Boundary: boundary, Limits: sandbox.DefaultLimits(), Hidden: hiddenFromAgents(c)}
	p.Read = append(systemFolders(), c.Permissions.Confinement.Read...)
	p.Read = append(p.Read, resolvedPath(c.Mounted.Dir))
	if self, err := os.Executable(); err == nil {
		p.Read = append(p.Read, self)
	}
	p.Read = append(p.Read, namedByEnvironment(c.Sessions.Env)...)
	p.Write = slices.Clone(c.Permissions.Confinement.Write)
	p.Devices = usualDevices()
	if c.Permissions.Confinement.Net == config.NetModel && boundary.LimitsPorts() {
		p.Ports, p.NoUDP = config.ModelPorts(c.Sessions.Env), !config.ModelNeedsNames(c.Sessions.Env)
	}
	return p
}

// confineSessions settles what keeps agents of sessions from our files and processes.
func confineSessions(p *Parts, s *session.Settings) {
	boundary, accounts, err := decideBoundary(p.Cfg)
	if err != nil {
		if s.Problem == "" {
			s.Problem = err.Error()
		}
		return
	}
	s.Confinement = session.Confinement{
		Profile: agentProfile(p.Cfg, boundary), Login: loginOf(p.Cfg.Sessions.Env, accounts),
		Users:    sandbox.Users{Accounts: accounts, Folder: sandbox.ClaimFolder, Leavings: foldersOfEverybody()},
		Required: func() string { return boundaryRequired(p.Rules) },
		Exposed:  func() string { return exposedToAgents(p) },
		Managed:  managedServers,
	}
}

// managedServers says that an administrator of this machine gives Claude Code its only MCP servers; "" if none does.
// Claude Code 2.1.329 then takes none from its arguments, and a session's server is its own.
func managedServers() string {
	folder := "/etc/claude-code"
	if runtime.GOOS == "darwin" {
		folder = "/Library/Application Support/ClaudeCode"
	}
	name := filepath.Join(folder, "managed-mcp.json")
	if _, err := files.Lstat(name); err != nil {
		return ""
	}
	return name + " names the only MCP servers that Claude Code starts here, and each session needs one of its own; run " +
		"claudeops in its container, or on a machine without that file"
}

// exposedToAgents says which files of ours agents could change or read, by the files' modes, owners and access lists
// and under the boundary that holds now, and what to do about it; "" for none. Without a user of their own agents run
// as our user, whom modes do not restrict: then only what others could write counts.
func exposedToAgents(p *Parts) string {
	boundary, accounts, err := decideBoundary(p.Cfg)
	if err != nil {
		return "" // no session starts at all
	}
	users, agents := []files.ModeUser{{AnyOwner: true}}, "others"
	ofTheirOwn := boundary.Kind == sandbox.User
	if ofTheirOwn {
		users, agents = nil, "agents, which run as "+boundary.Account+","
		for _, a := range accounts {
			users = append(users, files.ModeUser{Known: true, UID: a.UID, Groups: a.Groups()})
		}
	}
	subjects := doctor.Guarded(p.Cfg, placesOfScripts(p))
	if ofTheirOwn { // people may share repositories with others
		subjects = append(subjects, doctor.Repositories(p.Cfg.Forges.LocalRoot)...)
	}
	for i := range subjects {
		// Landlock keeps agents from reading what the modes would let them.
		subjects[i].Secret = subjects[i].Secret && ofTheirOwn && boundary.ABI == 0
	}
	var found []string
	for _, user := range users {
		for _, problem := range files.FindModeProblems(user, subjects) {
			if text := problem.String(); !slices.Contains(found, text) {
				found = append(found, text)
			}
		}
	}
	if len(found) == 0 {
		return ""
	}
	return "files that decide what agents may do, or that are secret, are open to " + agents +
		" by their modes, owners or access lists: " + strings.Join(found, "; ")
}

// placesOfScripts returns the places of the operator's scripts, where agents or this process run them.
func placesOfScripts(p *Parts) []string {
	if !usesScripts(p.Cfg) {
		return nil
	}
	return p.Tools.scripts().Places()
}

// boundaryRequired says why sessions need a boundary, by the policy as it is now; "" where they do not. A policy that
// cannot be read may require one.
func boundaryRequired(r rules) string {
	now := r.Now()
	switch {
	case now.Problem != "":
		return "the policy cannot be read, so that it may require a boundary"
	case now.Policy.Agents.RequireBoundary:
		return "the policy requires a boundary that lacks nothing (sessions.require_boundary)"
	}
	return ""
}

// loginOf returns the folder in which the CLI keeps the login of the user that agents run as, where they have no
// credential in their environment; "" for none. Several users share none: what one session changes in it would be
// another one's.
func loginOf(env []string, accounts []sandbox.Account) string {
	values := map[string]string{}
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		values[name] = value
	}
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"} {
		if values[name] != "" {
			return ""
		}
	}
	dir := values["CLAUDE_CONFIG_DIR"]
	home := config.FoldersOf(func(name string) (string, bool) { value, set := values[name]; return value, set }).Home()
	var account *sandbox.Account
	switch len(accounts) {
	case 0:
	case 1:
		account = &accounts[0]
		home = account.Home
	default:
		return ""
	}
	if dir == "" && filepath.IsAbs(home) {
		dir = filepath.Join(home, ".claude")
	}
	there := false
	if err := account.As(func() error {
		info, err := files.Stat(filepath.Join(dir, ".credentials.json"))
		there = err == nil && info.Mode().IsRegular()
		return nil
	}); err != nil || dir == "" || !there {
		return ""
	}
	return dir
}

// foldersOfEverybody returns the folders of temporary files and of shared memory, in which every user can leave
// something.
func foldersOfEverybody() []string {
	all := []string{"/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock"}
	if own := os.TempDir(); !slices.Contains(all, own) {
		all = append(all, own)
	}
	return all
}

// systemFolders returns the folders of the system that every program needs, or that describe the machine. Those of
// people and of services, and /tmp, are not among them.
func systemFolders() []string {
	return []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/etc", "/nix/store", "/proc", "/sys",
		"/dev/fd", "/var/log",
		"/var/lib/dpkg", "/run/log", "/run/systemd/resolve", "/run/NetworkManager/resolv.conf", "/run/utmp",
		"/run/resolvconf",
	}
}

// namedByEnvironment returns the folders of programs and the files that an agent's environment names.
func namedByEnvironment(env []string) (out []string) {
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		switch name {
		case "PATH":
			for _, dir := range filepath.SplitList(value) {
				if filepath.IsAbs(dir) && filepath.Clean(dir) != "/" {
					out = append(out, dir)
				}
			}
		case "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "GOOGLE_APPLICATION_CREDENTIALS":
			out = append(out, value)
		}
	}
	return out
}

// hiddenFromAgents returns the files and folders that hold secrets, records and rules.
func hiddenFromAgents(c config.Config) []string {
	hidden := []string{"/run/secrets", "/run/credentials", c.Records.Dir, c.Forges.LocalRoot, c.Permissions.PolicyFile,
		c.Sessions.PromptsDir, c.EnvironmentFile}
	hidden = append(hidden, c.Permissions.Confinement.Secret...)
	var out []string
	for _, path := range hidden {
		if path == "" {
			continue
		}
		if abs, err := filepath.Abs(path); err == nil {
			out = append(out, abs)
		}
	}
	return out
}
