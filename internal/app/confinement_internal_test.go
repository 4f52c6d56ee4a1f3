package app

import (
	"slices"
	"testing"

	"github.com/claudeops/claudeops/internal/settings/config"
)

// The environment file may hold the forge's token: it stays out of reach where an operator opens the folder that it is
// in to agents (CLAUDEOPS_AGENT_READ).
func TestTheEnvironmentFileIsHiddenFromAgents(t *testing.T) {
	const path = "/home/joe/.config/claudeops/environment"
	if hidden := hiddenFromAgents(config.Config{EnvironmentFile: path}); !slices.Contains(hidden, path) {
		t.Errorf("only %q are hidden", hidden)
	}
}
