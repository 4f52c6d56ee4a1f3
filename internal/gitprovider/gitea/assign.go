package gitea

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// assigner asks for reviews and assigns.
type assigner struct {
	api   *api
	pulls pulls
}

func (a assigner) assign(ctx context.Context, repo gitprovider.RepoRef, number int,
	reviewers, assignees []string) error {
	refused, err := a.requestReviews(ctx, repo, number, reviewers)
	if err != nil {
		return err
	}
	more, err := a.setAssignees(ctx, repo, number, assignees)
	if err != nil {
		return err
	}
	if refused = append(refused, more...); len(refused) == 0 {
		return nil
	}
	slices.Sort(refused)
	return fault.New(fault.NotFound, "%s does not take %s as reviewer or assignee of %s in %s; check the names and their "+
		"access", a.api.base.Host, strings.Join(slices.Compact(refused), ", "), pullName(number), repo)
}

// requestReviews returns the names that the server does not take. A team of another owner cannot review here. Teams
// that the server does not know it may silently ignore, so they are looked for afterwards.
func (a assigner) requestReviews(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) ([]string,
	error) {
	var teams, foreign []string
	for _, name := range names {
		owner, _, isTeam := strings.Cut(name, "/")
		switch {
		case isTeam && strings.EqualFold(owner, repo.Owner):
			teams = append(teams, name)
		case isTeam:
			foreign = append(foreign, name)
		}
	}
	names = forge.Without(names, func(name string) bool { return slices.Contains(foreign, name) })
	refused, err := forge.RefusedNames(names, isRefusedName, func(names ...string) error {
		return a.requestReview(ctx, repo, number, names)
	})
	if err != nil || len(teams) == 0 && (len(refused) == 0 || len(refused) < len(names)) {
		return append(refused, foreign...), err
	}
	pr, err := a.pulls.read(ctx, repo, number) // which may be what is missing
	if err != nil {
		return nil, err
	}
	for _, name := range teams {
		_, team, _ := strings.Cut(name, "/")
		if !slices.ContainsFunc(pr.RequestedReviewersTeams, func(t *gitea.Team) bool {
			return t != nil && strings.EqualFold(t.Name, team)
		}) {
			refused = append(refused, name)
		}
	}
	return append(refused, foreign...), nil
}

func isRefusedName(err error) bool {
	return statusIs(err, http.StatusNotFound, http.StatusUnprocessableEntity)
}

func (a assigner) requestReview(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) error {
	var option gitea.PullReviewRequestOptions
	for _, name := range names {
		if _, team, isTeam := strings.Cut(name, "/"); isTeam {
			option.TeamReviewers = append(option.TeamReviewers, team)
		} else {
			option.Reviewers = append(option.Reviewers, name)
		}
	}
	_, err := call(transport.Repeatable(ctx), a.api, func(c *gitea.Client) (struct{}, *gitea.Response, error) {
		resp, err := c.CreateReviewRequests(repo.Owner, repo.Name, int64(number), option)
		return struct{}{}, resp, err
	})
	return err
}

// setAssignees answers which names the server does not take. For an unknown name it answers 404, 422 or, at Gitea 1.26,
// 500; then it is looked who may be assigned, and the others are assigned.
func (a assigner) setAssignees(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) ([]string,
	error) {
	if len(names) == 0 {
		return nil, nil
	}
	set := func(names []string) error {
		at := a.api.repoURL(repo, "issues", strconv.Itoa(number))
		return a.api.patch(transport.Repeatable(ctx), at, map[string][]string{"assignees": names}, nil)
	}
	err := set(names)
	if !isRefusedName(err) && !statusIs(err, http.StatusInternalServerError) {
		return nil, err
	}
	possible, lookErr := a.api.assignable(ctx, repo)
	if lookErr != nil {
		return nil, err
	}
	refused := forge.Without(names, func(name string) bool { return possible[strings.ToLower(name)] })
	switch len(refused) {
	case 0:
		return nil, err
	case len(names):
		return refused, nil
	}
	return refused, set(forge.Without(names, func(name string) bool { return slices.Contains(refused, name) }))
}

// assignable gives the names, in lower case, of those who may be assigned. The list has no pages.
func (a *api) assignable(ctx context.Context, repo gitprovider.RepoRef) (map[string]bool, error) {
	users, err := call(ctx, a, func(c *gitea.Client) ([]*gitea.User, *gitea.Response, error) {
		return c.GetAssignees(repo.Owner, repo.Name)
	})
	names := map[string]bool{}
	for _, u := range withoutNulls(users) {
		names[strings.ToLower(u.UserName)] = true
	}
	return names, err
}
