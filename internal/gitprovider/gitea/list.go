package gitea

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// listAttempts is how often a list is read that changes while it is read.
const listAttempts = 3

// pulls reads one page of pull requests. No filter by label is ever sent: the server drops names that it does not know,
// and without a known one lists everything.
func (p *Provider) pulls(repo gitprovider.RepoRef, state gitea.StateType, sort string) func(context.Context, int) (
	page[*gitea.PullRequest], error) {
	return func(ctx context.Context, number int) (page[*gitea.PullRequest], error) {
		items, header, err := call(ctx, p,
			func(c *gitea.Client) ([]*gitea.PullRequest, *gitea.Response, error) {
				return c.ListRepoPullRequests(repo.Owner, repo.Name, gitea.ListPullRequestsOptions{
					ListOptions: gitea.ListOptions{Page: number, PageSize: pageSize}, State: state, Sort: sort,
				})
			})
		if err != nil {
			return page[*gitea.PullRequest]{}, err
		}
		items = present(items)
		p.labels.learn(repo, items)
		return page[*gitea.PullRequest]{items: items, total: totalOf(header)}, nil
	}
}

// openPulls reads every open pull request, oldest first. Pages are cut by position, so one that is closed in between
// makes another be skipped; then everything is read again, and the call fails rather than give an incomplete list.
func (p *Provider) openPulls(ctx context.Context, repo gitprovider.RepoRef) ([]*gitea.PullRequest, error) {
	for range listAttempts {
		prs, settled, err := readAll(ctx, p.pulls(repo, gitea.StateOpen, "oldest"))
		if err != nil {
			return nil, err
		}
		slices.SortFunc(prs, func(a, b *gitea.PullRequest) int { return int(a.Index - b.Index) })
		distinct := slices.CompactFunc(slices.Clone(prs), func(a, b *gitea.PullRequest) bool { return a.Index == b.Index })
		if settled && len(distinct) == len(prs) {
			return prs, nil
		}
	}
	return nil, fault.New(fault.UpstreamError, "the open pull requests of %s changed each of the %d times that they were "+
		"read; try again", repo, listAttempts)
}

// closedPulls reads the pull requests that were closed without merging at since or later. They come by their last
// update, which is never before the closing, so the first older one ends the search. last is the highest number that was
// read, of merged ones and of those closed before.
func (p *Provider) closedPulls(ctx context.Context, repo gitprovider.RepoRef, since time.Time) (
	closed []*gitea.PullRequest, last int, err error) {
	if since.IsZero() {
		return nil, 0, nil
	}
	read := p.pulls(repo, gitea.StateClosed, "recentupdate")
	var found []*gitea.PullRequest
	seen := map[int64]bool{}
	for number := 1; number <= maxPages; number++ {
		next, err := read(ctx, number)
		if err != nil {
			return nil, 0, err
		}
		for _, pr := range next.items {
			last = max(last, int(pr.Index))
			if !pr.HasMerged && !seen[pr.Index] && !timeOf(pr.Closed).Before(since) {
				found = append(found, pr)
			}
			seen[pr.Index] = true
		}
		end := len(next.items) - 1
		if end < 0 || timeOf(next.items[end].Updated).Before(since) || next.total >= 0 && len(seen) >= next.total {
			slices.SortFunc(found, func(a, b *gitea.PullRequest) int { return int(a.Index - b.Index) })
			return found, last, nil
		}
	}
	return nil, 0, tooLong()
}

// ListOpen implements gitprovider.Provider. The label is compared here, by its exact name. Beside the port's codes:
// repo_not_allowed for a repository whose pull requests are switched off.
func (p *Provider) ListOpen(ctx context.Context, repo gitprovider.RepoRef, label string) ([]gitprovider.PullRequest, error) {
	all, err := p.openPulls(ctx, repo)
	if err != nil {
		return nil, p.noPulls(ctx, repo, err)
	}
	labelled := slices.DeleteFunc(all, func(pr *gitea.PullRequest) bool {
		return headGone(pr) || !gitprovider.Listed(pullRequest(pr, p.now()), label)
	})
	prs, err := p.withPaths(ctx, repo, labelled)
	if err != nil {
		return nil, p.judge(err, repo, "")
	}
	return prs, nil
}

// pull reads one pull request.
func (p *Provider) pull(ctx context.Context, repo gitprovider.RepoRef, number int) (*gitea.PullRequest, error) {
	pr, _, err := call(ctx, p, func(c *gitea.Client) (*gitea.PullRequest, *gitea.Response, error) {
		return c.GetPullRequest(repo.Owner, repo.Name, int64(number))
	})
	if err == nil && pr.Index != int64(number) {
		return nil, fault.New(fault.UpstreamError, "%s gave something else for %s of %s", p.base.Host, pullName(number), repo)
	}
	return pr, err
}

// pullName is how messages call a pull request.
func pullName(number int) string { return "pull request #" + itoa(number) }

// atPage is the query for one page of a list.
func atPage(number int) url.Values {
	return url.Values{"page": {itoa(number)}, "limit": {itoa(pageSize)}}
}

// noSuchNumber answers for numbers that no pull request can have, before a request with such a number is made.
func (p *Provider) noSuchNumber(repo gitprovider.RepoRef, number int) error {
	if number > 0 {
		return nil
	}
	return fault.New(fault.NotFound, "%s does not exist in %s: the numbers begin with 1", pullName(number), repo)
}

func itoa(n int) string { return strconv.Itoa(n) }
