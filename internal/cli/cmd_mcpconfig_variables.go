package cli

import (
	"log/slog"
	"slices"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/procedures/definitions"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
	"github.com/claudeops/claudeops/internal/procedures/packages"
	"github.com/claudeops/claudeops/internal/procedures/scripts"
	"github.com/claudeops/claudeops/internal/settings/config"
)

// clientVariables returns the variables that the server started by the client reads: ours, and those that the
// operator's files name. A file that cannot be read is reported, and names nothing.
func clientVariables(a *commandLine) []config.Variable {
	cfg := config.Load(a.sources(), forges.All())
	out := config.ClientVariables(forges.All(), cfg.Permissions.Toolsets)
	add := func(name, meaning string) {
		if !slices.ContainsFunc(out, func(v config.Variable) bool { return v.Name == name }) {
			out = append(out, config.Variable{Name: name, Meaning: meaning, Secret: true}) // its value may be one
		}
	}
	for _, name := range sorted(namedTokens(a, cfg)) {
		add(name, "token that a file of the operator names")
		add(name+"_FILE", "file of "+name)
	}
	for _, name := range sorted(scriptVariables(a, cfg)) {
		add(name, "variable that scripts may see")
	}
	return out
}

func sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// namedTokens returns the variables that the operator's files name as token_env: of registries of definitions, and of
// sources.
func namedTokens(a *commandLine, cfg config.Config) (names []string) {
	uses := func(toolset string) bool { return slices.Contains(cfg.Permissions.Toolsets, toolset) }
	if uses(definitions.ToolsetName) {
		d := cfg.Tools.Definitions
		folder, err := app.WorkingFolder(a.program())
		if err != nil {
			folder = "" // of no project
		}
		named, err := definitions.TokenVariables(definitions.ConfigOptions{File: d.ConfigFile, Project: folder, Home: d.Home})
		if err != nil {
			a.streams.warn(
				"the registries of definitions cannot be read, so that the variables with their tokens are missing: %s", err)
		}
		names = append(names, named...)
	}
	if !uses(definitions.ToolsetName) && !uses(deploy.ToolsetName) && !uses(packages.ToolsetName) {
		return names
	}
	p := &app.Parts{Cfg: cfg, Rules: app.NewRules(a.freshSources, slog.New(slog.DiscardHandler))}
	allowed, err := p.AllowedSources().Load()
	if err != nil {
		a.streams.warn("%s; the variables with tokens of sources are missing", err)
	}
	for _, s := range slices.Concat(p.Rules.Now().Policy.Server.Sources, allowed) {
		if s.TokenEnv != "" {
			names = append(names, s.TokenEnv)
		}
	}
	return names
}

// scriptVariables returns the variables that the settings of scripts name, without those that no script sees.
func scriptVariables(a *commandLine, cfg config.Config) (names []string) {
	if !slices.Contains(cfg.Permissions.Toolsets, scripts.ToolsetName) {
		return nil
	}
	settings, err := app.ScriptSettings(a.program())
	if err != nil {
		return nil // which is said with the scripts
	}
	return slices.DeleteFunc(slices.Clone(settings.Env), func(name string) bool { return !cfg.ScriptSees(name) })
}
