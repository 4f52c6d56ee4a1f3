package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/confine"
	"github.com/claudeops/claudeops/internal/doctor"
	"github.com/claudeops/claudeops/internal/filemodes"
	"github.com/claudeops/claudeops/internal/scripts"
	"github.com/claudeops/claudeops/internal/session"
)

// decideBoundary says what stands between agents and us on this machine. An error names the setting that is no good.
func decideBoundary(c config.Config) (confine.Boundary, *confine.Account, error) {
	set := c.Permissions.Confinement
	choice := confine.Choice{Account: set.AgentUser, Ports: set.Net == config.NetModel}
	if set.Boundary != config.BoundaryAuto {
		choice.Kind = confine.Kind(set.Boundary)
	}
	boundary, account, err := confine.Decide(choice, confine.ThisMachine())
	if err == nil && boundary.Kind == confine.User && boundary.ABI == 0 { // the files' modes alone keep it out
		if open := account.CanRead(hiddenFromAgents(c)); len(open) > 0 {
			boundary.Missing = append(boundary.Missing, "the agents' user may read "+strings.Join(open, " and "))
		}
	}
	return boundary, account, err
}

// agentProfile is what every agent may reach, whatever session it is in. Within a landlock boundary it is a list of what may be read and
// changed; with a user of its own it is what is out of reach beside what the files' modes say.
func agentProfile(c config.Config, boundary confine.Boundary, account *confine.Account) confine.Profile {
	p := confine.Profile{Boundary: boundary, Account: account, Limits: confine.DefaultLimits(), Hidden: hiddenFromAgents(c)}
	p.Read = append(systemFolders(), c.Permissions.Confinement.Read...)
	p.Read = append(p.Read, resolvedPath(c.Mounted.Dir))
	if self, err := os.Executable(); err == nil {
		p.Read = append(p.Read, self)
	}
	p.Read = append(p.Read, namedByEnvironment(c.Sessions.Env)...)
	p.Write = slices.Clone(c.Permissions.Confinement.Write)
	p.Devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts"}
	if c.Permissions.Confinement.Net == config.NetModel && boundary.ABI > 0 {
		p.Ports = config.ModelPorts(c.Sessions.Env)
	}
	return p
}

// confineSessions settles what keeps agents of sessions from our files and processes.
func confineSessions(p *parts, s *session.Settings) {
	boundary, account, err := decideBoundary(p.cfg)
	if err != nil {
		if s.Problem == "" {
			s.Problem = err.Error()
		}
		return
	}
	s.Confinement = session.Confinement{
		Profile: agentProfile(p.cfg, boundary, account), Login: loginOf(p.cfg.Sessions.Env, account),
		Required: func() string { return boundaryRequired(p.cfg.Permissions) },
		Exposed:  func() string { return exposedToAgents(p) },
	}
}

// exposedToAgents says which files of ours agents could change or read, by the files' modes, owners and access lists and under the boundary that holds now, and
// what to do about it; "" for none. Without a user of their own agents are our user, to whom modes say nothing: then what others could
// write counts alone.
func exposedToAgents(p *parts) string {
	boundary, account, err := decideBoundary(p.cfg)
	if err != nil {
		return "" // no session starts at all
	}
	user, agents := filemodes.User{AnyOwner: true}, "others"
	if boundary.Kind == confine.User {
		user, agents = filemodes.User{Known: true, UID: account.UID, Groups: []int{account.GID}}, "agents, which run as "+account.Name+","
	}
	subjects := doctor.Guarded(p.cfg, placesOfScripts(p))
	if user.Known { // people may share repositories with others
		subjects = append(subjects, doctor.Repositories(p.cfg.Forges.LocalRoot)...)
	}
	for i := range subjects {
		// Landlock keeps agents from reading what the modes would let them.
		subjects[i].Secret = subjects[i].Secret && user.Known && boundary.ABI == 0
	}
	var found []string
	for _, problem := range filemodes.Look(user, subjects) {
		found = append(found, problem.String())
	}
	if len(found) == 0 {
		return ""
	}
	return "files that decide what agents may do, or that are secret, are open to " + agents + " by their modes, owners or access lists: " + strings.Join(found, "; ")
}

// placesOfScripts are those of the operator's scripts, where agents or this process run them.
func placesOfScripts(p *parts) []string {
	if !slices.Contains(p.cfg.Sessions.Toolsets, scripts.ToolsetName) && !slices.Contains(p.cfg.Permissions.Toolsets, scripts.ToolsetName) {
		return nil
	}
	return p.tools.scripts().Places()
}

// boundaryRequired says why sessions need a boundary, by the policy as it is now; "" where they do not. A policy that cannot be read may
// require one.
func boundaryRequired(c config.Permissions) string {
	rules := readRules(c)
	switch {
	case rules.policyErr != nil:
		return "the policy cannot be read, so that it may require a boundary"
	case rules.policy.Agents.RequireBoundary:
		return "the policy requires a boundary that lacks nothing (sessions.require_boundary)"
	}
	return ""
}

// loginOf is the folder in which the CLI keeps the login of the user that agents run as, where they have no credential in their environment;
// "" for none.
func loginOf(env []string, account *confine.Account) string {
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
	dir, home := values["CLAUDE_CONFIG_DIR"], values["HOME"]
	if account != nil {
		home = account.Home
	}
	if dir == "" && filepath.IsAbs(home) {
		dir = filepath.Join(home, ".claude")
	}
	there := false
	if err := account.As(func() error {
		info, err := os.Stat(filepath.Join(dir, ".credentials.json"))
		there = err == nil && info.Mode().IsRegular()
		return nil
	}); err != nil || dir == "" || !there {
		return ""
	}
	return dir
}

// systemFolders are those of the system that every program needs, or that tell of the machine. Those of people and of services, and /tmp,
// are not among them.
func systemFolders() []string {
	return []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/etc", "/nix/store", "/proc", "/sys", "/dev/fd", "/var/log",
		"/var/lib/dpkg", "/run/log", "/run/systemd/resolve", "/run/NetworkManager/resolv.conf", "/run/utmp", "/run/resolvconf",
	}
}

// namedByEnvironment are the folders of programs and the files that an agent's environment names.
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

// hiddenFromAgents are the files and folders that hold secrets, records and rules.
func hiddenFromAgents(c config.Config) []string {
	hidden := []string{"/run/secrets", "/run/credentials", c.Records.Dir, c.Forges.LocalRoot, c.Permissions.PolicyFile, c.Sessions.PromptsDir}
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
