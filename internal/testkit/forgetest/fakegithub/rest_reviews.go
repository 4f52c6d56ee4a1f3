package fakegithub

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
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

// postComment adds a comment of anyone who may see the repository.
func postComment(p *place, a *exchange, pr *memhost.PR) {
	var in struct{ Body string }
	if !a.decode(&in) || !p.rights().mayWrite(a, "pull_requests", "read") {
		return
	}
	if strings.TrimSpace(in.Body) == "" {
		a.invalid("IssueComment", "body", "missing_field")
		return
	}
	pr.Comments = append(pr.Comments, gitprovider.Remark{Author: a.by.who, Body: in.Body, At: p.s.host.Now()})
	p.changed()
	i := len(pr.Comments) - 1
	said, issue := pr.Comments[i], p.api("issues", strconv.Itoa(pr.Number))
	a.reply(http.StatusCreated, object{
		"id": p.id*1000 + i, "node_id": nodeID(kindComment, p.id, fmt.Sprintf("%d/%d", pr.Number, i)),
		"url": p.api("issues", "comments", strconv.Itoa(p.id*1000+i)), "issue_url": issue,
		"html_url": p.web("pull", fmt.Sprintf("%d#issuecomment-%d", pr.Number, i)), "body": said.Body,
		"user": p.s.restUser(said.Author), "created_at": stamp(said.At), "updated_at": stamp(said.At),
		"author_association": p.rules().association(said.Author),
	})
}

// postReply answers the first comment of a conversation, by a review of its own. What answers an answer is not taken.
func postReply(p *place, a *exchange, pr *memhost.PR) {
	var in struct{ Body string }
	if !a.decode(&in) || !p.rights().mayWrite(a, "pull_requests", "write") {
		return
	}
	id := a.number("comment_id")
	threads := threadsOf(pr)
	i := slices.IndexFunc(threads, func(t thread) bool { return lineID(p, t.comments[0]) == id })
	switch {
	case i < 0:
		a.notFound()
		return
	case strings.TrimSpace(in.Body) == "":
		a.invalid("PullRequestReviewComment", "body", "missing_field")
		return
	}
	to := threads[i].on
	to.Body, to.Author, to.Thread, to.Resolved = in.Body, "", fmt.Sprint(threads[i].comments[0]), false
	pr.Reviews = append(pr.Reviews, gitprovider.Review{
		Author: a.by.who, State: gitprovider.ReviewCommented, SubmittedAt: p.s.host.Now(),
		Comments: []gitprovider.LineComment{to},
	})
	p.changed()
	made := lineAt{len(pr.Reviews) - 1, 0}
	a.reply(http.StatusCreated, object{
		"id": lineID(p, made), "node_id": nodeID(kindLine, p.id, fmt.Sprintf("%d/%d/0", pr.Number, made.review)),
		"body": in.Body,
		"path": to.Path, "in_reply_to_id": id, "user": p.s.restUser(a.by.who),
		"author_association": p.rules().association(a.by.who),
		"pull_request_url":   p.api("pulls", strconv.Itoa(pr.Number)),
	})
}

func labelRoutes() map[string]handler {
	return map[string]handler{
		"GET /repos/{owner}/{repo}/labels":        listLabels,
		"POST /repos/{owner}/{repo}/labels":       postLabel,
		"GET /repos/{owner}/{repo}/labels/{name}": getLabel,
		"GET /repos/{owner}/{repo}/issues/{issue_number}/labels": withPull("issue_number",
			func(p *place, a *exchange, pr *memhost.PR) {
				a.reply(http.StatusOK, page(a, p.rest().restLabels(pr.Labels)))
			}),
		"POST /repos/{owner}/{repo}/issues/{issue_number}/labels": withPull("issue_number", postIssueLabels),
	}
}

// restLabels returns labels of the repository. Those that were set without a request are defined by that.
func (v *restView) restLabels(names []string) []object {
	v.at.defineLabels(names...)
	out := []object{}
	for _, name := range names {
		at := v.at.labelAt(name)
		name = v.at.set.Labels[at]
		look := v.at.look(name)
		out = append(out, object{
			"id": v.at.id*1000 + at, "node_id": nodeID(kindLabel, v.at.id, name),
			"url":  v.at.api("labels", url.PathEscape(name)),
			"name": name, "color": look.color, "default": look.isDefault, "description": look.description,
		})
	}
	return out
}

func listLabels(p *place, a *exchange) {
	a.reply(http.StatusOK, page(a, p.rest().restLabels(p.set.Labels)))
}

func getLabel(p *place, a *exchange) {
	if p.labelAt(a.path["name"]) < 0 {
		a.notFound()
		return
	}
	a.reply(http.StatusOK, p.rest().restLabels([]string{a.path["name"]})[0])
}

// newLabel is the body of a request for a label.
type newLabel struct {
	Name, Color string
	Description *string
}

func (l newLabel) look() labelLook {
	out := labelLook{color: plainColor}
	if l.Color != "" {
		out.color = lower(l.Color)
	}
	if l.Description != nil {
		out.description = *l.Description
	}
	return out
}

func postLabel(p *place, a *exchange) {
	var in newLabel
	switch {
	case !a.decode(&in) || !p.rights().mayWrite(a, "issues", "write"):
	case p.labelAt(in.Name) >= 0:
		a.invalid("Label", "name", "already_exists")
	case strings.TrimSpace(in.Name) == "" || len(in.Name) > 50:
		a.invalid("Label", "name", "invalid")
	case in.Color != "" && !isColor(in.Color):
		a.invalid("Label", "color", "invalid")
	default:
		p.defineLabels(in.Name)
		p.looks[lower(in.Name)] = in.look()
		a.header.Set("Location", p.api("labels", url.PathEscape(in.Name)))
		a.reply(http.StatusCreated, p.rest().restLabels([]string{in.Name})[0])
	}
}

// postIssueLabels adds labels, and defines those that the repository lacks. Names come in a list, or in a list within
// an object.
func postIssueLabels(p *place, a *exchange, pr *memhost.PR) {
	var in struct{ Labels []string }
	if json.Unmarshal(a.body, &in.Labels) != nil && !a.decode(&in) {
		return
	}
	if !p.rights().mayWrite(a, "issues", "triage") {
		return
	}
	for _, name := range in.Labels {
		if strings.TrimSpace(name) == "" || len(name) > 50 {
			a.invalid("Label", "name", "invalid")
			return
		}
		p.defineLabels(name)
		pr.AddLabels(p.set.Labels[p.labelAt(name)])
	}
	p.changed()
	a.reply(http.StatusOK, p.rest().restLabels(pr.Labels))
}
