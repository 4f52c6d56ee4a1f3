package gitea

import (
	"context"
	"net/http"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// draftPrefix makes a pull request a draft: Gitea and Forgejo know drafts by their title alone.
const draftPrefix = "WIP: "

// opener opens pull requests. The server refuses a second one for a head and a base that have an open one, but not when
// both are sent at the same moment, and it opens one for a branch without a change. A branch that this process has just
// made can have neither trouble, so that one request does. For every other branch it is looked before (is there one, is
// there anything to propose) and after (did somebody open one at the same moment: then the older stays and ours is
// closed).
type opener struct {
	api    *api
	pulls  pulls
	labels *labelIDs
	fresh  *freshBranches
}

func (o opener) open(ctx context.Context, spec gitprovider.PullRequestSpec) (*gitea.PullRequest, error) {
	fresh := o.fresh.take(spec.Repo, spec.Head)
	if !fresh {
		if there, err := o.checkBefore(ctx, spec); err != nil || there != nil {
			return there, err
		}
	}
	made, err := o.create(ctx, spec)
	switch {
	case err == nil:
		return o.checkAfter(ctx, spec, made, fresh)
	case statusIs(err, http.StatusConflict) || fault.CodeOf(o.api.toFault(err, spec.Repo, "")).Ambiguous():
		if there, lookErr := o.pulls.openFor(ctx, spec.Repo, spec.Base, spec.Head); lookErr == nil && there != nil {
			return there, nil
		}
	case statusIs(err, http.StatusUnprocessableEntity):
		if ahead, lookErr := o.commitsAhead(ctx, spec); lookErr == nil && ahead == 0 {
			return nil, forge.NothingToPropose(spec)
		}
	}
	return nil, err
}

// checkBefore returns the open pull request that there is, nil if there is none, and no_change if there is nothing to
// propose.
func (o opener) checkBefore(ctx context.Context, spec gitprovider.PullRequestSpec) (*gitea.PullRequest, error) {
	var there *gitea.PullRequest
	var commits int
	err := forge.Together(
		forge.Into(&there, func() (*gitea.PullRequest,
			error) {
			return o.pulls.openFor(ctx, spec.Repo, spec.Base, spec.Head)
		}),
		forge.Into(&commits, func() (int, error) { return o.commitsAhead(ctx, spec) }),
	)
	if err == nil && there == nil && commits == 0 {
		err = forge.NothingToPropose(spec)
	}
	return there, err
}

// commitsAhead counts what the head has and the base has not; -1 where the server has no comparison.
func (o opener) commitsAhead(ctx context.Context, spec gitprovider.PullRequestSpec) (int, error) {
	compared, err := call(ctx, o.api, func(c *gitea.Client) (*gitea.Compare, *gitea.Response, error) {
		return c.CompareCommits(spec.Repo.Owner, spec.Repo.Name, refsPrefix+spec.Base, refsPrefix+spec.Head)
	})
	switch {
	case lacksRoute(err):
		return -1, nil
	case err != nil:
		return 0, err
	}
	return compared.TotalCommits, nil
}

func (o opener) create(ctx context.Context, spec gitprovider.PullRequestSpec) (*gitea.PullRequest, error) {
	title := spec.Title
	if spec.Draft {
		title = draftPrefix + title
	}
	made, err := call(ctx, o.api, func(c *gitea.Client) (*gitea.PullRequest, *gitea.Response, error) {
		return c.CreatePullRequest(spec.Repo.Owner, spec.Repo.Name, gitea.CreatePullRequestOption{
			Head: spec.Head, Base: spec.Base, Title: title, Body: spec.Body, Labels: o.labels.known(spec.Repo, spec.Labels),
		})
	})
	if err == nil && made.Index < 1 {
		return nil, fault.New(fault.UpstreamError, "%s does not say which pull request it opened in %s", o.api.base.Host,
			spec.Repo)
	}
	return made, err
}

// checkAfter closes what was opened without need: a pull request without a commit, or a second one.
func (o opener) checkAfter(ctx context.Context, spec gitprovider.PullRequestSpec, made *gitea.PullRequest, fresh bool) (
	*gitea.PullRequest, error) {
	o.labels.learn(spec.Repo, made)
	o.pulls.files.opened(ctx, spec.Repo, made)
	closing := map[string]string{"state": string(gitea.StateClosed)}
	if made.Head != nil && made.Head.Sha != "" && made.MergeBase == made.Head.Sha {
		if _, err := o.pulls.change(ctx, spec.Repo, int(made.Index), closing); err != nil {
			return nil, fault.Wrap(err, fault.UpstreamError, "%s was opened in %s without a change in it, "+
				"and could not be closed again; close it", pullName(int(made.Index)), spec.Repo)
		}
		return nil, forge.NothingToPropose(spec)
	}
	if !fresh {
		older, err := o.pulls.openFor(ctx, spec.Repo, spec.Base, spec.Head)
		// Without an answer ours is as good as any.
		if err == nil && older != nil && older.Index < made.Index {
			if _, err := o.pulls.change(ctx, spec.Repo, int(made.Index), closing); err == nil {
				return older, nil
			}
		}
	}
	return made, nil
}

// maxFresh bounds how many branches are remembered; each is taken out again a moment later.
const maxFresh = 1024

// freshBranches remembers the branches that this process has made and not opened a pull request for. The server makes a
// branch for one creator alone, so no one else has opened a pull request for it unless they searched for the branch.
type freshBranches struct {
	names *forge.LRU[string, bool]
}

func newFreshBranches() *freshBranches {
	return &freshBranches{forge.NewLRU[string, bool](maxFresh, nil)}
}

func freshKey(repo gitprovider.RepoRef, branch string) string {
	return forge.RepoKey(repo) + ":" + branch
}

func (f *freshBranches) add(repo gitprovider.RepoRef, branch string) {
	f.names.Put(freshKey(repo, branch), true)
}

// take reports whether the branch is fresh, to the first who asks.
func (f *freshBranches) take(repo gitprovider.RepoRef, branch string) bool {
	fresh, _ := f.names.Take(freshKey(repo, branch))
	return fresh
}
