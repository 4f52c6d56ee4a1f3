package cli

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

// tools is what the toolsets beside that of pull requests are made of.
type tools struct {
	definitions func() *definitions.Service // made when it is first asked
	deploy      func() *deploy.Service
	scripts     func() *scripts.Service  // made when it is first asked
	packages    func() *packages.Service // made when it is first asked
}

// toolsets is everything that can be asked, whatever the way in. Making it touches nothing.
func (a *app) toolsets() []operation.Toolset { return append(a.ownToolsets(), a.more...) }

func (a *app) ownToolsets() []operation.Toolset {
	kernel := func() *operation.Kernel { return a.wire(needs{}).kernel }
	flow := func() *prflow.Service { return a.wire(needs{}).flow }
	pulls := prflow.Toolset(flow)
	pulls.Resources = prflow.Resources(flow, func(ctx context.Context) []prflow.KnownFiles { return knownFiles(ctx, a.wire(needs{})) })
	desk := review.Desk{
		Service:    func() *review.Service { return newReviews(a.wire(needs{})) },
		ProviderOf: func(owner, name string) string { return a.wire(needs{}).flow.Reader().ProviderOf(owner, name) },
	}
	pulls.Operations = append(pulls.Operations, desk.Operations()...)
	return []operation.Toolset{
		pulls,
		definitions.Toolset(kernel, func() *definitions.Service { return a.wire(needs{}).tools.definitions() }),
		deploy.Toolset(version(), kernel, func() *deploy.Service { return a.wire(needs{}).tools.deploy() }),
		scripts.Toolset(kernel, func() *scripts.Service { return a.wire(needs{}).tools.scripts() }),
		packages.Toolset(kernel, func() *packages.Service { return a.wire(needs{}).tools.packages() }),
	}
}

// enabledToolsets is those of toolsets that the operator has named, or the one that --as has.
func (a *app) enabledToolsets() []operation.Toolset {
	return slices.DeleteFunc(a.toolsets(), func(set operation.Toolset) bool {
		added := slices.ContainsFunc(a.more, func(more operation.Toolset) bool { return more.Name == set.Name })
		return !a.enabled(set.Name) && (!added || a.only != "")
	})
}

// webToolsets is the enabled ones for the HTTP server, with what their pages ask.
func webToolsets(a *app) web.Toolsets {
	out := web.Toolsets{Operations: a.enabledToolsets()}
	if a.enabled(definitions.ToolsetName) {
		out.Pages.Definitions = a.wire(needs{}).tools.definitions()
	}
	if a.enabled(packages.ToolsetName) {
		out.Pages.Packages = packages.NewBrowser(a.wire(needs{}).tools.packages())
	}
	if a.enabled(scripts.ToolsetName) {
		out.Pages.Scripts = scripts.NewDesk(func() *operation.Kernel { return a.wire(needs{}).kernel }, a.wire(needs{}).tools.scripts)
	}
	if p := a.wire(needs{}); a.enabled(deploy.ToolsetName) {
		out.Pages.Deployments = &deployments{p.tools.deploy(), p}
	}
	return out
}

// enabled reports whether a toolset is switched on.
func (a *app) enabled(name string) bool {
	if a.only != "" {
		return name == a.only
	}
	return slices.Contains(a.wire(needs{}).cfg.Permissions.Toolsets, name)
}

// unknownToolsets says what is wrong with CLAUDEOPS_TOOLSETS and CLAUDEOPS_SESSION_TOOLSETS, or "".
func (a *app) unknownToolsets() string {
	cfg := a.wire(needs{}).cfg
	if problem := unknownNames("CLAUDEOPS_TOOLSETS", cfg.Permissions.Toolsets, toolsetNames(a.toolsets())); problem != "" {
		return problem
	}
	return unknownNames("CLAUDEOPS_SESSION_TOOLSETS", cfg.Sessions.Toolsets, toolsetNames(a.toolsets()))
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
	return fmt.Sprintf("%s names toolsets that do not exist: %s; there are %s", variable, strings.Join(unknown, ", "), strings.Join(known, ", "))
}

// logUnknownToolsets is for servers, which start with those that they know.
func logUnknownToolsets(ctx context.Context, a *app, p *parts) {
	if problem := a.unknownToolsets(); problem != "" {
		p.log.Error(problem)
	}
	for _, problem := range a.tierProblems(ctx) {
		p.log.Warn(problem)
	}
}

