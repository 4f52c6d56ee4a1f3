package github

import (
	"context"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// ListOpen implements gitprovider.Provider: one request for each 100 pull requests with the label; see firstOfList for those
// without. A list that this process read before costs one, whatever its length, and one more for each 50 heads that are new;
// see listChanged.
func (p *Provider) ListOpen(ctx context.Context, repo gitprovider.RepoRef, label string) ([]gitprovider.PullRequest, error) {
	ctx = about(ctx, repo)
	prs, err := p.listOpen(ctx, repo, label)
	if err != nil {
		return nil, publish(err)
	}
	return prs, nil
}

func (p *Provider) listOpen(ctx context.Context, repo gitprovider.RepoRef, label string) ([]gitprovider.PullRequest, error) {
	began := p.now()
	changed, last, ok, err := p.listChanged(ctx, repo, label)
	if err != nil {
		return nil, err
	}
	if ok {
		return p.pullRequests(ctx, repo, withoutForks(changed))
	}
	known, _ := p.facts.get(repoKey(repo))
	list := labelledPulls(label)
	list.files = !known.warm
	first, marked, err := p.firstOfList(ctx, repo, list)
	if err != nil {
		return nil, err
	}
	all, err := p.readOn(ctx, repo, list, first)
	if err != nil {
		return nil, err
	}
	all = mergeListed(all, marked, label)
	prs, err := p.pullRequests(ctx, repo, withoutForks(all))
	if err == nil {
		p.keepList(repo, label, all, last, began)
		p.facts.update(repoKey(repo), func(f facts) facts { f.warm = true; return f })
	}
	return prs, err
}
