package app

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/procedures/definitions"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
	"github.com/claudeops/claudeops/internal/procedures/packages"
	"github.com/claudeops/claudeops/internal/procedures/scripts"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/proposals/review"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/web"
)

// tools holds the parts of the toolsets other than that of pull requests.
type tools struct {
	definitions func() *definitions.Service // made when it is first asked
	Deploy      func() *deploy.Service
	scripts     func() *scripts.Service  // made when it is first asked
	packages    func() *packages.Service // made when it is first asked
}

// toolsetMaker makes a toolset of the program.
type toolsetMaker struct {
	name string
	make func(*App) operation.Toolset
}

// toolsetMakers makes each toolset of the program, in the order in which they are listed.
func toolsetMakers() []toolsetMaker {
	kernel := func(a *App) func() *operation.Kernel {
		return func() *operation.Kernel { return a.Wire(Needs{}).kernel }
	}
	return []toolsetMaker{
		{prflow.ToolsetName, (*App).pullToolset},
		{definitions.ToolsetName, func(a *App) operation.Toolset {
			return definitions.Toolset(kernel(a), func() *definitions.Service { return a.Wire(Needs{}).Tools.definitions() })
		}},
		{deploy.ToolsetName, func(a *App) operation.Toolset {
			create := operation.Named(a.toolset(prflow.ToolsetName).Operations, prflow.ToolCreatePR)
			return deploy.Toolset(Version(), kernel(a), func() *deploy.Service { return a.Wire(Needs{}).Tools.Deploy() },
				proposer(create, a.providerOf))
		}},
		{scripts.ToolsetName, func(a *App) operation.Toolset {
			return scripts.Toolset(kernel(a), func() *scripts.Service { return a.Wire(Needs{}).Tools.scripts() })
		}},
		{packages.ToolsetName, func(a *App) operation.Toolset {
			return packages.Toolset(kernel(a), func() *packages.Service { return a.Wire(Needs{}).Tools.packages() })
		}},
	}
}

// pullToolset returns the operations on pull requests.
func (a *App) pullToolset() operation.Toolset {
	flow := func() *prflow.Service { return a.Wire(Needs{}).Flow }
	pulls := prflow.Toolset(flow)
	pulls.Resources = prflow.Resources(flow,
		func(ctx context.Context) []prflow.KnownFiles { return knownFiles(ctx, a.Wire(Needs{})) })
	desk := review.Operations{Service: func() *review.Service { return NewReviews(a.Wire(Needs{})) },
		ProviderOf: a.providerOf}
	pulls.Operations = append(pulls.Operations, desk.Operations()...)
	return pulls
}

func (a *App) providerOf(owner, name string) string {
	return a.Wire(Needs{}).Flow.Reader().ProviderOf(owner, name)
}

// toolset returns the toolset of the program with a name. It is made when it is first asked for: each connection of an
// agent has its own, and most have one of five. Making it touches nothing.
func (a *App) toolset(name string) operation.Toolset {
	a.toolsetsMade.Lock()
	set, made := a.toolsets[name]
	a.toolsetsMade.Unlock()
	if made {
		return set
	}
	makers := toolsetMakers()
	at := slices.IndexFunc(makers, func(m toolsetMaker) bool { return m.name == name })
	set = makers[at].make(a)
	a.toolsetsMade.Lock()
	defer a.toolsetsMade.Unlock()
	if a.toolsets == nil {
		a.toolsets = map[string]operation.Toolset{}
	}
	if first, made := a.toolsets[name]; made { // another caller was faster
		return first
	}
	a.toolsets[name] = set
	return set
}

// Toolsets returns all toolsets, independent of the protocol.
func (a *App) Toolsets() []operation.Toolset {
	return a.toolsetsIf(func(operation.Toolset) bool { return true }, func(string) bool { return true })
}

// EnabledToolsets returns the toolsets that the operator has named, or the one that --as has.
func (a *App) EnabledToolsets() []operation.Toolset {
	return a.toolsetsIf(func(operation.Toolset) bool { return a.Options().Only == "" }, a.enabled)
}

// toolsetsIf returns the toolsets of the program whose names are wanted, and those of Options.More of which added or
// wanted says so.
func (a *App) toolsetsIf(added func(operation.Toolset) bool, wanted func(name string) bool) (out []operation.Toolset) {
	for _, m := range toolsetMakers() {
		if wanted(m.name) {
			out = append(out, a.toolset(m.name))
		}
	}
	for _, set := range a.Options().More {
		if added(set) || wanted(set.Name) {
			out = append(out, set)
		}
	}
	return out
}

