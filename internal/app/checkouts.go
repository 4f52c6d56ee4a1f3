package app

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/agents/checkouts"
	"github.com/claudeops/claudeops/internal/base/trust"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
	"github.com/claudeops/claudeops/internal/settings/mounted"
	"github.com/claudeops/claudeops/internal/settings/sources"
	"github.com/claudeops/claudeops/internal/system/git"
)

// newCheckouts makes what brings mounted working copies up to date; nil if the operator does not want that.
func newCheckouts(a *App, p *Parts) func(context.Context) []checkouts.State {
	if !p.Cfg.Mounted.Update {
		return nil
	}
	copies := mounted.Repos{Dir: p.Cfg.Mounted.Dir}
	u := &checkouts.Updater{
		Dir: resolvedPath(p.Cfg.Mounted.Dir), Git: &git.Runner{Env: deploy.GitEnvironment(a.Options().Environment),
			Reaped: true}, DryRun: func() bool { return p.Rules.Now().DryRun.On },
		Folders: func() (folders []string) {
			for _, r := range copies.Offers().Repositories {
				folders = append(folders, r.Folder)
			}
			return folders
		},
		Remote: func(address string) (git.Remote, error) { return RemoteOf(a, p, address) },
		Redact: p.Scanner.Redact,
	}
	return u.Update
}

// RemoteOf returns the repository that a working copy's address leads to: one of a provider, which is asked with the
// provider's own token at the provider's own address, or one below a source that the operator has named.
func RemoteOf(a *App, p *Parts, address string) (git.Remote, error) {
	if parsed, err := gitprovider.ParseRemote(address); err == nil {
		for _, entry := range p.Providers.registry.Entries() {
			if entry.Provider != nil && slices.Contains(entry.Hosts, parsed.Host) && parsed.Host != gitprovider.HostLocal {
				return git.Remote{URL: trust.Said(repositoryAt(entry.Base, parsed.Path)), Exact: true,
					Token: forgeToken(p, entry.Name)}, nil
			}
		}
	}
	allowed := p.sources()
	if root := p.Cfg.Forges.LocalRoot; root != "" {
		allowed = append(allowed,
			sources.Source{Origin: (&url.URL{Scheme: "file", Path: strings.TrimRight(root, "/")}).String(), Private: true})
	}
	chosen, source, ok := allowed.Pick(trust.Project[string]{Data: address})
	if !ok {
		return git.Remote{}, errors.New(strings.Replace(sources.Refusal(address), "a file of the project",
			"its configuration", 1))
	}
	remote := git.Remote{URL: chosen, Exact: true, Public: !source.Private}
	if source.TokenEnv != "" {
		remote.Token = a.registryToken(p, source.TokenEnv)
	}
	return remote, nil
}

// repositoryAt returns the address of a repository at a provider. path is that of a clone URL: an address over http
// begins with the path of the provider, one over ssh does not.
func repositoryAt(base, path string) string {
	if u, err := url.Parse(base); err == nil {
		path = strings.TrimPrefix(path, strings.TrimPrefix(u.Path, "/")+"/")
	}
	return base + "/" + path
}

// forgeToken returns the token of a provider; "" for one that acts in the name of an app.
func forgeToken(p *Parts, name string) string {
	for _, f := range p.Cfg.Forges.All {
		if f.Driver.Name == name && f.App == nil && f.Token.Text != "" {
			return f.Token.Source(func(token string) func() { return p.Scanner.Learn(token) }).Value()
		}
	}
	return ""
}
