package fakegithub

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// postComment adds a comment of whoever may see the repository.
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