// WebToolsets returns the enabled ones for the HTTP server, with what their pages ask.
func WebToolsets(a *App) web.Toolsets {
	out := web.Toolsets{Operations: a.EnabledToolsets(), Findings: a.ToolsetFindings}
	if a.enabled(definitions.ToolsetName) {
		out.Pages.Definitions = a.Wire(Needs{}).Tools.definitions()
	}
	if a.enabled(packages.ToolsetName) {
		out.Pages.Packages = packages.NewBrowser(a.Wire(Needs{}).Tools.packages())
	}
	if a.enabled(scripts.ToolsetName) {
		out.Pages.Scripts = scripts.NewScriptPages(func() *operation.Kernel { return a.Wire(Needs{}).kernel },
			a.Wire(Needs{}).Tools.scripts)
	}
	if p := a.Wire(Needs{}); a.enabled(deploy.ToolsetName) {
		out.Pages.Deployments = NewDeployments(p)
		out.Pages.Propose = operation.Named(operation.List(out.Operations...), deploy.NamePropose)
	}
	return out
}

// enabled reports whether a toolset is switched on.
func (a *App) enabled(name string) bool {
	if a.Options().Only != "" {
		return name == a.Options().Only
	}
	return slices.Contains(a.Wire(Needs{}).Cfg.Permissions.Toolsets, name)
}

// unknownToolsets says what is wrong with CLAUDEOPS_TOOLSETS and CLAUDEOPS_SESSION_TOOLSETS, or "".
func (a *App) unknownToolsets() string {
	cfg, known := a.Wire(Needs{}).Cfg, a.toolsetNames()
	if problem := unknownNames("CLAUDEOPS_TOOLSETS", cfg.Permissions.Toolsets, known); problem != "" {
		return problem
	}
	return unknownNames("CLAUDEOPS_SESSION_TOOLSETS", cfg.Sessions.Toolsets, known)
}

// toolsetNames returns the names of all toolsets, none of which is made for that: a server starts with one or two.
func (a *App) toolsetNames() (names []string) {
	for _, m := range toolsetMakers() {
		names = append(names, m.name)
	}
	return append(names, ToolsetNames(a.Options().More)...)
}

func unknownNames(variable string, named, known []string) string {
	var unknown []string
	for _, name := range named {
		if !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return ""
	}
	return fmt.Sprintf("%s names toolsets that do not exist: %s; there are %s", variable, strings.Join(unknown, ", "),
		strings.Join(known, ", "))
}

// LogUnknownToolsets logs unknown names of toolsets, for servers, which start with those that they know.
func LogUnknownToolsets(ctx context.Context, a *App, p *Parts) {
	if problem := a.unknownToolsets(); problem != "" {
		p.Log.Error(problem)
	}
	for _, problem := range a.tierProblems(ctx) {
		p.Log.Warn(problem)
	}
}

// ToolsetNames returns the names of toolsets, in their order.
func ToolsetNames(sets []operation.Toolset) (names []string) {
	for _, set := range sets {
		names = append(names, set.Name)
	}
	return names
}

// ToolsetFindings returns doctor's findings about the toolsets.
func (a *App) ToolsetFindings(ctx context.Context) (out []doctor.Finding) {
	redact := a.Wire(Needs{}).Scanner.Redact
	if problem := a.unknownToolsets(); problem != "" {
		out = append(out, doctor.Finding{Name: "toolsets", Status: "problem", Detail: redact(problem)})
	}
	if _, err := a.Wire(Needs{}).AllowedSources().Load(); err != nil {
		out = append(out, doctor.Finding{Name: "sources", Status: "problem", Detail: redact(err.Error())})
	}
	if p := a.Wire(Needs{}); usesScripts(p.Cfg) {
		finding := scriptFinding(a, p.Cfg)
		finding.Detail = redact(finding.Detail)
		out = append(out, finding)
	}
	for _, problem := range a.tierProblems(ctx) {
		out = append(out, doctor.Finding{Name: "policy", Status: doctor.Warning, Detail: redact(problem)})
	}
	return out
}

func (a *App) newTools(p *Parts) tools {
	return tools{
		definitions: sync.OnceValue(func() *definitions.Service { return a.newDefinitions(p) }),
		Deploy:      sync.OnceValue(func() *deploy.Service { return newDeploy(a, p) }),
		scripts:     sync.OnceValue(func() *scripts.Service { return newScripts(a, p) }),
		packages:    sync.OnceValue(func() *packages.Service { return newPackages(a, p) }),
	}
}

