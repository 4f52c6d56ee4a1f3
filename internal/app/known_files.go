package app

import (
	"context"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/settings/mounted"
)

// Bounds of what is looked at for the list of what can be read.
const (
	maxOpenPulls  = 200
	maxNamedPulls = 15
)

// knownFiles returns the files of our newest open pull requests, by the records, and those of mounted working copies.
func knownFiles(ctx context.Context, p *Parts) (out []prflow.KnownFiles) {
	pulls, err := p.Store.Pulls.OpenPulls(ctx, maxOpenPulls)
	if err != nil {
		p.Log.Warn("the open pull requests of the records are not listed", "error", err)
	}
	slices.Reverse(pulls)
	for _, pr := range pulls[:min(len(pulls), maxNamedPulls)] {
		paths, err := p.Store.History.PathsOf(ctx, pr.Provider, pr.Owner, pr.Repo, pr.Number)
		if err != nil {
			p.Log.Warn("the files of a pull request are not listed", "pr", pr.Number, "error", err)
		}
		out = append(out, prflow.KnownFiles{Provider: pr.Provider, Owner: pr.Owner, Repo: pr.Repo, Pull: pr.Number,
			Paths: paths})
	}
	for _, r := range (mounted.Repos{Dir: p.Cfg.Mounted.Dir}).Offers().Repositories {
		owner, name, _ := strings.Cut(r.Folder, "/")
		if r.Manifest.Owner != "" && r.Manifest.Repo != "" {
			owner, name = r.Manifest.Owner, r.Manifest.Repo
		}
		if name == "" { // nothing says whose it is
			continue
		}
		out = append(out, prflow.KnownFiles{Owner: owner, Repo: name, Paths: slices.Concat(r.Checks, r.Playbooks, r.Skills)})
	}
	return out
}
