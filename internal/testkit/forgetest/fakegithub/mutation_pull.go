package fakegithub

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

func createPullRequest(p *place, in args) (fields, error) {
	if err := p.rights().gqlMayWrite("pull_requests", "read"); err != nil {
		return nil, err
	}
	pr, problems := p.rules().openPull(newPull{
		title: in.String("title"), body: in.String("body"), head: in.String("headRefName"), base: in.String("baseRefName"),
		draft: in.Bool("draft"),
	})
	if len(problems) > 0 {
		var sentences []string
		for _, problem := range problems {
			sentences = append(sentences, problem.sentence())
		}
		return nil, refused("%s", strings.Join(sentences, ", "))
	}
	return fields{"pullRequest": lazy(func(args) (any, error) { return p.graph().pull(pr), nil })}, nil
}

func closePullRequest(p *place, in args) (fields, error) {
	pr, err := p.rules().pullOf(in.String("pullRequestId"))
	if err == nil {
		err = p.rights().gqlMayWrite("pull_requests", "write")
	}
	if err != nil {
		return nil, err
	}
	if pr.State == gitprovider.StateOpen {
		pr.State, pr.ClosedAt = gitprovider.StateClosed, p.s.host.Now()
	}
	return fields{"pullRequest": lazy(func(args) (any, error) { return p.graph().pull(pr), nil })}, nil
}

func addLabels(p *place, in args) (fields, error) {
	pr, err := p.rules().pullOf(in.String("labelableId"))
	if err == nil {
		err = p.rights().gqlMayWrite("pull_requests", "triage")
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, id := range in.Strings("labelIds") {
		kind, repo, name, ok := parseNodeID(id)
		if !ok || kind != kindLabel || repo != p.id || p.labelAt(name) < 0 {
			return nil, noNode(id)
		}
		names = append(names, name)
	}
	pr.AddLabels(names...)
	return fields{"labelable": lazy(func(args) (any, error) { return p.graph().pull(pr), nil })}, nil
}

func requestReviews(p *place, in args) (fields, error) {
	pr, err := p.rules().pullOf(in.String("pullRequestId"))
	if err == nil {
		err = p.rights().gqlMayWrite("pull_requests", "write")
	}
	if err != nil {
		return nil, err
	}
	users, err := names(in.Strings("userIds"), kindUser)
	if err != nil {
		return nil, err
	}
	teams, err := names(in.Strings("teamIds"), kindTeam)
	if err != nil {
		return nil, err
	}
	if problem := p.rules().cannotReview(pr, users, teams); problem != "" {
		return nil, refused("%s", problem)
	}
	if st := p.pull(pr); !in.Bool("union") {
		st.reviewers, st.teams = nil, nil
	}
	p.rules().askFor(pr, users, teams)
	return fields{
		"pullRequest": lazy(func(args) (any, error) { return p.graph().pull(pr), nil }),
		"actor":       p.s.graph.user(viewer), "requestedReviewersEdge": any(nil),
	}, nil
}

// names reads the names of node ids, which must be of one kind.
func names(ids []string, want string) ([]string, error) {
	var out []string
	for _, id := range ids {
		kind, _, name, ok := parseNodeID(id)
		if !ok || kind != want {
			return nil, noNode(id)
		}
		out = append(out, name)
	}
	return out, nil
}

func addAssignees(p *place, in args) (fields, error) {
	pr, err := p.rules().pullOf(in.String("assignableId"))
	if err == nil {
		err = p.rights().gqlMayWrite("pull_requests", "triage")
	}
	if err != nil {
		return nil, err
	}
	users, err := names(in.Strings("assigneeIds"), kindUser)
	if err != nil {
		return nil, err
	}
	p.rules().assign(pr, users)
	return fields{"assignable": lazy(func(args) (any, error) { return p.graph().pull(pr), nil })}, nil
}

// assign assigns those who may be assigned; the others are passed over without a word.
func (r *pullRules) assign(pr *memhost.PR, logins []string) {
	st := r.at.pull(pr)
	for _, login := range logins {
		known := slices.IndexFunc(r.at.set.people(), func(have string) bool { return lower(have) == lower(login) })
		if known >= 0 && !slices.Contains(st.assignees, r.at.set.people()[known]) {
			st.assignees = append(st.assignees, r.at.set.people()[known])
		}
	}
}

// cannotReview says why somebody cannot be asked for a review; "" if all can.
func (r *pullRules) cannotReview(pr *memhost.PR, users, teams []string) string {
	for _, login := range users {
		if lower(login) == lower(r.author(pr)) {
			return "Review cannot be requested from pull request author."
		}
	}
	stranger := slices.ContainsFunc(users, func(login string) bool {
		return !slices.ContainsFunc(r.at.set.people(), func(have string) bool { return lower(have) == lower(login) })
	})
	if stranger || slices.ContainsFunc(teams,
		func(slug string) bool { return !slices.Contains(r.at.set.People.Teams, slug) }) {
		return fmt.Sprintf("Reviews may only be requested from collaborators. One or more of the users or teams you "+
			"specified is not a collaborator of the %s repository.", r.at.repo.Ref)
	}
	return ""
}

// askFor records whose reviews are asked for.
func (r *pullRules) askFor(pr *memhost.PR, users, teams []string) {
	st := r.at.pull(pr)
	for _, login := range users {
		if !slices.Contains(st.reviewers, login) {
			st.reviewers = append(st.reviewers, login)
		}
	}
	for _, slug := range teams {
		if !slices.Contains(st.teams, slug) {
			st.teams = append(st.teams, slug)
		}
	}
}
