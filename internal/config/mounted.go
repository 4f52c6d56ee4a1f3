package config

import (
	"regexp"

	"github.com/claudeops/claudeops/internal/mcpconfig"
)

// Mounted is what mounted repositories may contribute to the agent's MCP configuration: nothing, unless the operator
// says so.
type Mounted struct {
	MCP mcpconfig.Mode
	Env []string // variables that a contribution may have expanded; none of ours
}

func (e *env) mounted() Mounted {
	raw := e.get("CLAUDEOPS_MOUNTED_MCP")
	mode, ok := mcpconfig.ParseMode(raw)
	if !ok {
		e.warn("CLAUDEOPS_MOUNTED_MCP is %s, which is neither off, http nor all: off holds", shown(raw))
	}
	m := Mounted{MCP: mode}
	for _, name := range splitList(e.get("CLAUDEOPS_MOUNTED_ENV")) {
		switch {
		case !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(name):
			e.warn("CLAUDEOPS_MOUNTED_ENV holds %s, which is no name of a variable: it is passed over", shown(name))
		case mcpconfig.IsOurs(name):
			e.warn("CLAUDEOPS_MOUNTED_ENV names %s, which no mounted repository may have: it is passed over", name)
		default:
			m.Env = append(m.Env, name)
		}
	}
	return m
}

// AgentSecrets are the variables by which the agent itself signs in. Servers that mounted repositories bring do not get them.
func AgentSecrets() []string {
	return []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDEOPS_API_TOKENS", "CLAUDEOPS_API_TOKENS_FILE"}
}
