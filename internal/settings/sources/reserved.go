package sources

import (
	"slices"
	"strings"
)

// Reserved reports whether a variable of the environment holds or may hold a secret of Claude Ops, of a forge or of the
// model: it is never sent to a registry, even if a source names it. Letter case does not count, as on Windows.
func Reserved(variable string) bool {
	name := strings.ToUpper(variable)
	prefixed := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	return slices.ContainsFunc([]string{
		"CLAUDEOPS_", "ANTHROPIC_", "CLAUDE_", "GITHUB_", "GH_", "GITEA_", "FORGEJO_", "AWS_", "GOOGLE_", "AZURE_", "OPENAI_",
		"SSH_",
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", // their addresses may hold a password
		"FRACTARY_REGISTRY_TOKEN_FILE",
	}, prefixed) || slices.Contains([]string{"PGPASSWORD", "DATABASE_URL"}, name)
}
