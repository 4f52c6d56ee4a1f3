package gitea

import (
	"context"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// openFor finds the oldest open pull request for a head and a base, or nil. The server's own search by base and head
// gives the oldest in whatever state: nothing, or an open one, settles the question in one request; after a closed one
// the open ones are listed.
func (p *Provider) openFor(ctx context.Context, repo gitprovider.RepoRef, base, head string) (*gitea.PullRequest, error) {
	var pr gitea.PullRequest
	_, err := p.get(ctx, p.repoURL(repo, "pulls", base, head), nil, &pr)
	switch {
	case isMissing(err):
		return nil, nil
	case err != nil && !lacksRoute(err):
		return nil, err
	case err == nil && isOpenFor(&pr, base, head):
		return &pr, nil
	}
	open, err := p.openPulls(ctx, repo)
	for _, pr := range open { // oldest first
		if isOpenFor(pr, base, head) {
			return pr, nil
		}
	}
	return nil, err
}

func isOpenFor(pr *gitea.PullRequest, base, head string) bool {
	return pr.State == gitea.StateOpen && !headGone(pr) && pr.Base != nil && pr.Base.Ref == base && headBranch(pr) == head
}

// FindByHead implements gitprovider.Provider. There is no search by head in all states, so pull requests are read newest
// first, 50 a request, until the first that fits: one request in nearly every case, since it is asked about branches
// that were made a moment ago. That there is none is known only at the end of the list, whose pages are read side by
// side.
func (p *Provider) FindByHead(ctx context.Context, repo gitprovider.RepoRef, branch string) (*gitprovider.PullRequest, error) {
	read := p.pulls(repo, gitea.StateAll, "")
	first, err := read(ctx, 1)
	if err != nil {
		return nil, p.judge(err, repo, "")
	}
	found := newest(first.items, branch)
	if found == nil || foundAtTheEnd(first, found) {
		all, _, err := readAll(ctx, func(ctx context.Context, number int) (page[*gitea.PullRequest], error) {
			if number == 1 {
				return first, nil
			}
			return read(ctx, number)
		})
		if err != nil {
			return nil, p.judge(err, repo, "")
		}
		if found = newest(all, branch); found == nil {
			return nil, nil
		}
	}
	prs, err := p.withPaths(ctx, repo, []*gitea.PullRequest{found})
	if err != nil {
		return nil, p.judge(err, repo, "")
	}
	return &prs[0], nil
}

func newest(prs []*gitea.PullRequest, branch string) *gitea.PullRequest {
	var found *gitea.PullRequest
	for _, pr := range prs {
		if headBranch(pr) == branch && (found == nil || pr.Index > found.Index) {
			found = pr
		}
	}
	return found
}

// foundAtTheEnd reports whether a newer one may be on the next page: the order is by the second of the creation.
func foundAtTheEnd(first page[*gitea.PullRequest], found *gitea.PullRequest) bool {
	last := first.items[len(first.items)-1]
	return first.total > len(first.items) && timeOf(last.Created).Equal(timeOf(found.Created))
}
