package gitea

import (
	"context"
	"net/http"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// draftPrefix makes a pull request a draft: Gitea and Forgejo know drafts by their title alone.
const draftPrefix = "WIP: "

// OpenPullRequest implements gitprovider.Provider. The server refuses a second pull request for a head and a base that
// have an open one, but not when both are sent at the same moment, and it opens one for a branch without a change. A
// branch that this process has just made can have neither trouble, so that one request does. For every other branch it
// is looked before (is there one, is there anything to propose) and after (did somebody open one at the same moment: then
// the older stays and ours is closed).
//
// The answer has no Paths: whoever opens a pull request knows them. Labels whose ids are known by then are set with the
// creation. Beside the port's codes: repo_not_allowed if the repository is archived or the user may not open pull
// requests.
func (p *Provider) OpenPullRequest(ctx context.Context, spec gitprovider.PullRequestSpec) (gitprovider.PullRequest, error) {
	none := gitprovider.PullRequest{}
	fresh := p.fresh.take(spec.Repo, spec.Head)
	if !fresh {
		there, err := p.lookBefore(ctx, spec)
		if err != nil {
			return none, p.judge(err, spec.Repo, "the branch "+spec.Head+" or "+spec.Base)
		}
		if there != nil {
			return pullRequest(there, p.now()), nil
		}
	}
	made, err := p.create(ctx, spec)
	switch {
	case statusIs(err, http.StatusConflict) || err != nil && fault.CodeOf(p.judge(err, spec.Repo, "")).Ambiguous():
		there, lookErr := p.openFor(ctx, spec.Repo, spec.Base, spec.Head)
		if lookErr == nil && there != nil {
			return pullRequest(there, p.now()), nil
		}
		return none, p.judge(err, spec.Repo, "")
	case statusIs(err, http.StatusUnprocessableEntity):
		if ahead, lookErr := p.commitsAhead(ctx, spec); lookErr == nil && ahead == 0 {
			return none, p.noDifference(spec)
		}
		return none, p.judge(err, spec.Repo, "")
	case err != nil:
		return none, p.judge(err, spec.Repo, "the branch "+spec.Head+" or "+spec.Base)
	}
	return p.lookAfter(ctx, spec, made, fresh)
}

// lookBefore returns the open pull request that there is, nil if there is none, and no_change if there is nothing to
// propose.
func (p *Provider) lookBefore(ctx context.Context, spec gitprovider.PullRequestSpec) (*gitea.PullRequest, error) {
	var there *gitea.PullRequest
	var commits int
	err := together(
		func() (err error) {
			there, err = p.openFor(ctx, spec.Repo, spec.Base, spec.Head)
			return err
		},
		func() (err error) {
			commits, err = p.commitsAhead(ctx, spec)
			return err
		},
	)
	if err == nil && there == nil && commits == 0 {
		err = p.noDifference(spec)
	}
	return there, err
}

func (p *Provider) noDifference(spec gitprovider.PullRequestSpec) error {
	return fault.New(fault.NoChange, "the branch %s of %s holds nothing that %s does not have already", spec.Head, spec.Repo,
		spec.Base)
}

// commitsAhead counts what the head has and the base has not; -1 where the server has no comparison.
func (p *Provider) commitsAhead(ctx context.Context, spec gitprovider.PullRequestSpec) (int, error) {
	var compared struct {
		Total int `json:"total_commits"`
	}
	at := p.repoURL(spec.Repo, "compare", refsPrefix+spec.Base+"..."+refsPrefix+spec.Head)
	_, err := p.get(ctx, at, nil, &compared)
	if lacksRoute(err) {
		return -1, nil
	}
	return compared.Total, err
}

func (p *Provider) create(ctx context.Context, spec gitprovider.PullRequestSpec) (*gitea.PullRequest, error) {
	title := spec.Title
	if spec.Draft {
		title = draftPrefix + title
	}
	made, _, err := call(ctx, p, func(c *gitea.Client) (*gitea.PullRequest, *gitea.Response, error) {
		return c.CreatePullRequest(spec.Repo.Owner, spec.Repo.Name, gitea.CreatePullRequestOption{
			Head: spec.Head, Base: spec.Base, Title: title, Body: spec.Body, Labels: p.labels.known(spec.Repo, spec.Labels),
		})
	})
	if err == nil && made.Index < 1 {
		return nil, fault.New(fault.UpstreamError, "%s does not say which pull request it opened in %s", p.base.Host, spec.Repo)
	}
	return made, err
}

// lookAfter closes what was opened without need: a pull request without a commit, or a second one.
func (p *Provider) lookAfter(ctx context.Context, spec gitprovider.PullRequestSpec, made *gitea.PullRequest, fresh bool) (
	gitprovider.PullRequest, error) {
	p.labels.learn(spec.Repo, []*gitea.PullRequest{made})
	p.rememberOwn(ctx, spec.Repo, made)
	if made.Head != nil && made.Head.Sha != "" && made.MergeBase == made.Head.Sha {
		if err := p.closePull(ctx, spec.Repo, made.Index); err != nil {
			return gitprovider.PullRequest{}, fault.Wrap(err, fault.UpstreamError, "%s was opened in %s without a change in it, "+
				"and could not be closed again; close it", pullName(int(made.Index)), spec.Repo)
		}
		return gitprovider.PullRequest{}, p.noDifference(spec)
	}
	if !fresh {
		older, err := p.openFor(ctx, spec.Repo, spec.Base, spec.Head)
		// Without an answer ours is as good as any.
		if err == nil && older != nil && older.Index < made.Index && p.closePull(ctx, spec.Repo, made.Index) == nil {
			made = older
		}
	}
	return pullRequest(made, p.now()), nil
}

func (p *Provider) closePull(ctx context.Context, repo gitprovider.RepoRef, number int64) error {
	closed := gitea.StateClosed
	_, _, err := call(ctx, p, func(c *gitea.Client) (*gitea.PullRequest, *gitea.Response, error) {
		return c.EditPullRequest(repo.Owner, repo.Name, number, gitea.EditPullRequestOption{State: &closed})
	})
	return err
}
