package github

import (
	"context"
	"slices"
	"strconv"
	"strings"

	gogithub "github.com/google/go-github/v60/github"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// assigner asks for reviews and assigns.
type assigner struct{ api *api }

func (a assigner) assign(ctx context.Context, repo gitprovider.RepoRef, number int,
	reviewers, assignees []string) error {
	refusedReviewers, err := forge.RefusedNames(reviewers, isUnprocessable, func(names ...string) error {
		return a.requestReview(ctx, repo, number, names)
	})
	if err != nil {
		return err
	}
	refusedAssignees, err := a.setAssignees(ctx, repo, number, assignees)
	if err != nil {
		return err
	}
	var said []string
	if len(refusedReviewers) > 0 {
		said = append(said, "as reviewers "+strings.Join(refusedReviewers, ", "))
	}
	if len(refusedAssignees) > 0 {
		said = append(said, "as assignees "+strings.Join(refusedAssignees, ", "))
	}
	if len(said) == 0 {
		return nil
	}
	return fault.New(fault.NotFound,
		"GitHub does not take %s; only collaborators of %s other than the author can be named",
		forge.Clean(strings.Join(said, "; ")), repo)
}

func isUnprocessable(err error) bool {
	r := refused(err)
	return r != nil && r.fault.Code == fault.InvalidArgument
}

func (a assigner) requestReview(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) error {
	body := &gogithub.ReviewersRequest{}
	for _, name := range names {
		if _, team, isTeam := strings.Cut(name, "/"); isTeam {
			body.TeamReviewers = append(body.TeamReviewers, team)
		} else {
			body.Reviewers = append(body.Reviewers, name)
		}
	}
	at := a.api.repoURL(repo, "pulls", strconv.Itoa(number), "requested_reviewers")
	err := a.api.post(transport.Repeatable(ctx), at, needPulls, body, new(gogithub.PullRequest))
	return a.api.refusals.pullMissing(err, repo, number)
}

// setAssignees returns the names that GitHub left out: it ignores those that it does not take.
func (a assigner) setAssignees(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) ([]string,
	error) {
	if len(names) == 0 {
		return nil, nil
	}
	var issue gogithub.Issue
	at := a.api.repoURL(repo, "issues", strconv.Itoa(number), "assignees")
	err := a.api.post(transport.Repeatable(ctx), at, needPulls, map[string][]string{"assignees": names}, &issue)
	if err != nil {
		return nil, a.api.refusals.pullMissing(err, repo, number)
	}
	return forge.Without(names, func(name string) bool {
		return slices.ContainsFunc(issue.Assignees, func(u *gogithub.User) bool {
			return strings.EqualFold(u.GetLogin(), name)
		})
	}), nil
}
