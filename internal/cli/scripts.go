package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/confine"
	"github.com/claudeops/claudeops/internal/policy"
	"github.com/claudeops/claudeops/internal/processtree"
	"github.com/claudeops/claudeops/internal/scripts"
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
			Look:    exec.LookPath, Redact: p.scanner.Redact, NewID: newID,
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
	info, err := os.Stat(given)
	if err == nil && (info.Size() > maxScriptSettings || !info.Mode().IsRegular()) {
		err = fmt.Errorf("%s is no file of at most %d bytes", given, maxScriptSettings)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(given) //nolint:gosec // the operator names it
	}
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

// confineScripts keeps scripts from the records, from local repositories and from secrets, by rules of Landlock: the user's rights are theirs
// otherwise, since scripts are the operator's own. They look into no process outside and signal none.
func confineScripts(cfg config.Config) func(processtree.Command, processtree.Options) (processtree.Command, processtree.Options, error) {
	return func(c processtree.Command, o processtree.Options) (processtree.Command, processtree.Options, error) {
		boundary, _, err := confine.Decide(confine.Choice{Kind: confine.Landlock}, confine.ThisMachine())
		if err != nil {
			return c, o, errors.New("this system cannot keep it: it needs Landlock (Linux 5.13 or newer)")
		}
		hidden := []string{"/run/secrets"}
		for _, path := range []string{cfg.Records.Dir, cfg.Forges.LocalRoot} {
			if path != "" {
				hidden = append(hidden, resolvedPath(path))
			}
		}
		profile := confine.Profile{
			Boundary: boundary, Read: []string{"/"}, Write: []string{"/"}, Devices: []string{"/dev"}, Hidden: hidden,
		}
		o = profile.Options(o)
		c, err = profile.Wrap(c)
		return c, o, err
	}
}
