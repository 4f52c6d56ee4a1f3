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
