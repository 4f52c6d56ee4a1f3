package fakegithub

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

func reviewRoutes() map[string]handler {
	return map[string]handler{
		"GET /repos/{owner}/{repo}/pulls/{pull_number}/reviews":  withPull("pull_number", listReviews),
		"POST /repos/{owner}/{repo}/pulls/{pull_number}/reviews": withPull("pull_number", postReview),
	}
}

func (v *restView) restReview(pr *memhost.PR, i int) object {
	r, pull := pr.Reviews[i], v.at.api("pulls", strconv.Itoa(pr.Number))
	html := v.at.web("pull", fmt.Sprintf("%d#pullrequestreview-%d", pr.Number, i))
	out := object{
		"id": v.at.id*1000 + i, "node_id": nodeID(kindReview, v.at.id, fmt.Sprintf("%d/%d", pr.Number, i)),
		"user": v.at.s.restUser(r.Author), "body": r.Body, "state": reviewState(r.State), "html_url": html,
		"pull_request_url": pull, "author_association": "COLLABORATOR", "commit_id": pr.HeadCommit,
		"_links": object{"html": object{"href": html}, "pull_request": object{"href": pull}},
	}
	if !r.SubmittedAt.IsZero() {
		out["submitted_at"] = stamp(r.SubmittedAt)
	}
	return out
}

// listReviews shows a pending review to its author only.
func listReviews(p *place, a *exchange, pr *memhost.PR) {
	out := []object{}
	for i, r := range pr.Reviews {
		if r.State != gitprovider.ReviewPending || r.Author == a.by.who {
			out = append(out, p.rest().restReview(pr, i))
		}
	}
	a.reply(http.StatusOK, page(a, out))
}

// postReview adds a review of anyone who may see the repository; without an event it is pending. Comments on lines are
// not kept.
func postReview(p *place, a *exchange, pr *memhost.PR) {
	var in struct{ Event, Body string }
	if !a.decode(&in) || !p.rights().mayWrite(a, "pull_requests", "read") {
		return
	}
	review := gitprovider.Review{Author: a.by.who, Body: in.Body, State: map[string]gitprovider.ReviewState{
		"APPROVE": gitprovider.ReviewApproved, "REQUEST_CHANGES": gitprovider.ReviewChangesRequested,
		"COMMENT": gitprovider.ReviewCommented, "": gitprovider.ReviewPending,
	}[in.Event]}
	own := a.by.who == p.rules().author(pr)
	refuse := func(why string) { a.fail(http.StatusUnprocessableEntity, "Unprocessable Entity", why) }
	switch {
	case own && in.Event == "APPROVE":
		refuse("Review Can not approve your own pull request")
	case own && in.Event == "REQUEST_CHANGES":
		refuse("Review Can not request changes on your own pull request")
	case strings.TrimSpace(in.Body) == "" && (in.Event == "COMMENT" || in.Event == "REQUEST_CHANGES"):
		refuse("Review Body can't be blank") // the wording is a guess; the description only says that it is required
	case in.Event == "" && slices.ContainsFunc(pr.Reviews, func(r gitprovider.Review) bool {
		return r.Author == a.by.who && r.State == gitprovider.ReviewPending
	}):
		refuse("User can only have one pending review per pull request")
	default:
		if review.State != gitprovider.ReviewPending {
			review.SubmittedAt = p.s.host.Now()
		}
		pr.Reviews = append(pr.Reviews, review)
		p.changed()
		a.reply(http.StatusOK, p.rest().restReview(pr, len(pr.Reviews)-1))
	}
}
