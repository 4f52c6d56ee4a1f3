package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/settings/mcpconfig"
)

func TestMountedRepositoriesContributeNothingUnlessTheOperatorClearlySaysSo(t *testing.T) {
	for value, want := range map[string]struct {
		mode  mcpconfig.Mode
		warns bool
	}{
		"": {mcpconfig.Off, false}, "off": {mcpconfig.Off, false}, "http": {mcpconfig.HTTP, false},
		"All":                      {mcpconfig.All, false},
		"${CLAUDEOPS_MOUNTED_MCP}": {mcpconfig.Off, false}, "true": {mcpconfig.Off, true}, "stdio": {mcpconfig.Off, true},
	} {
		c := load(map[string]string{"CLAUDEOPS_MOUNTED_MCP": value})
		if c.Mounted.MCP != want.mode || (len(c.Warnings) > 0) != want.warns {
			t.Errorf("%q: %q, warnings %q", value, c.Mounted.MCP, c.Warnings)
		}
	}
}

func TestNoVariableOfOursCanBeAdmittedToMountedRepositories(t *testing.T) {
	c := load(map[string]string{
		"CLAUDEOPS_MOUNTED_ENV": "GRAFANA_TOKEN, GITHUB_TOKEN " +
			"gitea_token,CLAUDEOPS_MARK_KEY,ANTHROPIC_API_KEY,CLAUDE_CODE_OAUTH_TOKEN,A-B,_x1",
	})
	if !slices.Equal(c.Mounted.Env, []string{"GRAFANA_TOKEN", "_x1"}) || len(c.Warnings) != 6 ||
		!strings.Contains(c.Warnings[0], "GITHUB_TOKEN") {
		t.Errorf("got %q, warnings %q", c.Mounted.Env, c.Warnings)
	}
}
