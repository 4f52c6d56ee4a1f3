package config

import (
	"github.com/claudeops/claudeops/internal/gitprovider/driver"
	"github.com/claudeops/claudeops/internal/settings/mcpconfig"
)

// DefaultReposDir is the default folder of mounted working copies.
const DefaultReposDir = "/repos"

// Mounted says where mounted repositories are, and what they may contribute to the agent's MCP configuration: nothing,
// unless the operator says so.
type Mounted struct {
	Dir string
	MCP mcpconfig.Mode
	Env []string // variables that a contribution may have expanded; none of ours
	// Update says that sessions bring the working copies up to date before they begin.
	Update bool
}

func (e *env) mounted() Mounted {
	raw := e.get("CLAUDEOPS_MOUNTED_MCP")
	mode, ok := mcpconfig.ParseMode(raw)
	if !ok {
		e.warn("CLAUDEOPS_MOUNTED_MCP is %s, which is neither off, http nor all: off holds", shown(raw))
	}
	m := Mounted{Dir: e.get("CLAUDEOPS_REPOS_DIR"), MCP: mode,
		Update: e.get("CLAUDEOPS_UPDATE_REPOS") == "" || e.boolean("CLAUDEOPS_UPDATE_REPOS")}
	if m.Dir == "" {
		m.Dir = DefaultReposDir
	}
	for _, name := range splitList(e.get("CLAUDEOPS_MOUNTED_ENV")) {
		switch {
		case !isVariable(name):
			e.warn("CLAUDEOPS_MOUNTED_ENV holds %s, which is no name of a variable: it is passed over", shown(name))
		case mcpconfig.IsOurs(name, driver.Prefixes(e.drivers)):
			e.warn("CLAUDEOPS_MOUNTED_ENV names %s, which no mounted repository may have: it is passed over", name)
		default:
			m.Env = append(m.Env, name)
		}
	}
	return m
}
