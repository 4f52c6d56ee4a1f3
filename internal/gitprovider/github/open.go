package github

import (
	"context"
	"net/http"
	"time"

	gogithub "github.com/google/go-github/v60/github"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// opener opens pull requests.
type opener struct {
	api   *api
	pulls pulls
}

func (o opener) open(ctx context.Context, spec gitprovider.PullRequestSpec) (gitprovider.PullRequest, error) {
	none := gitprovider.PullRequest{}
	var pr gitprovider.PullRequest
	head, looked := branchObject(spec.Repo, spec.Head), false
	unknown := func(err error) bool {
		if !headUnknown(err) {
			return false
		}
		if !looked && !o.api.fresh.has(head) && !o.api.fresh.wasShown(head) && o.isNew(ctx, spec) {
			o.api.fresh.add(head)
		}
		looked = true
		return true
	}
	err := o.api.fresh.waitFor(ctx, head, "the branch "+forge.Clean(spec.Head), unknown,
		func() (err error) {
			pr, err = o.create(ctx, spec, spec.Draft)
			if r := refused(err); r != nil && spec.Draft && r.says("draft pull requests") {
				pr, err = o.create(ctx, spec, false)
			}
			return err
		})
	r := refused(err)
	if r == nil || r.status != http.StatusUnprocessableEntity {
		return pr, err
	}
	switch {
	case r.says("already exists"):
		found, err := o.pulls.openFor(ctx, spec)
		switch {
		case err != nil:
			return none, err
		case found == nil:
			return none, fault.New(fault.UpstreamError,
				"GitHub has a pull request for %s already but did not show it; try again",
				forge.Clean(spec.Head))
		}
		return *found, nil
	case r.says("no commits between"):
		return none, forge.NothingToPropose(spec)
	case r.names("head"):
		return none, fault.New(fault.NotFound, "the repository %s has no branch %s", spec.Repo, forge.Clean(spec.Head))
	case r.names("base"):
		return none, forge.NoBase(spec.Repo, spec.Base, "")
	}
	return none, err
}

// headUnknown reports whether a refusal can mean that GitHub does not know a branch yet, or its commit.
func headUnknown(err error) bool {
	r := refused(err)
	return r != nil && r.status == http.StatusUnprocessableEntity && (r.says("no commits between") || r.names("head"))
}

// isNew reports whether the head branch has a commit of the last minute that is not the base's: another process may
// have made it.
func (o opener) isNew(ctx context.Context, spec gitprovider.PullRequestSpec) bool {
	q := newQuery(spec.Repo)
	q.text("head", branchRef(spec.Head))
	q.text("base", branchRef(spec.Base))
	q.add("head: ref(qualifiedName: $head) { target { oid ... on Commit { committedDate } } }")
	q.add("base: ref(qualifiedName: $base) { target { oid } }")
	from, err := ask[struct {
		Head *struct {
			Target struct {
				Oid           string
				CommittedDate time.Time
			}
		}
		Base *refNode
	}](ctx, o.api, q, needContents)
	return err == nil && from.Head != nil && from.Head.Target.Oid != from.Base.tip() &&
		o.api.fresh.now().Sub(from.Head.Target.CommittedDate).Abs() < newFor
}

func (o opener) create(ctx context.Context, spec gitprovider.PullRequestSpec, draft bool) (gitprovider.PullRequest,
	error) {
	none := gitprovider.PullRequest{}
	body := &gogithub.NewPullRequest{
		Title: &spec.Title, Body: &spec.Body, Head: &spec.Head, Base: &spec.Base, Draft: &draft,
	}
	var made gogithub.PullRequest
	if err := o.api.post(ctx, o.api.repoURL(spec.Repo, "pulls"), needPulls, body, &made); err != nil {
		return none, err
	}
	if made.GetNumber() < 1 || made.GetHTMLURL() == "" {
		return none, fault.New(fault.UpstreamError, "GitHub did not say which pull request it opened for %s",
			forge.Clean(spec.Head))
	}
	pr := gitprovider.PullRequest{
		Number: made.GetNumber(), Title: made.GetTitle(), Body: made.GetBody(), URL: made.GetHTMLURL(), Branch: spec.Head,
		HeadCommit: made.GetHead().GetSHA(), Base: spec.Base, State: gitprovider.StateOpen,
		CreatedAt: made.GetCreatedAt().UTC(), Author: made.GetUser().GetLogin(),
		RepoID: repoID(made.GetBase().GetRepo().GetID()),
	}
	for _, label := range made.Labels {
		pr.Labels = append(pr.Labels, label.GetName())
	}
	o.api.fresh.add(pullObject(spec.Repo, pr.Number))
	o.api.fresh.shown(branchObject(spec.Repo, spec.Head))
	pr.Paths, _ = o.pulls.files.known.Opened(spec.Repo, pr.Number, versionOf(pr.HeadCommit, pr.Base))
	return pr, nil
}
