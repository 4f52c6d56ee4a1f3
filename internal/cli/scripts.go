package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/procedures/scripts"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/processtree"
)

// maxScriptSettings bounds the settings of scripts, in bytes.
const maxScriptSettings = 1 << 20

func newScripts(a *app, p *parts) *scripts.Service {
	settings, err := scriptSettings(a)
	problem := ""
	if err != nil {
		problem = "No script is offered, since CLAUDEOPS_SCRIPTS cannot be used: " + p.scanner.Redact(err.Error())
		p.log.Error(problem)
	}
	return scripts.NewService(scripts.Options{
		Settings: settings, Problem: problem, Records: p.store.ScriptRuns(), Log: p.log, Now: time.Now,
		Machine: scripts.Machine{
			Confine: confineScripts(p.cfg),
			Look:    processtree.Find, Redact: p.scanner.Redact, NewID: newID,
			Variable: func(name string) (string, bool) { return config.ScriptVariable(a.lookup, p.cfg, name) },
		},
	})
}

// scriptSettings reads CLAUDEOPS_SCRIPTS: a file, or the text of one. Settings that cannot be used are those without scripts.
func scriptSettings(a *app) (scripts.Settings, error) {
	folder, err := workingFolder(a)
	if err != nil {
		return scripts.DefaultSettings(""), fmt.Errorf("the working folder is unknown: %w", err)
	}
	given := config.ScriptSettings(a.environment)
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

// settingsOr are the settings, or those that a Service can be made with all the same.
func settingsOr(s scripts.Settings, err error) (scripts.Settings, error) {
	if err != nil {
		return scripts.DefaultSettings(""), err
	}
	return s, nil
}

// leastTier is the lowest tier that the policy gives a script.
func leastTier(p policy.Policy) func(tool string) int {
	return func(tool string) int { return int(p.LeastTier(tool)) }
}

// allTiers is above every tier: what is for people names the scripts of all.
const allTiers = 99

// scriptAdvice is what an agent's instructions should say of the scripts that the server offers; "" if it offers none. problem says why.
func scriptAdvice(a *app, cfg config.Config) (advice, problem string) {
	if !slices.Contains(cfg.Permissions.Toolsets, scripts.ToolsetName) {
		return "", "CLAUDEOPS_TOOLSETS does not name " + scripts.ToolsetName
	}
	settings, err := scriptSettings(a)
	if err != nil {
		return "", "CLAUDEOPS_SCRIPTS cannot be used: " + err.Error()
	}
	listing := scripts.List(settings)
	return listing.Advice(ourName, allTiers, func(string) int { return 0 }), listing.Empty()
}
