package config

import (
	"slices"

	"github.com/claudeops/claudeops/internal/gitprovider/driver"
)

// Variable is one variable that the product reads.
type Variable = driver.Variable

// Variables lists every variable that the product reads. The variables of the system (HOME, USER, XDG_STATE_HOME), and
// CLAUDEOPS_SESSION, which sessions set themselves, are not among them. drivers are the forges that there are.
func Variables(drivers []driver.Driver) []Variable {
	return slices.Concat(permissionVariables(), forgeVariables(drivers), recordVariables(), webVariables(), sessionVariables(), definitionVariables(), deployVariables(), scriptVariables())
}

// ServerVariables lists the variables that .claude/mcp.json and `claudeops mcp-config` pass on to the MCP server, those
// that name the file of a secret too. With its default there, a missing variable never reaches the server as a literal
// placeholder; an empty value counts as unset.
func ServerVariables(drivers []driver.Driver) (out []Variable) {
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

func permissionVariables() []Variable {
	return []Variable{
		{Name: "CLAUDEOPS_TIER", Meaning: "permission tier: 1, 2 or 3", Default: "1", Server: true},
		{Name: "CLAUDEOPS_DRY_RUN", Meaning: "check everything, write nothing", Default: "false", Server: true},
		{Name: "CLAUDEOPS_READ_ONLY", Meaning: "refuse every proposal", Default: "false", Server: true},
		{Name: "CLAUDEOPS_REPOS", Meaning: "allowlist of repositories; unset means every one", Server: true},
		{Name: "CLAUDEOPS_POLICY", Meaning: "policy file (YAML); unset means the embedded policy", Server: true},
		{Name: "CLAUDEOPS_TOOLSETS", Meaning: "toolsets that are enabled: pr, definitions, deploy, scripts, packages", Default: "pr"},
		{Name: "CLAUDEOPS_ALLOW_WRITE", Meaning: "true lets tools of other toolsets than pr write; unset means false"},
	}
}

func forgeVariables(drivers []driver.Driver) []Variable {
	var out, hooks []Variable
	for _, d := range drivers {
		out = append(out, d.Variables...)
		hooks = append(hooks, d.HookVariable())
	}
	return append(append(out, hooks...), []Variable{
		{Name: "CLAUDEOPS_CA_FILE", Meaning: "PEM certificates to trust beside the system's", Server: true},
		{Name: "CLAUDEOPS_FORGE_PLAIN_HTTP", Meaning: "true lets tokens go over plain http to other machines; unset means false", Server: true},
		{Name: "CLAUDEOPS_LOCAL_ROOT", Meaning: "folder of local repositories, as owner/name or owner/name.git", Server: true},
		{Name: "CLAUDEOPS_DEFAULT_PROVIDER", Meaning: "provider of repositories that nothing else settles", Server: true},
		{Name: "CLAUDEOPS_POLL_INTERVAL", Meaning: "how often serve looks at open pull requests; 0 is never", Default: "5m"},
	}...)
}

func recordVariables() []Variable {
	return []Variable{
		{Name: "CLAUDEOPS_STATE_DIR", Meaning: "folder of the records", Server: true},
		{Name: "CLAUDEOPS_DATABASE_URL", Meaning: "records in PostgreSQL instead of SQLite in the state folder", Secret: true, Server: true},
		{Name: "CLAUDEOPS_MARK_KEY", Meaning: "key of the marks, 64 hexadecimal digits, when machines share a database", Secret: true, Server: true},
		{Name: "CLAUDEOPS_RETENTION", Meaning: "age, such as 90d, at which contents are removed; unset means never"},
		{Name: "CLAUDEOPS_APPRISE_URLS", Meaning: "where Apprise sends notifications", Secret: true, Server: true},
		{Name: "CLAUDEOPS_WEBHOOK_URL", Meaning: "where notifications are posted", Secret: true, Server: true},
		{Name: "CLAUDEOPS_WEBHOOK_SECRET", Meaning: "key of the webhook's signature", Secret: true, Server: true},
		{Name: "CLAUDEOPS_NOTIFY_PLAIN_HTTP", Meaning: "true lets notifications go over plain http to other machines; unset means false", Server: true},
	}
}

func webVariables() []Variable {
	return []Variable{
		{Name: "CLAUDEOPS_ADDR", Meaning: "where serve listens, as host:port", Default: DefaultAddr},
		{Name: "CLAUDEOPS_API_TOKENS", Meaning: "tokens of REST, 16 characters or more each, separated by commas", Secret: true},
		{Name: "CLAUDEOPS_HOSTS", Meaning: "names that Host may have beside loopback's and the address's"},
		{Name: "CLAUDEOPS_BASE_PATH", Meaning: "path below which everything is served, such as /ops"},
		{Name: "CLAUDEOPS_TRUSTED_PROXIES", Meaning: "networks whose forwarded headers are believed"},
		{Name: "CLAUDEOPS_PROXY_USER_HEADER", Meaning: "header in which a trusted proxy names the user"},
		{Name: "CLAUDEOPS_ANONYMOUS_READ", Meaning: "true lets programs on this machine read without a token; on loopback alone", Default: "false"},
		{Name: "CLAUDEOPS_LOG_FORMAT", Meaning: "json for the log of serve as JSON", Default: "text"},
	}
}

func sessionVariables() []Variable {
	return []Variable{
		{Name: "CLAUDEOPS_REPOS_DIR", Meaning: "folder of mounted working copies", Default: DefaultReposDir, Server: true},
		{Name: "CLAUDEOPS_MOUNTED_MCP", Meaning: "MCP servers of mounted repositories: off, http or all", Default: "off"},
		{Name: "CLAUDEOPS_MOUNTED_ENV", Meaning: "variables that those may have expanded"},
		{Name: "CLAUDEOPS_MAX_TIER", Meaning: "highest tier of a session; unset means CLAUDEOPS_TIER"},
		{Name: "CLAUDEOPS_SESSION_TOOLSETS", Meaning: "toolsets that agents of sessions get", Default: "pr"},
		{Name: "CLAUDEOPS_INTERVAL", Meaning: "how often serve starts a session of tier 1; unset or 0 is never"},
		{Name: "ANTHROPIC_API_KEY", Meaning: "the agent's own credential: a key of the API", Secret: true},
		{Name: "ANTHROPIC_AUTH_TOKEN", Meaning: "the agent's own credential: a token for a gateway", Secret: true},
		{Name: "CLAUDE_CODE_OAUTH_TOKEN", Meaning: "the agent's own credential: what claude setup-token prints", Secret: true},
		{Name: "CLAUDEOPS_CLAUDE_BIN", Meaning: "the Claude CLI", Default: DefaultClaude},
		{Name: "CLAUDEOPS_PROMPTS_DIR", Meaning: "folder of the tiers' prompts; unset means those of the binary"},
		{Name: "CLAUDEOPS_TIER1_MODEL", Meaning: "model of tier 1", Default: "haiku"},
		{Name: "CLAUDEOPS_TIER2_MODEL", Meaning: "model of tier 2", Default: "sonnet"},
		{Name: "CLAUDEOPS_TIER3_MODEL", Meaning: "model of tier 3", Default: "opus"},
		{Name: "CLAUDEOPS_SESSION_TIMEOUT", Meaning: "how long a session may take", Default: "30m"},
		{Name: "CLAUDEOPS_MAX_TURNS", Meaning: "how many turns a session may take", Default: "60"},
		{Name: "CLAUDEOPS_MAX_COST_USD", Meaning: "what a session may cost, or none; unset means 2 if it starts by itself, else no limit"},
		{Name: "CLAUDEOPS_AGENT_TOOLS", Meaning: "permissions for agents, such as Bash(df *)"},
		{Name: "CLAUDEOPS_AGENT_ENV", Meaning: "further variables that agents get"},
	}
}
