package config

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Confinement configures the separation of agents from the files and processes of claudeops. Problem names the variable
// that is malformed, "" if none is: an agent must not start on a guess of what it may reach.
type Confinement struct {
	Boundary  string // auto, user, landlock or none
	AgentUser string // names, numbers or a range of them; "" for the default ones, if there are such users
	Net       string // any or model
	Read      []string
	Write     []string // paths, beside those that every agent may read or change; absolute
	Secret    []string // files of secrets, and settings that are files; absolute
	Scripts   string   // the one of Secret that holds settings of scripts, which are not secret; "" for none
	Problem   string
}

// Values of CLAUDEOPS_BOUNDARY and CLAUDEOPS_AGENT_NET.
const (
	BoundaryAuto = "auto"
	NetAny       = "any"
	// of the internet's protocols, TCP to the port of the agent's model, and UDP if names have to be looked up
	NetModel = "model"
)

func confinement(e *env) Confinement {
	c := Confinement{Boundary: BoundaryAuto, AgentUser: e.get("CLAUDEOPS_AGENT_USER"), Net: NetAny}
	problem := func(format string, args ...any) {
		if c.Problem == "" {
			c.Problem = fmt.Sprintf(format, args...)
		}
	}
	switch raw := e.get("CLAUDEOPS_BOUNDARY"); raw {
	case "":
	case BoundaryAuto, "user", "landlock", "none":
		c.Boundary = raw
	default:
		problem("CLAUDEOPS_BOUNDARY is %s, which is none of auto, user, landlock and none", quoteShort(raw))
	}
	switch raw := e.get("CLAUDEOPS_AGENT_NET"); raw {
	case "":
	case NetAny, NetModel:
		c.Net = raw
	default:
		problem("CLAUDEOPS_AGENT_NET is %s, which is neither any nor model", quoteShort(raw))
	}
	paths := func(name, raw string) (out []string) {
		for _, path := range splitList(raw) {
			if !filepath.IsAbs(path) {
				problem("%s holds %s, which is not an absolute path", name, quoteShort(path))
				continue
			}
			out = append(out, filepath.Clean(path))
		}
		return out
	}
	c.Read = paths("CLAUDEOPS_AGENT_READ", e.get("CLAUDEOPS_AGENT_READ"))
	c.Write = paths("CLAUDEOPS_AGENT_WRITE", e.get("CLAUDEOPS_AGENT_WRITE"))
	c.Secret = secretFiles(e)
	if path := e.get("CLAUDEOPS_SCRIPTS"); path != "" && !strings.ContainsAny(path, "\n{") {
		c.Scripts = absolute(path)
	}
	return c
}

// secretFiles returns the files that variables name as those of secrets, and that of the settings of scripts.
func secretFiles(e *env) (out []string) {
	names := append(e.signInSecretFiles(), "CLAUDEOPS_SCRIPTS", "CLAUDEOPS_DEPLOY_GIT_CREDENTIALS")
	for _, v := range Variables(e.drivers) {
		if v.Secret {
			names = append(names, v.Name+"_FILE")
		}
	}
	for _, name := range names {
		if path := e.get(name); path != "" && !strings.ContainsAny(path, "\n{") {
			out = append(out, absolute(path))
		}
	}
	return out
}

// RunAs returns the user that claudeops becomes when root starts it; "" to stay root.
func RunAs(lookup func(string) (string, bool)) string {
	e := env{lookup: lookup}
	return e.get("CLAUDEOPS_RUN_AS")
}

// ModelPorts returns the ports of what an agent with the environment asks its model through: the model's, or its
// proxies'.
func ModelPorts(agent []string) []uint16 {
	const https, http = 443, 80
	ports := []uint16{}
	values := map[string]string{}
	for _, variable := range agent {
		name, value, _ := strings.Cut(variable, "=")
		values[name] = value
	}
	add := func(address string) {
		if !strings.Contains(address, "://") {
			address = "http://" + address
		}
		u, err := url.Parse(address)
		if err != nil {
			return
		}
		if n, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
			ports = append(ports, uint16(n))
			return
		}
		if u.Scheme == "https" {
			ports = append(ports, https)
		} else {
			ports = append(ports, http)
		}
	}
	if base := values["ANTHROPIC_BASE_URL"]; base != "" {
		add(base)
	} else {
		ports = append(ports, https)
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		if values[name] != "" {
			add(values[name])
		}
	}
	return ports
}

// ModelNeedsNames reports whether an agent with the environment has to look up the name of a host to ask its model: not
// where the model's address, or its proxy's, is a number or this machine's.
func ModelNeedsNames(agent []string) bool {
	values := map[string]string{}
	for _, variable := range agent {
		name, value, _ := strings.Cut(variable, "=")
		values[name] = value
	}
	either := func(name string) string { return cmp.Or(values[strings.ToUpper(name)], values[name]) }
	base := cmp.Or(values["ANTHROPIC_BASE_URL"], "https://api.anthropic.com")
	secure, plain := either("https_proxy"), either("http_proxy")
	through := plain
	if strings.HasPrefix(base, "https:") {
		through = secure
	}
	addresses := []string{secure, plain}
	if through == "" || either("no_proxy") != "" {
		addresses = append(addresses, base)
	}
	if values["CLAUDE_CODE_USE_BEDROCK"] != "" || values["CLAUDE_CODE_USE_VERTEX"] != "" {
		return true
	}
	return slices.ContainsFunc(addresses, func(address string) bool { return address != "" && hasName(address) })
}

// hasName reports whether the host of an address has a name that has to be looked up elsewhere.
func hasName(address string) bool {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil {
		return true
	}
	host := strings.TrimSuffix(u.Hostname(), ".")
	return net.ParseIP(host) == nil && host != "localhost"
}

func confinementVariables() []Variable {
	return []Variable{
		{Name: "CLAUDEOPS_BOUNDARY", Meaning: "what keeps agents from our files and processes",
			Values: "auto (the best that there is), user, landlock or none; with user and landlock no session starts where " +
				"that cannot hold", Default: BoundaryAuto},
		{Name: "CLAUDEOPS_AGENT_USER",
			Meaning: "users that agents run as, one for each session at a time, where claudeops may switch users",
			Values: "NAME+COUNT for the users NAME-1 to NAME-COUNT; NUMBER+COUNT for numbers that belong to nobody, such as " +
				"70000+16; for one user a name, a number, or number:number with the group; unset means claudeops-agent-1, -2 and " +
				"so on, if there are such users, or claudeops-agent"},
		{Name: "CLAUDEOPS_AGENT_NET", Meaning: "where agents may connect to",
			Values: "any, or model for TCP to the port of their model alone, and UDP as far as names have to be looked up " +
				"(docs/explain/boundary.md)", Default: NetAny},
		{Name: "CLAUDEOPS_AGENT_READ",
			Meaning: "what agents may read within a landlock boundary, beside the system's own files",
			Values:  "files and folders, separated by commas"},
		{Name: "CLAUDEOPS_AGENT_WRITE", Meaning: "what agents may change within a landlock boundary, beside their own folder",
			Values: "files and folders, separated by commas"},
		{Name: "CLAUDEOPS_RUN_AS",
			Meaning: "user that claudeops becomes when root starts it, keeping what starts and ends agents as another user",
			Values:  "a name or a number; unset means that root stays root"},
	}
}
