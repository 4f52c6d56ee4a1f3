package app

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/procedures/scripts"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/processtree"
)

// maxScriptSettings bounds the settings of scripts, in bytes.
const maxScriptSettings = 1 << 20

func newScripts(a *App, p *Parts) *scripts.Service {
	settings, err := ScriptSettings(a)
	problem := ""
	if err != nil {
		problem = "No script is offered, since CLAUDEOPS_SCRIPTS cannot be used: " + p.Scanner.Redact(err.Error())
		p.Log.Error(problem)
	}
	return scripts.NewService(scripts.Options{
		Settings: settings, Problem: problem, Records: p.Store.ScriptRuns(), Log: p.Log, Now: p.Store.Now,
		Machine: scripts.Machine{
			Confine: confineScripts(p.Cfg),
			Look:    processtree.Find, Redact: p.Scanner.Redact, NewID: NewID,
			Variable: func(name string) (string, bool) { return config.ScriptVariable(a.Options().Lookup, p.Cfg, name) },
		},
	})
}

// ScriptSettings reads CLAUDEOPS_SCRIPTS: a file, or the text of one. Settings that cannot be used are those without
// scripts.
func ScriptSettings(a *App) (scripts.Settings, error) {
	folder, err := WorkingFolder(a)
	if err != nil {
		return scripts.DefaultSettings(""), fmt.Errorf("the working folder is unknown: %w", err)
	}
	given := config.ScriptSettings(a.Options().Environment)
	switch {
	case given == "":
		return scripts.DefaultSettings(folder), nil
	case strings.ContainsAny(given, "{\n"):
		return settingsOr(scripts.ParseSettings([]byte(given), folder))
	}
	text, _, err := files.ReadPath(given, maxScriptSettings)
	if err != nil {
		return scripts.DefaultSettings(folder), err
	}
	return settingsOr(scripts.ParseSettings(text, folder))
}

// settingsOr returns the settings, or those that a Service can be made with all the same.
func settingsOr(s scripts.Settings, err error) (scripts.Settings, error) {
	if err != nil {
		return scripts.DefaultSettings(""), err
	}
	return s, nil
}

// leastTier returns the lowest tier that the policy gives a script.
func leastTier(p policy.Policy) func(tool string) int {
	return func(tool string) int { return int(p.LeastTier(tool)) }
}

// allTiers is above every tier: what is for people names the scripts of all.
const allTiers = 99

// ScriptAdvice returns advice for an agent's instructions about the scripts that the server offers; "" if it offers
// none, and problem then says why.
func ScriptAdvice(a *App, cfg config.Config) (advice, problem string) {
	if !slices.Contains(cfg.Permissions.Toolsets, scripts.ToolsetName) {
		return "", "CLAUDEOPS_TOOLSETS does not name " + scripts.ToolsetName
	}
	settings, err := ScriptSettings(a)
	if err != nil {
		return "", "CLAUDEOPS_SCRIPTS cannot be used: " + err.Error()
	}
	listing := scripts.List(settings)
	return listing.Advice(OurName, allTiers, func(string) int { return 0 }), listing.Empty()
}