// WorkingFolder returns the project of the toolsets: the folder that was asked for, or this process's own.
func WorkingFolder(a *App) (string, error) {
	if a.Options().Folder != "" {
		return a.Options().Folder, nil
	}
	return os.Getwd()
}

// projectFolder is WorkingFolder; "" if it is unknown.
func projectFolder(a *App, p *Parts) string {
	folder, err := WorkingFolder(a)
	if err != nil {
		p.Log.Warn("the working folder is unknown, so that no project is looked at", "error", err)
		return ""
	}
	return folder
}

func newPackages(a *App, p *Parts) *packages.Service {
	d := p.Cfg.Tools.Deploy
	below := func(named, name string) string {
		switch {
		case filepath.IsAbs(named):
			return filepath.Clean(named)
		case d.Home == "":
			return ""
		}
		return filepath.Join(d.Home, name)
	}
	return packages.NewService(packages.Settings{
		Project: projectFolder(a, p), Home: d.Home, CodexHome: below(d.CodexHome, ".codex"),
		State: below(d.AgentpackHome, ".agentpack"), Now: time.Now,
		Sources: p.sources,
	})
}

func (a *App) newDefinitions(p *Parts) *definitions.Service {
	d := p.Cfg.Tools.Definitions
	return definitions.NewService(definitions.Settings{
		ConfigFile: d.ConfigFile, CacheDir: d.CacheDir, Project: projectFolder(a, p), Home: d.Home, Now: time.Now,
		Sources: p.sources, Frozen: func() bool { return p.Rules.Now().nothingKept() != "" },
		Transport: transport.NewPool(http.ProxyFromEnvironment),
		Token:     func(name string) string { return a.registryToken(p, name) },
	})
}

// registryToken returns the token in a variable that a registry's configuration names. From now on it is kept out of
// every text.
func (a *App) registryToken(p *Parts, name string) string {
	token := config.RegistryToken(a.Options().Environment, name)
	if token != "" {
		p.Scanner.Learn(token)
	}
	return token
}

func newDeploy(a *App, p *Parts) *deploy.Service {
	folder, err := WorkingFolder(a)
	if err != nil {
		p.Log.Warn("the working folder is unknown, so that the project is the user's home", "error", err)
		folder = p.Cfg.Tools.Deploy.Home
	}
	d := p.Cfg.Tools.Deploy
	return deploy.NewService(deploy.Settings{
		Home: d.AgentpackHome, UserHome: d.Home, CodexHome: d.CodexHome, Folder: folder,
		Machine: append([]string{d.Machine}, deploy.MachineNames(a.Options().Environment, os.Hostname)...),
		Git: deploy.GitCommand{
			Env: deploy.GitEnvironment(a.Options().Environment), Credentials: d.GitCredentials,
			Token: func(name string) string { return a.registryToken(p, name) }, Reaped: true,
			Learn: func(secrets ...string) { p.Scanner.Learn(secrets...) },
		},
		Version: Version(), NoWriting: func() string { return p.Rules.Now().nothingKept() }, Repos: d.Repos,
		Now: time.Now, Sources: p.sources,
	})
}

// tierProblems says which entries of the policy's tools.tiers do nothing. Scripts are looked for only if a name is left
// that nothing else has.
func (a *App) tierProblems(ctx context.Context) (out []string) {
	rules := a.Wire(Needs{}).Rules.Now().Policy
	if len(rules.Agents.ToolTiers) == 0 {
		return nil
	}
	var unknown []string
	for _, t := range rules.Agents.ToolTiers {
		switch set := a.toolsetOf(ctx, t.Tool); set {
		case "":
			unknown = append(unknown, t.Tool)
		case "pr":
			out = append(out, fmt.Sprintf("tools.tiers in %s names %s, whose tiers are set under tiers; it does nothing there",
				rules.Source, t.Tool))
		}
	}
	if len(unknown) > 0 {
		out = append(out, fmt.Sprintf("tools.tiers in %s names tools that no enabled toolset has: %s", rules.Source,
			strings.Join(unknown, ", ")))
	}
	return out
}

// toolsetOf returns the toolset of a tool, or "". Tools that are found while the program runs count where their toolset
// is enabled.
func (a *App) toolsetOf(ctx context.Context, tool string) string {
	named := func(o operation.Operation) bool { return o.Name == tool }
	for _, set := range a.Toolsets() {
		if slices.ContainsFunc(set.Operations, func(o operation.Operation) bool { return named(o) && o.Tool.Title != "" }) ||
			set.Found != nil && a.enabled(set.Name) && slices.ContainsFunc(set.Found(ctx), named) {
			return set.Name
		}
	}
	return ""
}
