package app

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/procedures/scripts"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/processtree"
	"github.com/claudeops/claudeops/internal/system/sandbox"
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

// confineScripts keeps scripts from what is Claude Ops' own by rules of Landlock. They read what the user may read
// besides, change the paths that they are given alone, look into no process outside and signal none.
func confineScripts(cfg config.Config) func(processtree.Command, processtree.Options, []string) (processtree.Command,
	processtree.Options, error) {
	return func(c processtree.Command, o processtree.Options, write []string) (processtree.Command, processtree.Options,
		error) {
		boundary := scriptBoundary()
		if boundary.Kind != sandbox.Landlock {
			return c, o, scripts.ErrNoBoundary
		}
		profile := sandbox.Profile{
			Boundary: boundary, Read: []string{"/"}, Write: append(besideHome(cfg, write), "/dev/shm"), Devices: usualDevices(),
			Hidden: hiddenFromAgents(cfg), Modes: true,
		}
		profile.Sockets = profile.Write
		o = profile.Options(o)
		c, err := profile.Wrap(c)
		return c, o, err
	}
}

// scriptBoundary returns what Landlock offers for scripts on this machine. The users of agents play no part in it.
func scriptBoundary() sandbox.Boundary {
	m := sandbox.ThisMachine()
	m.Accounts = func(string) ([]sandbox.Account, error) { return nil, sandbox.ErrNoAccount }
	boundary, _, err := sandbox.Decide(sandbox.Choice{Kind: sandbox.Landlock}, m)
	if err != nil {
		return sandbox.Boundary{Kind: sandbox.None}
	}
	boundary.Missing = slices.DeleteFunc(boundary.Missing,
		func(what string) bool { return strings.HasPrefix(what, "agents run as root") })
	return boundary
}

// usualDevices returns the devices that every program may use.
func usualDevices() []string {
	return []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx",
		"/dev/pts"}
}

// besideHome resolves paths that begin with ~ to the user's home.
func besideHome(cfg config.Config, paths []string) (out []string) {
	for _, path := range paths {
		if rest, below := strings.CutPrefix(path, "~"); below {
			path = filepath.Join(cfg.Tools.Deploy.Home, rest)
		}
		out = append(out, path)
	}
	return out
}

// usesScripts reports whether this process or its sessions offer scripts.
func usesScripts(cfg config.Config) bool {
	return slices.Contains(cfg.Sessions.Toolsets, scripts.ToolsetName) ||
		slices.Contains(cfg.Permissions.Toolsets, scripts.ToolsetName)
}

// scriptFinding is doctor's finding about the boundary between scripts and our files.
func scriptFinding(a *App, cfg config.Config) doctor.Finding {
	f := doctor.Finding{Name: "scripts' boundary", Status: doctor.Warning}
	settings, err := ScriptSettings(a)
	boundary := scriptBoundary()
	const open = "scripts can read and change records, secrets and rules of claudeops, and as root read its environment"
	switch {
	case err != nil:
		f.Detail = "CLAUDEOPS_SCRIPTS cannot be used, so that no script is offered: " + err.Error()
	case settings.Boundary == scripts.BoundaryNone:
		f.Detail = "none, as the settings of scripts say; " + open + "; leave out boundary: none"
	case boundary.Kind != sandbox.Landlock && settings.Boundary == scripts.BoundaryLandlock:
		f.Detail = "landlock, as the settings of scripts say, which this system does not have (Linux 5.13 or newer); no " +
			"script can run"
	case boundary.Kind != sandbox.Landlock:
		f.Detail = "none, since this system has no Landlock (Linux 5.13 or newer); " + open
	default:
		writes := besideHome(cfg, append([]string{settings.WorkingDir}, settings.Write...))
		f.Detail = boundary.String() + "; scripts may change " + strings.Join(writes, ", ") +
			" and a temporary folder of their own"
		split := ownFilesIn(writes, hiddenFromAgents(cfg))
		if len(split) > 0 {
			f.Detail += fmt.Sprintf(
				"; files that are claudeops' own lie there (%s), so that scripts can make no file directly beside them: put them elsewhere", strings.Join(split, ", "))
		}
		if len(boundary.Missing) == 0 && len(split) == 0 {
			f.Status = "ok"
		}
	}
	return f
}

// ownFilesIn returns the paths of ours that lie in folders that scripts may change, or hold one.
func ownFilesIn(folders, own []string) (out []string) {
	for _, path := range own {
		if slices.ContainsFunc(folders, func(folder string) bool {
			in, inErr := filepath.Rel(resolvedPath(folder), resolvedPath(path))
			on, onErr := filepath.Rel(resolvedPath(path), resolvedPath(folder))
			return inErr == nil && filepath.IsLocal(in) || onErr == nil && filepath.IsLocal(on)
		}) {
			out = append(out, path)
		}
	}
	return out
}
