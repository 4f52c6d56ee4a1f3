package github

import (
	"context"
	"net/http"

	gogithub "github.com/google/go-github/v60/github"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// OpenPullRequest implements gitprovider.Provider. GitHub sets no labels at a creation: see Label. A draft is opened as
// ready for review where the repository has no drafts. Beside the codes of the port: repo_not_allowed for an archived
// repository, invalid_argument for what GitHub takes for malformed.
func (p *Provider) OpenPullRequest(ctx context.Context, spec gitprovider.PullRequestSpec) (gitprovider.PullRequest, error) {
	ctx = about(ctx, spec.Repo)
	pr, err := p.open(ctx, spec, spec.Draft)
	if r := refused(err); r != nil && spec.Draft && r.says("draft pull requests") {
		pr, err = p.open(ctx, spec, false)
	}
	r := refused(err)
	if r == nil || r.status != http.StatusUnprocessableEntity {
		return pr, publish(err)
	}
	switch {
	case r.says("already exists"):
		found, err := p.findOpen(ctx, spec)
		if err != nil || found != nil {
			return deref(found), publish(err)
		}
		return pr, fault.New(fault.UpstreamError, "GitHub has a pull request for %s already but did not show it; try again",
			clean(spec.Head))
	case r.says("no commits between"):
		return pr, fault.New(fault.NoChange, "%s contains everything that is on %s already", clean(spec.Base), clean(spec.Head))
	case r.names("head"):
		return pr, fault.New(fault.NotFound, "the repository %s has no branch %s", spec.Repo, clean(spec.Head))
	case r.names("base"):
		return pr, fault.New(fault.NotFound, "the repository %s has no base branch %s", spec.Repo, clean(spec.Base))
	}
	return pr, publish(err)
}

func deref(pr *gitprovider.PullRequest) gitprovider.PullRequest {
	if pr == nil {
		return gitprovider.PullRequest{}
	}
	return *pr
}

func (p *Provider) open(ctx context.Context, spec gitprovider.PullRequestSpec, draft bool) (gitprovider.PullRequest, error) {
	none := gitprovider.PullRequest{}
	body := &gogithub.NewPullRequest{
		Title: &spec.Title, Body: &spec.Body, Head: &spec.Head, Base: &spec.Base, Draft: &draft,
	}
	var made gogithub.PullRequest
	if err := p.post(ctx, p.repoURL(spec.Repo, "pulls"), needPulls, body, &made); err != nil {
		return none, err
	}
	if made.GetNumber() < 1 || made.GetHTMLURL() == "" {
		return none, fault.New(fault.UpstreamError, "GitHub did not say which pull request it opened for %s", clean(spec.Head))
	}
	pr := gitprovider.PullRequest{
		Number: made.GetNumber(), Title: made.GetTitle(), Body: made.GetBody(), URL: made.GetHTMLURL(), Branch: spec.Head,
		HeadCommit: made.GetHead().GetSHA(), Base: spec.Base, State: gitprovider.StateOpen,
		CreatedAt: made.GetCreatedAt().UTC(), Author: made.GetUser().GetLogin(),
	}
	for _, label := range made.Labels {
		pr.Labels = append(pr.Labels, label.GetName())
	}
	pr.Paths = p.recallChanges(spec.Repo, pr)
	return pr, nil
}

// recallChanges gives the files of a pull request that was just opened of our commit, and keeps them as its files.
func (p *Provider) recallChanges(repo gitprovider.RepoRef, pr gitprovider.PullRequest) []string {
	key := filesKey{repoKey(repo), 0, pr.HeadCommit, pr.Base}
	paths, known := p.files.get(key)
	if !known {
		return nil
	}
	key.number = pr.Number
	p.files.put(key, paths)
	return append([]string(nil), paths...)
}

// FindByHead implements gitprovider.Provider. A fork's branch of the same name is another branch.
func (p *Provider) FindByHead(ctx context.Context, repo gitprovider.RepoRef, branch string) (*gitprovider.PullRequest,
	error) {
	ctx = about(ctx, repo)
	list := pullList{arguments: "headRefName: $head, orderBy: {field: CREATED_AT, direction: DESC}",
		strings: map[string]string{"head": branch}}
	pr, err := p.findFirst(ctx, repo, list)
	return pr, publish(err)
}

func (p *Provider) findOpen(ctx context.Context, spec gitprovider.PullRequestSpec) (*gitprovider.PullRequest, error) {
	list := pullList{
		arguments: "states: [OPEN], headRefName: $head, baseRefName: $base, orderBy: {field: CREATED_AT, direction: DESC}",
		strings:   map[string]string{"head": spec.Head, "base": spec.Base},
	}
	return p.findFirst(ctx, spec.Repo, list)
}

// findPage is how many pull requests of one branch name are looked at together; more than a few come only from forks.
const findPage = 10

// findFirst gives the first pull request of the list whose head is in the repository itself, or nil.
func (p *Provider) findFirst(ctx context.Context, repo gitprovider.RepoRef, list pullList) (*gitprovider.PullRequest, error) {
	list.size, list.files = findPage, true
	for cursor := ""; ; {
		at, err := p.pageAfter(ctx, repo, list, cursor)
		if err != nil {
			return nil, err
		}
		for _, n := range at.Nodes {
			if n == nil || n.IsCrossRepository {
				continue
			}
			prs, err := p.pullRequests(ctx, repo, []*pullNode{n})
			if err != nil {
				return nil, err
			}
			return &prs[0], nil
		}
		if cursor = at.PageInfo.EndCursor; !at.PageInfo.HasNextPage || cursor == "" {
			return nil, nil
		}
	}
}
