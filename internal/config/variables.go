package config

// Variable is one variable that the MCP server reads, with the default that a client's configuration gives it, so that a
// missing variable never reaches the server as a literal placeholder. An empty value counts as unset.
type Variable struct{ Name, Default string }

// ServerVariables lists the variables that `claudeops mcp-server` reads (design §4, Configuration), as
// .claude/mcp.json and `claudeops mcp-config` pass them on.
func ServerVariables() []Variable {
	out := []Variable{
		{"CLAUDEOPS_TIER", "1"}, {"CLAUDEOPS_DRY_RUN", "false"}, {"CLAUDEOPS_READ_ONLY", "false"},
		{"CLAUDEOPS_REPOS_DIR", DefaultReposDir},
	}
	for _, plain := range []string{
		"CLAUDEOPS_REPOS", "CLAUDEOPS_POLICY", "CLAUDEOPS_DEFAULT_PROVIDER", "CLAUDEOPS_LOCAL_ROOT",
		"CLAUDEOPS_STATE_DIR", "CLAUDEOPS_NOTIFY_PLAIN_HTTP", "GITHUB_API_URL", "GITHUB_APP_ID", "GITEA_URL",
		"CLAUDEOPS_FORGE_PLAIN_HTTP", "CLAUDEOPS_CA_FILE",
	} {
		out = append(out, Variable{plain, ""})
	}
	for _, secret := range []string{
		"GITHUB_TOKEN", "GITHUB_APP_PRIVATE_KEY", "GITEA_TOKEN", "CLAUDEOPS_DATABASE_URL", "CLAUDEOPS_MARK_KEY",
		"CLAUDEOPS_APPRISE_URLS", "CLAUDEOPS_WEBHOOK_URL", "CLAUDEOPS_WEBHOOK_SECRET",
	} {
		out = append(out, Variable{secret, ""}, Variable{secret + "_FILE", ""})
	}
	return out
}