func toolsetNames(sets []operation.Toolset) (names []string) {
	for _, set := range sets {
		names = append(names, set.Name)
	}
	return names
}

// toolsetFindings is what doctor says of them.
func (a *app) toolsetFindings(ctx context.Context) (out []doctor.Finding) {
	redact := a.wire(needs{}).scanner.Redact
	if problem := a.unknownToolsets(); problem != "" {
		out = append(out, doctor.Finding{Name: "toolsets", Status: "problem", Detail: redact(problem)})
	}
	if _, err := a.wire(needs{}).allowedSources().Load(); err != nil {
		out = append(out, doctor.Finding{Name: "sources", Status: "problem", Detail: redact(err.Error())})
	}
	if p := a.wire(needs{}); usesScripts(p.cfg) {
		finding := scriptFinding(a, p.cfg)
		finding.Detail = redact(finding.Detail)
		out = append(out, finding)
	}
	for _, problem := range a.tierProblems(ctx) {
		out = append(out, doctor.Finding{Name: "policy", Status: doctor.Warning, Detail: redact(problem)})
	}
	return out
}

func (a *app) newTools(p *parts) tools {
	return tools{
		definitions: sync.OnceValue(func() *definitions.Service { return a.newDefinitions(p) }),
		deploy:      sync.OnceValue(func() *deploy.Service { return newDeploy(a, p) }),
		scripts:     sync.OnceValue(func() *scripts.Service { return newScripts(a, p) }),
		packages:    sync.OnceValue(func() *packages.Service { return newPackages(a, p) }),
	}
}

// workingFolder is the project of the toolsets: the folder that was asked for, or this process's own.
func workingFolder(a *app) (string, error) {
	if a.folder != "" {
		return a.folder, nil
	}
	return os.Getwd()
}

// projectFolder is workingFolder; "" if it is unknown.
func projectFolder(a *app, p *parts) string {
	folder, err := workingFolder(a)
	if err != nil {
		p.log.Warn("the working folder is unknown, so that no project is looked at", "error", err)
		return ""
	}
	return folder
}

func newPackages(a *app, p *parts) *packages.Service {
	d := p.cfg.Tools.Deploy
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
		Project: projectFolder(a, p), Home: d.Home, CodexHome: below(d.CodexHome, ".codex"), State: below(d.AgentpackHome, ".agentpack"), Now: time.Now,
		Sources: p.sources,
	})
}

func (a *app) newDefinitions(p *parts) *definitions.Service {
	d := p.cfg.Tools.Definitions
	return definitions.NewService(definitions.Settings{
		ConfigFile: d.ConfigFile, CacheDir: d.CacheDir, Project: projectFolder(a, p), Home: d.Home, Now: time.Now,
		Sources: p.sources, Frozen: p.rules.noWriting() != "" || p.cfg.Permissions.DryRun,
		Transport: transport.NewPool(http.ProxyFromEnvironment),
		Token:     func(name string) string { return a.registryToken(p, name) },
	})
}

// registryToken is the token in a variable that a registry's configuration names. From now on it is kept out of every text.
func (a *app) registryToken(p *parts, name string) string {
	token := config.RegistryToken(a.environment, name)
	if token != "" {
		p.scanner.Learn(token)
	}
	return token
}

func newDeploy(a *app, p *parts) *deploy.Service {
	folder, err := workingFolder(a)
	if err != nil {
		p.log.Warn("the working folder is unknown, so that the project is the user's home", "error", err)
		folder = p.cfg.Tools.Deploy.Home
	}
	d := p.cfg.Tools.Deploy
	noWriting := p.rules.noWriting()
	if p.cfg.Permissions.DryRun && noWriting == "" {
		noWriting = "this is a dry run"
	}
	return deploy.NewService(deploy.Settings{
		Home: d.AgentpackHome, UserHome: d.Home, CodexHome: d.CodexHome, Folder: folder, Machine: append([]string{d.Machine}, deploy.MachineNames(a.environment, os.Hostname)...),
		Git: deploy.GitCommand{
			Env: deploy.GitEnvironment(a.environment), Credentials: d.GitCredentials, Token: func(name string) string { return a.registryToken(p, name) }, Reaped: true,
			Learn: func(secrets ...string) { p.scanner.Learn(secrets...) },
		},
		Version: version(), NoWriting: noWriting, Repos: d.Repos, Now: time.Now, Sources: p.sources,
	})
}
