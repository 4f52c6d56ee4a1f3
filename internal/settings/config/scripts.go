package config

import (
	"regexp"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider/driver"
)

// ScriptSettings returns the file with the settings of scripts, or the settings themselves; "" for the defaults.
func ScriptSettings(lookup func(string) (string, bool)) string {
	e := env{lookup: lookup}
	return e.get("CLAUDEOPS_SCRIPTS")
}

// ScriptVariable returns the value of a variable of the environment as scripts see it. Those of this program, of the
// forges and of the model are never seen; nor are values that hold a secret of ours, under whatever name.
func ScriptVariable(lookup func(string) (string, bool), c Config, name string) (string, bool) {
	value, set := lookup(name)
	if !set || isPlaceholder(value) || !c.ScriptSees(name) {
		return "", false
	}
	holdsSecret := func(secret string) bool { return len(secret) >= minSecret && strings.Contains(value, secret) }
	return value, !slices.ContainsFunc(c.Secrets, holdsSecret)
}

// ScriptSees reports whether scripts may see a variable that their settings name, by its name: none of this program, of
// a forge that it knows, or of the model.
func (c Config) ScriptSees(name string) bool {
	name = strings.ToUpper(name)
	base := strings.TrimSuffix(name, "_FILE")
	return isVariable(name) && !secretNames().MatchString(name) && !slices.ContainsFunc(c.Forges.All, func(f Forge) bool {
		return slices.ContainsFunc(append([]driver.Variable{f.Driver.HookVariable()}, f.Driver.Variables...),
			func(v driver.Variable) bool { return v.Secret && v.Name == base })
	})
}

// secretNames matches the names of secrets of this program and of the model, and the names of tokens by which other
// programs know the forges.
func secretNames() *regexp.Regexp {
	return regexp.MustCompile(
		`^(CLAUDEOPS_.*|GITHUB_TOKEN|GH_TOKEN|GITEA_TOKEN|FORGEJO_TOKEN|FRACTARY_REGISTRY_TOKEN|ANTHROPIC_.*|CLAUDE_.*|AWS_.*(KEY|TOKEN|SECRET).*)(_FILE)?$`)
}

func scriptVariables() []Variable {
	return []Variable{{Name: "CLAUDEOPS_SCRIPTS",
		Meaning: "settings of scripts (a YAML or JSON file, or the text itself); unset means scripts/Agent of the working folder"}}
}
