package gitea

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/transport"
)

// Assign implements gitprovider.Assigner. The assignees are set as given: the API replaces them. Teams are those of the
// organization that owns the repository.
func (p *Provider) Assign(ctx context.Context, repo gitprovider.RepoRef, number int, reviewers, assignees []string) error {
	if err := p.noSuchNumber(repo, number); err != nil {
		return err
	}
	people, teams, refused := splitReviewers(repo, reviewers)
	more, err := p.requestReviews(ctx, repo, number, people, teams)
	if err != nil {
		return p.judge(err, repo, pullName(number))
	}
	refused = append(refused, more...)
	if more, err = p.setAssignees(ctx, repo, number, assignees); err != nil {
		return p.judge(err, repo, pullName(number))
	}
	refused = append(refused, more...)
	if len(refused) > 0 {
		slices.Sort(refused)
		return fault.New(fault.NotFound, "%s does not take %s as reviewer or assignee of %s in %s; check the names and their "+
			"access", p.base.Host, strings.Join(slices.Compact(refused), ", "), pullName(number), repo)
	}
	return nil
}

// splitReviewers tells teams from people. A team of another owner cannot review here.
func splitReviewers(repo gitprovider.RepoRef, reviewers []string) (people, teams, refused []string) {
	for _, name := range reviewers {
		owner, team, isTeam := strings.Cut(name, "/")
		switch {
		case !isTeam:
			people = append(people, name)
		case strings.EqualFold(owner, repo.Owner):
			teams = append(teams, team)
		default:
			refused = append(refused, name)
		}
	}
	return people, teams, refused
}

// requestReviews asks everybody at once. The server takes all names or none, so after a refusal it is asked one by one.
// Teams that it does not know it may leave out without a word, so they are looked for afterwards.
func (p *Provider) requestReviews(ctx context.Context, repo gitprovider.RepoRef, number int, people, teams []string) (
	refused []string, err error) {
	if len(people)+len(teams) == 0 {
		return nil, nil
	}
	err = p.requestReview(ctx, repo, number, people, teams)
	if isRefusedName(err) {
		if _, err := p.pull(ctx, repo, number); err != nil {
			return nil, err
		}
		for _, name := range people {
			switch err := p.requestReview(ctx, repo, number, []string{name}, nil); {
			case isRefusedName(err):
				refused = append(refused, name)
			case err != nil:
				return nil, err
			}
		}
		for _, name := range teams {
			switch err := p.requestReview(ctx, repo, number, nil, []string{name}); {
			case err != nil && !isRefusedName(err):
				return nil, err
			}
		}
	} else if err != nil {
		return nil, err
	}
	if len(teams) == 0 {
		return refused, nil
	}
	pr, err := p.pull(ctx, repo, number)
	if err != nil {
		return nil, err
	}
	for _, name := range teams {
		if !slices.ContainsFunc(pr.RequestedReviewersTeams, func(t *gitea.Team) bool {
			return t != nil && strings.EqualFold(t.Name, name)
		}) {
			refused = append(refused, repo.Owner+"/"+name)
		}
	}
	return refused, nil
}

func isRefusedName(err error) bool {
	return statusIs(err, http.StatusNotFound, http.StatusUnprocessableEntity)
}

func (p *Provider) requestReview(ctx context.Context, repo gitprovider.RepoRef, number int, people, teams []string) error {
	_, _, err := call(transport.Repeatable(ctx), p, func(c *gitea.Client) (struct{}, *gitea.Response, error) {
		resp, err := c.CreateReviewRequests(repo.Owner, repo.Name, int64(number), gitea.PullReviewRequestOptions{
			Reviewers: people, TeamReviewers: teams,
		})
		return struct{}{}, resp, err
	})
	return err
}

// setAssignees answers which names the server does not take. For an unknown name it answers 404, 422 or, at Gitea 1.26,
// 500; then it is looked who may be assigned, and the others are assigned.
func (p *Provider) setAssignees(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) (refused []string,
	err error) {
	if len(names) == 0 {
		return nil, nil
	}
	err = p.patchAssignees(ctx, repo, number, names)
	if !isRefusedName(err) && !statusIs(err, http.StatusInternalServerError) {
		return nil, err
	}
	possible, lookErr := p.assignable(ctx, repo)
	if lookErr != nil {
		return nil, err
	}
	var good []string
	for _, name := range names {
		if possible[strings.ToLower(name)] {
			good = append(good, name)
		} else {
			refused = append(refused, name)
		}
	}
	if len(refused) == 0 || len(good) == 0 {
		if len(refused) > 0 {
			return refused, nil
		}
		return nil, err
	}
	return refused, p.patchAssignees(ctx, repo, number, good)
}

func (p *Provider) patchAssignees(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) error {
	body, err := json.Marshal(map[string][]string{"assignees": names})
	if err != nil {
		return fault.Wrap(err, fault.Internal, "a request to Gitea could not be encoded")
	}
	_, err = p.exchange(transport.Repeatable(ctx), http.MethodPatch, p.repoURL(repo, "issues", itoa(number)), body, nil)
	return err
}

// assignable gives the names, in lower case, of those who may be assigned. The list has no pages.
func (p *Provider) assignable(ctx context.Context, repo gitprovider.RepoRef) (map[string]bool, error) {
	var users []*gitea.User
	if _, err := p.get(ctx, p.repoURL(repo, "assignees"), nil, &users); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, u := range present(users) {
		names[strings.ToLower(u.UserName)] = true
	}
	return names, nil
}
