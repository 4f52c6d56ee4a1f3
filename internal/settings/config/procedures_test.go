package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/mcpconfig"
	"github.com/claudeops/claudeops/internal/settings/sources"
)

// TestNoSecretOfOursIsARegistrysToken holds the one list of reserved variables against every secret that the program
// and its agents have.
func TestNoSecretOfOursIsARegistrysToken(t *testing.T) {
	names := config.AgentSecrets()
	for _, v := range config.Variables(forges.All()) {
		if v.Secret {
			names = append(names, v.Name)
		}
	}
	names = append(names, "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK",
		"GOOGLE_APPLICATION_CREDENTIALS", "CLAUDEOPS_DEPLOY_GIT_CREDENTIALS",
		"HTTP_PROXY", "https_proxy", "ALL_PROXY", "github_token")
	for _, name := range names {
		if name == "FRACTARY_REGISTRY_TOKEN" { // is for registries
			continue
		}
		for _, form := range []string{name, name + "_FILE"} {
			read := func(asked string) (string, bool) { return "s3cret", asked == form }
			if !sources.Reserved(form) || config.RegistryToken(read, form) != "" {
				t.Errorf("%s may be a registry's token", form)
			}
		}
	}
	if !slices.Contains(names, "GITEA_TOKEN") || config.RegistryToken(func(string) (string, bool) { return "x", true },
		"CORP_TOKEN") != "x" {
		t.Error("the test looks at too little")
	}
}

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
