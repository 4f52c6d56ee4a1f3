package config

import (
	"log/slog"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/settings/mcpconfig"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/settings/sources"
	"github.com/claudeops/claudeops/internal/system/files"
)

// Deploy says where procedures are deployed, in the terms of agentpack.
type Deploy struct {
	AgentpackHome string // "" for .agentpack of the user's home
	CodexHome     string // "" for .codex of the user's home
	Home          string // the user's, absolute; "" for none
	Machine       string // what overlays call this machine; "" for its host name
	AfterMerge    bool   // serve deploys what was merged
	// GitCredentials is a file with what git signs in with at the addresses of procedures, in the form of git's credential
	// store; "" for none.
	GitCredentials string
	// repositories that the configuration comes from, as owner/name or provider:owner/name; none for the one of the
	// checkout
	Repos []string
}

func deploySettings(e *env) Deploy {
	d := Deploy{AgentpackHome: e.get("AGENTPACK_HOME"), CodexHome: e.get("CODEX_HOME"),
		Machine: e.get("AGENTPACK_MACHINE_ID")}
	d.AfterMerge, d.Repos = e.permission("CLAUDEOPS_DEPLOY_AFTER_MERGE"), splitList(e.get("CLAUDEOPS_DEPLOY_REPOS"))
	if d.GitCredentials = e.get("CLAUDEOPS_DEPLOY_GIT_CREDENTIALS"); d.GitCredentials != "" &&
		!filepath.IsAbs(d.GitCredentials) {
		e.warn("CLAUDEOPS_DEPLOY_GIT_CREDENTIALS is %s, which is not an absolute path: it counts as unset",
			quoteShort(d.GitCredentials))
		d.GitCredentials = ""
	}
	if d.GitCredentials != "" {
		text, _ := files.ReadSecret(d.GitCredentials) // git's commands say that it cannot be read
		e.rememberWhole(files.SecretsInAddresses(text)...)
	}
	for _, name := range d.Repos {
		if pattern, err := policy.ParseRepoPattern(name); err != nil ||
			strings.ContainsAny(pattern.Owner+pattern.Name, "*?[{") {
			e.warn("CLAUDEOPS_DEPLOY_REPOS has %s, which is neither owner/name nor provider:owner/name, and names no repository",
				quoteShort(name))
		}
	}
	d.Home = FoldersOf(e.lookup).Home()
	return d
}

func deployVariables() []Variable {
	return []Variable{
		{Name: "AGENTPACK_HOME", Meaning: "home of deployments: repo, cache, state; unset means ~/.agentpack"},
		{Name: "CODEX_HOME", Meaning: "folder of Codex; unset means ~/.codex"},
		{Name: "AGENTPACK_MACHINE_ID", Meaning: "what overlays call this machine; unset means its host name"},
		{Name: "CLAUDEOPS_DEPLOY_AFTER_MERGE", Meaning: "true lets serve deploy what was merged; unset means false",
			Default: "false"},
		{Name: "CLAUDEOPS_DEPLOY_REPOS",
			Meaning: "repositories that AGENTPACK_HOME/repo comes from; unset means the one that it was cloned from"},
		{
			Name: "CLAUDEOPS_DEPLOY_GIT_CREDENTIALS",
			Meaning: "file with a line https://USER:TOKEN@HOST for each host of private procedures, which its owner alone may " +
				"read; unset means that git signs in nowhere",
		},
	}
}

// Definitions says where definitions of agents and tools are looked for, in the terms of Fractary Forge.
type Definitions struct {
	ConfigFile string // "" to look in home, and for what narrows it in the project
	CacheDir   string // "" for the configuration's or the default
	Home       string // the user's, absolute; "" for none
	Token      string // of registries of type stockyard that name no variable
	// LogLevel is the lowest level that mcp-server and serve log where the toolset is enabled; default slog.LevelInfo.
	LogLevel slog.Level
}

func definitions(e *env) Definitions {
	d := Definitions{ConfigFile: e.get("FRACTARY_CONFIG"), CacheDir: e.get("FRACTARY_CACHE_DIR"),
		Token: e.secret("FRACTARY_REGISTRY_TOKEN")}
	d.Home = FoldersOf(e.lookup).Home()
	switch level := e.get("FRACTARY_LOG_LEVEL"); strings.ToLower(level) {
	case "", "info":
	case "debug":
		d.LogLevel = slog.LevelDebug
	case "warn", "warning":
		d.LogLevel = slog.LevelWarn
	case "error":
		d.LogLevel = slog.LevelError
	default:
		e.warn("FRACTARY_LOG_LEVEL is debug, info, warn or error, not %.20q; info is used", level)
	}
	return d
}

// RegistryToken reads the variable that the operator's configuration of a registry names, by the rules for all
// variables; "" for one that sources.Reserved keeps from registries.
func RegistryToken(lookup func(string) (string, bool), name string) string {
	if sources.Reserved(name) {
		return ""
	}
	e := env{lookup: lookup}
	return e.variableOrFile(name)
}

func definitionVariables() []Variable {
	return []Variable{
		{Name: "FRACTARY_CONFIG",
			Meaning: "the operator's configuration of definitions, outside of projects; unset means ~/.fractary/config.json, " +
				"of which a project's may choose"},
		{Name: "FRACTARY_CACHE_DIR",
			Meaning: "cache of registries, a folder outside of projects; unset means ~/.fractary/cache"},
		{Name: "FRACTARY_LOG_LEVEL",
			Meaning: "debug, info, warn or error: what mcp-server and serve log where the toolset definitions is enabled",
			Default: "info"},
		{Name: "FRACTARY_REGISTRY_TOKEN", Meaning: "token of registries of type stockyard in the operator's configuration",
			Secret: true},
	}
}

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
		return slices.ContainsFunc(append([]forge.Variable{f.Driver.HookVariable()}, f.Driver.Variables...),
			func(v forge.Variable) bool { return v.Secret && v.Name == base })
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
		e.warn("CLAUDEOPS_MOUNTED_MCP is %s, which is neither off, http nor all: off holds", quoteShort(raw))
	}
	m := Mounted{Dir: e.get("CLAUDEOPS_REPOS_DIR"), MCP: mode,
		Update: e.get("CLAUDEOPS_UPDATE_REPOS") == "" || e.boolean("CLAUDEOPS_UPDATE_REPOS")}
	if m.Dir == "" {
		m.Dir = DefaultReposDir
	}
	for _, name := range splitList(e.get("CLAUDEOPS_MOUNTED_ENV")) {
		switch {
		case !isVariable(name):
			e.warn("CLAUDEOPS_MOUNTED_ENV holds %s, which is not a valid variable name: it is passed over", quoteShort(name))
		case mcpconfig.IsOurs(name, forge.Prefixes(e.drivers)):
			e.warn("CLAUDEOPS_MOUNTED_ENV names %s, which no mounted repository may have: it is passed over", name)
		default:
			m.Env = append(m.Env, name)
		}
	}
	return m
}
