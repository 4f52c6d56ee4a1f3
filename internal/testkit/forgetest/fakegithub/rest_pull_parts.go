package fakegithub

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

func pullPartRoutes() map[string]handler {
	return map[string]handler{
		"GET /repos/{owner}/{repo}/pulls/{pull_number}/files": withPull("pull_number", listFiles),
	}
}

func listFiles(p *place, a *exchange, pr *memhost.PR) {
	out := []object{}
	for _, d := range p.rules().diff(pr) {
		file := object{
			"sha": d.id, "filename": d.path, "status": d.status, "additions": d.additions, "deletions": d.deletions,
			"changes": d.additions + d.deletions, "blob_url": p.web("blob", pr.HeadCommit, d.path),
			"raw_url": p.web("raw", pr.HeadCommit, d.path), "contents_url": p.api("contents", d.path),
		}
		if d.was != "" {
			file["previous_filename"] = d.was
		}
		out = append(out, file)
	}
	a.reply(http.StatusOK, page(a, out))
}

func peopleRoutes() map[string]handler {
	return map[string]handler{
		"GET /repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers":  withPull("pull_number", getReviewers),
		"POST /repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers": withPull("pull_number", postReviewers),
		"POST /repos/{owner}/{repo}/issues/{issue_number}/assignees":         withPull("issue_number", postAssignees),
		"POST /repos/{owner}/{repo}/issues/{issue_number}/comments":          withPull("issue_number", postComment),

		"POST /repos/{owner}/{repo}/pulls/{pull_number}/comments/{comment_id}/replies": withPull("pull_number", postReply),
	}
}

func (s *Server) restUsers(logins []string) []object {
	out := []object{}
	for _, login := range logins {
		out = append(out, s.restUser(login))
	}
	return out
}

func (v *restView) restTeams(slugs []string) []object {
	out := []object{}
	for i, slug := range slugs {
		url := v.at.s.URL() + "/organizations/1/team/" + strconv.Itoa(i+1)
		out = append(out, object{
			"id": i + 1, "node_id": nodeID(kindTeam, v.at.id, slug), "url": url, "name": slug, "slug": slug, "description": nil,
			"permission": "push", "privacy": "closed", "parent": nil, "members_url": url + "/members{/member}",
			"repositories_url": url + "/repos", "type": "organization",
			"html_url": v.at.s.host.Web() + "/orgs/" + v.at.repo.Ref.Owner + "/teams/" + slug,
		})
	}
	return out
}

func getReviewers(p *place, a *exchange, pr *memhost.PR) {
	st := p.pull(pr)
	a.reply(http.StatusOK, object{"users": p.s.restUsers(st.reviewers), "teams": p.rest().restTeams(st.teams)})
}

func postReviewers(p *place, a *exchange, pr *memhost.PR) {
	var in struct {
		Reviewers     []string
		TeamReviewers []string `json:"team_reviewers"`
	}
	if !a.decode(&in) || !p.rights().mayWrite(a, "pull_requests", "write") {
		return
	}
	if len(in.TeamReviewers) > 0 && !p.rights().seesTeams() {
		a.fail(http.StatusUnprocessableEntity, "Validation Failed", fmt.Sprintf(
			"Could not resolve to a node with the global id of '%s'.", nodeID(kindTeam, p.id, in.TeamReviewers[0])))
		return
	}
	if reason := p.rules().cannotReview(pr, in.Reviewers, in.TeamReviewers); reason != "" {
		a.fail(http.StatusUnprocessableEntity, reason)
		return
	}
	p.rules().askFor(pr, in.Reviewers, in.TeamReviewers)
	p.changed()
	a.reply(http.StatusCreated, p.rest().restPull(pr))
}

// postAssignees answers with the issue that every pull request is.
func postAssignees(p *place, a *exchange, pr *memhost.PR) {
	var in struct{ Assignees []string }
	if !a.decode(&in) || !p.rights().mayWrite(a, "issues", "triage") {
		return
	}
	p.rules().assign(pr, in.Assignees)
	p.changed()
	issue := p.rest().restPull(pr)
	self := issue["issue_url"].(string)
	for field, value := range (object{
		"url": self, "repository_url": p.api(), "labels_url": self + "/labels{/name}", "events_url": self + "/events",
		"comments": 0, "reactions": nil, "state_reason": nil, "pull_request": object{
			"url": issue["url"], "html_url": issue["html_url"], "diff_url": issue["diff_url"],
			"patch_url": issue["patch_url"],
		},
	}) {
		issue[field] = value
	}
	for field := range issue {
		if strings.HasPrefix(field, "review_") || field == "head" || field == "base" || field == "reactions" {
			delete(issue, field)
		}
	}
	a.reply(http.StatusCreated, issue)
}
