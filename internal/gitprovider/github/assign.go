package github

import (
	"context"
	"slices"
	"strings"

	gogithub "github.com/google/go-github/v60/github"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/transport"
)

// Assign implements gitprovider.Assigner: one request for the reviewers, one for the assignees, and further ones only to
// tell which name GitHub did not take. not_found names them all.
func (p *Provider) Assign(ctx context.Context, repo gitprovider.RepoRef, number int, reviewers, assignees []string) error {
	ctx = about(ctx, repo)
	if number < 1 || number > maxNumber {
		return noSuchPull(repo, number)
	}
	refusedReviewers, err := p.requestReviews(ctx, repo, number, reviewers)
	if err != nil {
		return publish(err)
	}
	refusedAssignees, err := p.assign(ctx, repo, number, assignees)
	if err != nil {
		return publish(err)
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
	return fault.New(fault.NotFound, "GitHub does not take %s; only collaborators of %s other than the author can be named",
		clean(strings.Join(said, "; ")), repo)
}

// requestReviews returns the names that GitHub refused. It refuses a whole request for one name without saying which, so
// then they are tried one by one.
func (p *Provider) requestReviews(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) (
	[]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	err := p.requestReview(ctx, repo, number, names)
	if !isUnprocessable(err) {
		return nil, err
	}
	if len(names) == 1 {
		return names, nil
	}
	var out []string
	for _, name := range names {
		err := p.requestReview(ctx, repo, number, []string{name})
		switch {
		case isUnprocessable(err):
			out = append(out, name)
		case err != nil:
			return nil, err
		}
	}
	return out, nil
}

func isUnprocessable(err error) bool {
	r := refused(err)
	return r != nil && r.fault.Code == fault.InvalidArgument
}

func (p *Provider) requestReview(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) error {
	body := &gogithub.ReviewersRequest{}
	for _, name := range names {
		if _, team, isTeam := strings.Cut(name, "/"); isTeam {
			body.TeamReviewers = append(body.TeamReviewers, team)
		} else {
			body.Reviewers = append(body.Reviewers, name)
		}
	}
	err := p.post(transport.Repeatable(ctx), p.repoURL(repo, "pulls", decimal(number), "requested_reviewers"), needPulls, body, new(gogithub.PullRequest))
	return p.pullMissing(err, repo, number)
}

// assign returns the names that GitHub left out: it ignores those that it does not take.
func (p *Provider) assign(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	var issue gogithub.Issue
	err := p.post(transport.Repeatable(ctx), p.repoURL(repo, "issues", decimal(number), "assignees"), needPulls,
		map[string][]string{"assignees": names}, &issue)
	if err != nil {
		return nil, p.pullMissing(err, repo, number)
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(issue.Assignees, func(u *gogithub.User) bool {
			return strings.EqualFold(u.GetLogin(), name)
		})
	}), nil
}

// pullMissing names the pull request in a not_found: which of repository and number is missing, REST does not tell.
func (p *Provider) pullMissing(err error, repo gitprovider.RepoRef, number int) error {
	if r := refused(err); r != nil && r.fault.Code == fault.NotFound {
		return fault.New(fault.NotFound, "GitHub has no pull request %d in %s, or %s may not see it", number, repo, p.token)
	}
	return err
}
