package cli

import (
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/sources"
)

// A forge that is added brings secrets, which neither scripts nor registries get.
func TestNoSecretOfOursIsForScriptsOrRegistries(t *testing.T) {
	t.Parallel()
	set := func(string) (string, bool) { return "/run/secrets/something", true }
	cfg := config.Load(config.Environment(func(string) (string, bool) { return "", false }), forges.All())
	for _, v := range config.Variables(forges.All()) {
		if !v.Secret {
			continue
		}
		for _, name := range []string{v.Name, v.Name + "_FILE"} {
			if _, seen := config.ScriptVariable(set, cfg, name); seen {
				t.Errorf("scripts see %s", name)
			}
			if name != "FRACTARY_REGISTRY_TOKEN" && !sources.Reserved(name) { // that one is for registries
				t.Errorf("a registry may be sent %s; sources.Reserved is to name it", name)
			}
		}
	}
}
