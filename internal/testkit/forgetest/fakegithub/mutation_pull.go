package fakegithub

import (
	"fmt"
	"slices"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// assign assigns those who may be assigned; the others are silently ignored.
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
