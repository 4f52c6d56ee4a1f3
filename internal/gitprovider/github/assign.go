package github

import (
	"context"
	"fmt"
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
type assigner struct {
	api   *api
	isApp bool // a token for teams is another one
}

func (a assigner) assign(ctx context.Context, repo gitprovider.RepoRef, number int,
	reviewers, assignees []string) error {
	refusedReviewers, withoutTeams, err := a.askForReviews(ctx, repo, number, reviewers)
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
	var why []string
	if len(said) > 0 {
		why = append(why, fmt.Sprintf("GitHub does not take %s; only collaborators of %s other than the author can be named",
			forge.Clean(strings.Join(said, "; ")), repo))
	}
	if withoutTeams != "" {
		why = append(why, withoutTeams)
	}
	if len(why) == 0 {
		return nil
	}
	return fault.New(fault.NotFound, "%s", strings.Join(why, "; "))
}

// askForReviews asks people and teams, together if one token does for both. It returns the names that GitHub does not
// take, and why no team could be asked.
func (a assigner) askForReviews(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) (no []string,
	withoutTeams string, err error) {
	if !a.isApp {
		return a.review(ctx, repo, number, names)
	}
	teams := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !isTeam(name) })
	no, _, err = a.review(ctx, repo, number, forge.Without(names, isTeam))
	if err != nil || len(teams) == 0 {
		return no, "", err
	}
	noTeams, withoutTeams, err := a.review(transport.ForMembers(ctx), repo, number, teams)
	if f := fault.From(err); err != nil && f.Code == fault.ProviderDisabled { // the installation does not grant it
		return no, f.Message, nil
	}
	return append(no, noTeams...), withoutTeams, err
}

func isTeam(name string) bool { return strings.Contains(name, "/") }

// review asks for reviews. Of a new pull request it waits for the first answer that is none of its being new. A team
// that the token may not see is refused in the words of an unknown pull request.
func (a assigner) review(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) (no []string,
	withoutTeams string, err error) {
	asked := false
	no, err = forge.RefusedNames(names, isUnprocessable, func(names ...string) error {
		ask := func() error {
			err := a.requestReview(ctx, repo, number, names)
			if r := refused(err); r != nil && len(names) == 1 && isTeam(names[0]) && r.says(unknownNode) {
				withoutTeams = "to name a team, the token needs the organisation's permission \"Members: read\""
			}
			return err
		}
		if asked {
			return ask()
		}
		asked = true
		late, err := a.api.fresh.wait(ctx, pullObject(repo, number), pullUnknown, ask)
		if late && !slices.ContainsFunc(names, isTeam) {
			return notYet(pullWords(number), err)
		}
		return err
	})
	return no, withoutTeams, err
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
	err := a.api.postTo(transport.Repeatable(ctx), repo, number, at, map[string][]string{"assignees": names}, &issue)
	if err != nil {
		return nil, err
	}
	return forge.Without(names, func(name string) bool {
		return slices.ContainsFunc(issue.Assignees, func(u *gogithub.User) bool {
			return strings.EqualFold(u.GetLogin(), name)
		})
	}), nil
}
