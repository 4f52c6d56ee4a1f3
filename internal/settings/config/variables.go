package config

import (
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// Variable is one variable that the product reads.
type Variable = forge.Variable

// Variables lists every variable that the product reads. The variables of the system (HOME, XDG_STATE_HOME,
// LOCALAPPDATA), and CLAUDEOPS_SESSION, which sessions set themselves, are not among them, nor those of which there are
// any number (Variable.Each). drivers are the forges that there are.
func Variables(drivers []forge.Driver) (out []Variable) {
	for _, s := range Sections(drivers) {
		out = append(out, s.Variables...)
	}
	return slices.DeleteFunc(out, func(v Variable) bool { return v.Each })
}

// Section is a part of the list of variables, as docs/reference/configuration.md shows it.
type Section struct {
	Title     string
	Text      string // which commands read the variables, and which page says more; in Markdown, as seen from docs
	Variables []Variable
}

// Sections returns the variables that the product reads, in parts.
func Sections(drivers []forge.Driver) []Section {
	return []Section{
		{"What agents may do",
			"Read by every command that proposes or answers agents: `mcp-server`, `serve`, `run`, `pr`, `policy`, `doctor`. " +
				"See [policy](../guides/policy.md) and [gates](../explain/gates.md).", permissionVariables()},
		{"Where repositories are",
			"Read by every command that reaches a repository. See [providers](../guides/providers.md); " +
				"for the secrets of webhooks and the interval, which `serve` alone reads, [webhooks](../guides/webhooks.md).",
			forgeVariables(drivers)},
		{"Records and messages",
			"Read by every command that keeps or shows records. See [records](../explain/records.md), " +
				"[operations](../guides/operations.md) and " +
				"[notifications](../guides/notifications.md).", recordVariables()},
		{"The server",
			"Read by `serve`; `health` and `token` read the address, too. See [REST](../guides/rest.md) and " +
				"[deployment](../guides/deployment.md).", webVariables()},
		{"Who is at the command line",
			"Read by every command by which a person acts. See [people](../explain/people.md).", []Variable{
				{Name: "CLAUDEOPS_TOKEN", Secret: true,
					Meaning: "token of the person who acts at the command line, with the rights that it has; unset means the user of " +
						"the operating system"},
			}},
		{"How people sign in",
			"Read by `serve` and `doctor`. NAME is the name of a provider in capital letters, with `_` for `-`. See [sign " +
				"in](../guides/sign-in.md).",
			signInVariables()},
		{"Sessions of agents",
			"Read by `run` and `serve`, which start agents. See [sessions](../guides/sessions.md) and [mounted " +
				"repositories](../guides/mounted.md).",
			sessionVariables()},
		{"The boundary of agents",
			"Read by `run` and `serve`, which start agents, and by `doctor`; `CLAUDEOPS_RUN_AS` by every command. See [the " +
				"boundary](../explain/boundary.md).",
			confinementVariables()},
		{"Definitions",
			"Read by `mcp-server`, `serve` and the command line where `CLAUDEOPS_TOOLSETS` names `definitions`. See " +
				"[definitions](../guides/definitions.md).",
			definitionVariables()},
		{"Deployments",
			"Read by `mcp-server`, `serve` and the command line where `CLAUDEOPS_TOOLSETS` names `deploy` or `packages`. " +
				"See [deploy](../guides/deploy.md) and [packages](../guides/packages.md).", deployVariables()},
		{"Scripts", "Read by `mcp-server`, `serve` and the command line where `CLAUDEOPS_TOOLSETS` names `scripts`. See " +
			"[scripts](../guides/scripts.md).",
			scriptVariables()},
	}
}

// ServerVariables lists the variables that .claude/mcp.json and `claudeops mcp-config` pass on to the MCP server, those
// that name the file of a secret too. With its default there, a missing variable never reaches the server as a literal
// placeholder; an empty value counts as unset.
func ServerVariables(drivers []forge.Driver) (out []Variable) {
	for _, v := range Variables(drivers) {
		if !v.Server {
			continue
		}
		out = append(out, v)
		if v.Secret {
			out = append(out, Variable{Name: v.Name + "_FILE", Meaning: "file of " + v.Name, Server: true})
		}
	}
	return out
}

// ClientVariables lists those that an MCP server with the toolsets reads: what a client's configuration has to hand to
// it.
func ClientVariables(drivers []forge.Driver, toolsets []string) []Variable {
	out := ServerVariables(drivers)
	if slices.Equal(toolsets, []string{"pr"}) {
		return out
	}
	for _, v := range append(permissionVariables(), toolsetVariables(toolsets)...) {
		if v.Server { // which is there
			continue
		}
		out = append(out, v)
		if v.Secret {
			out = append(out, Variable{Name: v.Name + "_FILE", Meaning: "file of " + v.Name})
		}
	}
	return out
}

// toolsetVariables returns the variables that the toolsets read beside those of every server.
func toolsetVariables(toolsets []string) (out []Variable) {
	for name, its := range map[string]func() []Variable{
		"definitions": definitionVariables, "deploy": deployVariables, "packages": deployVariables,
		"scripts": scriptVariables,
	} {
		if slices.Contains(toolsets, name) {
			out = append(out, its()...)
		}
	}
	byName := func(a, b Variable) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(out, byName)
	return slices.CompactFunc(out, func(a, b Variable) bool { return a.Name == b.Name })
}

// SystemVariables returns the variables of the system and of other programs that an MCP server with the toolsets reads,
// for clients that pass few variables to their servers.
func SystemVariables(toolsets []string) []string {
	out := append(networkVariables(), "XDG_STATE_HOME")
	if slices.Contains(toolsets, "deploy") {
		out = append(out, "SSH_AUTH_SOCK", "HOSTNAME", "COMPUTERNAME")
	}
	return out
}

// networkVariables say how this machine reaches others.
func networkVariables() []string {
	return []string{"HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy", "SSL_CERT_FILE",
		"SSL_CERT_DIR"}
}

func permissionVariables() []Variable {
	return []Variable{
		{Name: "CLAUDEOPS_TIER", Meaning: "permission tier of agents", Values: "1, 2 or 3; anything else is 1", Default: "1",
			Server: true},
		{Name: "CLAUDEOPS_DRY_RUN", Meaning: "check everything, write nothing",
			Values: "true or false; anything else is true", Default: "false", Server: true},
		{Name: "CLAUDEOPS_READ_ONLY", Meaning: "refuse every proposal; create_pr is not listed",
			Values: "true or false; anything else is true", Default: "false", Server: true},
		{Name: "CLAUDEOPS_REPOS", Meaning: "allowlist of repositories; unset means every one",
			Values: "owner/name, owner/* or gitea:owner/name, separated by commas; a malformed list refuses every proposal",
			Server: true},
		{Name: "CLAUDEOPS_POLICY", Meaning: "policy file (YAML); unset means the embedded policy", Server: true},
		{Name: "CLAUDEOPS_TOOLSETS", Meaning: "toolsets that are enabled",
			Values: "pr, definitions, deploy, packages and scripts, separated by commas", Default: "pr"},
		{Name: "CLAUDEOPS_ALLOW_WRITE",
			Meaning: "lets tools of other toolsets than pr write beyond the program's own folders",
			Values:  "true or false; unset and anything else is false"},
	}
}

func forgeVariables(drivers []forge.Driver) []Variable {
	var out, hooks []Variable
	for _, d := range drivers {
		out = append(out, d.Variables...)
		hooks = append(hooks, d.HookVariable())
	}
	return append(append(out, hooks...), []Variable{
		{Name: "CLAUDEOPS_CA_FILE", Meaning: "PEM certificates to trust beside the system's", Server: true},
		{Name: "CLAUDEOPS_FORGE_PLAIN_HTTP", Meaning: "lets tokens go over plain http to other machines",
			Values: "true or false; unset and anything else is false", Server: true},
		{Name: "CLAUDEOPS_LOCAL_ROOT", Meaning: "folder of local repositories, as owner/name or owner/name.git",
			Values: "a folder; unset means that the provider is off", Server: true},
		{Name: "CLAUDEOPS_DEFAULT_PROVIDER", Meaning: "provider of repositories that nothing else settles",
			Values: "github, gitea or local; unset means the only one that is enabled", Server: true},
		{Name: "CLAUDEOPS_POLL_INTERVAL", Meaning: "how often serve looks at open pull requests",
			Values: "30s to 24h; 0 is never", Default: "5m"},
	}...)
}

func recordVariables() []Variable {
	return []Variable{
		{Name: "CLAUDEOPS_STATE_DIR", Meaning: "folder of the records",
			Values: "a folder; unset means $XDG_STATE_HOME/claudeops, else ~/.local/state/claudeops, on Windows " +
				`%LOCALAPPDATA%\claudeops`, Server: true},
		{Name: "CLAUDEOPS_DATABASE_URL", Meaning: "records in PostgreSQL instead of SQLite in the state folder",
			Values: "postgres://user:password@host:5432/database", Secret: true, Server: true},
		{Name: "CLAUDEOPS_RECORDS", Meaning: "where the records are, for a state folder that changes from one to the other",
			Values: "sqlite or postgresql; unset means where they were last"},
		{Name: "CLAUDEOPS_MARK_KEY", Meaning: "key of the marks, when machines share a database",
			Values: "64 hexadecimal digits; unset means mark.key in the state folder", Secret: true, Server: true},
		{Name: "CLAUDEOPS_RETENTION", Meaning: "age at which contents are removed, never the audit",
			Values: "7d or more, such as 90d or 2160h; unset and 0 keep everything"},
		{Name: "CLAUDEOPS_AUDIT_SINK", Meaning: "where the heads of the audit are exported",
			Values: "absolute paths, syslog, syslog+tcp://HOST:PORT, syslog+udp://HOST:PORT or https://HOST/PATH, separated " +
				"by commas; unset means nowhere", Secret: true, Server: true},
		{Name: "CLAUDEOPS_APPRISE_URLS", Meaning: "where Apprise sends notifications", Secret: true, Server: true},
		{Name: "CLAUDEOPS_WEBHOOK_URL", Meaning: "where notifications are posted", Secret: true, Server: true},
		{Name: "CLAUDEOPS_WEBHOOK_SECRET", Meaning: "key of the webhook's signature", Secret: true, Server: true},
		{Name: "CLAUDEOPS_NOTIFY_PLAIN_HTTP", Meaning: "lets notifications go over plain http to other machines",
			Values: "true or false; unset and anything else is false", Server: true},
	}
}

func webVariables() []Variable {
	return []Variable{
		{Name: "CLAUDEOPS_ADDR", Meaning: "where serve listens", Values: "host:port", Default: DefaultAddr},
		{Name: "CLAUDEOPS_API_TOKENS",
			Meaning: "tokens of REST; unset means those of claudeops token, and the one that the first start makes",
			Values:  "16 characters or more each, separated by commas", Secret: true},
		{Name: "CLAUDEOPS_HOSTS", Meaning: "names that Host may have beside loopback's and the address's",
			Values: "names and addresses without port, separated by commas"},
		{Name: "CLAUDEOPS_BASE_PATH", Meaning: "path below which everything is served, such as /ops", Server: true},
		{Name: "CLAUDEOPS_PUBLIC_URL",
			Meaning: "address at which browsers reach serve; pull requests of local repositories have theirs below it",
			Values:  "such as https://ops.example; unset: their addresses name the repository", Server: true},
		{Name: "CLAUDEOPS_TRUSTED_PROXIES", Meaning: "addresses and networks whose forwarded headers are believed",
			Values: "such as 127.0.0.1 or 10.0.0.0/8, separated by commas"},
		{Name: "CLAUDEOPS_PROXY_USER_HEADER", Meaning: "header in which a trusted proxy names the user",
			Values: "name of a header; needs CLAUDEOPS_TRUSTED_PROXIES"},
		{Name: "CLAUDEOPS_ANONYMOUS_READ",
			Meaning: "lets programs on this machine read without a token; never behind a proxy",
			Values:  "true or false; anything else is false", Default: "false"},
		{Name: "CLAUDEOPS_CLIENT_DOCUMENTS",
			Meaning: "lets serve read the documents by which programs say who they are, at any host of the internet, for people " +
				"who are signed in; never through a proxy, so that HTTPS_PROXY turns it off",
			Values: "true or false; anything else is false", Default: "true"},
		{Name: "CLAUDEOPS_DOOR_SOCKET",
			Meaning: "unix socket on which serve lets agents in that have a token of claudeops token create --agent",
			Values:  "a path of at most 100 bytes; unset means that there is none"},
		{Name: "CLAUDEOPS_START_WAIT", Meaning: "how long a start waits for its address, its folder and its database",
			Values: "0 to 1h; then it ends with exit code 5", Default: "30s"},
		{Name: "CLAUDEOPS_LOG_FORMAT", Meaning: "form of the log of serve", Values: "text or json", Default: "text"},
	}
}

func sessionVariables() []Variable {
	return []Variable{
		{Name: "CLAUDEOPS_REPOS_DIR", Meaning: "folder of mounted working copies", Default: DefaultReposDir, Server: true},
		{Name: "CLAUDEOPS_UPDATE_REPOS", Meaning: "whether a session brings clean working copies up to date before it begins",
			Values: "true or false; anything else is true", Default: "true"},
		{Name: "CLAUDEOPS_MOUNTED_MCP", Meaning: "MCP servers that mounted repositories may bring",
			Values: "off, http or all", Default: "off"},
		{Name: "CLAUDEOPS_MOUNTED_ENV", Meaning: "variables that those servers may have expanded",
			Values: "names, separated by commas"},
		{Name: "CLAUDEOPS_MAX_TIER", Meaning: "highest tier of a session",
			Values: "1, 2 or 3; unset means CLAUDEOPS_TIER, anything else is 1"},
		{Name: "CLAUDEOPS_SESSION_TOOLSETS", Meaning: "toolsets that agents of sessions get", Values: "as CLAUDEOPS_TOOLSETS",
			Default: "pr"},
		{Name: "CLAUDEOPS_INTERVAL", Meaning: "when serve starts a session of tier 1",
			Values: "1m to 168h, or a cron expression with a time zone; ~10m after it delays each start by up to that; unset " +
				"or 0 is never"},
		{Name: "ANTHROPIC_API_KEY", Meaning: "the agent's own credential: a key of the API", Secret: true},
		{Name: "ANTHROPIC_AUTH_TOKEN", Meaning: "the agent's own credential: a token for a gateway", Secret: true},
		{Name: "CLAUDE_CODE_OAUTH_TOKEN", Meaning: "the agent's own credential: what claude setup-token prints",
			Secret: true},
		{Name: "CLAUDEOPS_CLAUDE_BIN", Meaning: "the Claude CLI: a path, or a name that is looked for in PATH",
			Default: DefaultClaude},
		{Name: "CLAUDEOPS_PROMPTS_DIR", Meaning: "folder of the tiers' prompts; unset means those of the binary"},
		{Name: "CLAUDEOPS_TIER1_MODEL", Meaning: "model of tier 1", Default: "haiku"},
		{Name: "CLAUDEOPS_TIER2_MODEL", Meaning: "model of tier 2", Default: "sonnet"},
		{Name: "CLAUDEOPS_TIER3_MODEL", Meaning: "model of tier 3", Default: "opus"},
		{Name: "CLAUDEOPS_SESSION_TIMEOUT", Meaning: "how long a session may take", Values: "a time of at most 24h",
			Default: "30m"},
		{Name: "CLAUDEOPS_MAX_TURNS", Meaning: "how many turns a session may take", Values: "1 to 10000", Default: "60"},
		{Name: "CLAUDEOPS_MAX_COST_USD", Meaning: "what a session may cost, in US dollars",
			Values: "more than 0, at most 10000; none lifts every limit; unset means 2 for sessions that start by themselves, " +
				"else no limit"},
		{Name: "CLAUDEOPS_AGENT_TOOLS", Meaning: "permissions for agents, beside those of their tier",
			Values: "such as Bash(df *) or 3:Bash(systemctl restart *), separated by commas"},
		{Name: "CLAUDEOPS_AGENT_ENV", Meaning: "further variables that agents get",
			Values: "names, separated by commas; none of our own"},
	}
}
