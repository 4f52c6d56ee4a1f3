package fakegithub

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

func pullRoutes() map[string]handler {
	return map[string]handler{
		"GET /repos/{owner}/{repo}/pulls":                 listPulls,
		"POST /repos/{owner}/{repo}/pulls":                postPull,
		"GET /repos/{owner}/{repo}/pulls/{pull_number}":   withPull("pull_number", getPull),
		"PATCH /repos/{owner}/{repo}/pulls/{pull_number}": withPull("pull_number", patchPull),
	}
}

// withPull makes a handler of one for a pull request, whose number is a part of the path.
func withPull(number string, handle func(p *place, a *exchange, pr *memhost.PR)) handler {
	return func(p *place, a *exchange) {
		pr := p.repo.PR(a.number(number))
		switch {
		case pr == nil:
			a.notFound()
		case p.hides(doorREST, pullName(pr.Number)):
			a.unknownPull(p, pr)
		default:
			handle(p, a, pr)
		}
	}
}

// unknownPull sets GitHub's answer about a pull request that it has just made: labels and reviewers are set through its
// node.
func (a *exchange) unknownPull(p *place, pr *memhost.PR) {
	if strings.HasSuffix(a.route, "/labels") || strings.HasSuffix(a.route, "/requested_reviewers") {
		a.fail(http.StatusUnprocessableEntity, "Validation Failed", "Could not resolve to a node with the global id of '"+
			nodeID(kindPull, p.id, strconv.Itoa(pr.Number))+"'.")
		return
	}
	a.notFound()
}

// restPull returns a pull request as lists show it.
func (v *restView) restPull(pr *memhost.PR) object {
	st, number := v.at.pull(pr), strconv.Itoa(pr.Number)
	state := "open"
	var merged any
	if pr.State != gitprovider.StateOpen {
		state = "closed"
	}
	if pr.State == gitprovider.StateMerged {
		merged = stamp(pr.ClosedAt)
	}
	self, issue := v.at.api("pulls", number), v.at.api("issues", number)
	addresses := map[string]string{
		"self": self, "html": v.at.web("pull", number), "issue": issue, "comments": issue + "/comments",
		"review_comments": self + "/comments", "review_comment": v.at.api("pulls/comments{/number}"),
		"commits": self + "/commits", "statuses": v.at.api("statuses", pr.HeadCommit),
	}
	links := object{}
	for name, address := range addresses {
		links[name] = object{"href": address}
	}
	mergeCommit := v.at.rules().mergeCommit(pr)
	if pr.State == gitprovider.StateOpen {
		mergeCommit = st.trial
	}
	assignees := v.at.s.restUsers(st.assignees)
	var assignee any
	if len(assignees) > 0 {
		assignee = assignees[0]
	}
	return object{
		"id": v.at.id*1000 + pr.Number, "node_id": nodeID(kindPull, v.at.id, number), "number": pr.Number, "state": state,
		"locked": false, "title": pr.Title, "body": body(pr.Body), "user": v.at.s.restUser(v.at.rules().author(pr)),
		"url":      self,
		"html_url": addresses["html"], "diff_url": addresses["html"] + ".diff", "patch_url": addresses["html"] + ".patch",
		"issue_url": issue, "commits_url": addresses["commits"], "comments_url": addresses["comments"],
		"review_comments_url": addresses["review_comments"], "review_comment_url": addresses["review_comment"],
		"statuses_url": addresses["statuses"], "created_at": stamp(pr.CreatedAt), "updated_at": stamp(st.updated),
		"closed_at": stamp(pr.ClosedAt), "merged_at": merged, "merge_commit_sha": body(mergeCommit), "assignee": assignee,
		"assignees": assignees, "requested_reviewers": v.at.s.restUsers(st.reviewers),
		"requested_teams": v.restTeams(st.teams), "labels": v.restLabels(pr.Labels), "milestone": nil, "draft": st.draft,
		"head": v.restHead(pr), "base": v.restEnd(v.at.repo.Ref.Owner, pr.Base, v.at.rules().baseTip(pr)), "_links": links,
		"author_association": "COLLABORATOR", "auto_merge": nil, "active_lock_reason": nil,
	}
}

// body returns a text, or null for none.
func body(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func (v *restView) restHead(pr *memhost.PR) object {
	owner, branch := v.at.headOf(pr)
	return v.restEnd(owner, branch, pr.HeadCommit)
}

// restEnd returns one end of a pull request: a branch of the repository, or of somebody's fork of it.
func (v *restView) restEnd(owner, branch, commit string) object {
	repo := v.restRepo()
	if owner != v.at.repo.Ref.Owner {
		repo["id"], repo["full_name"] = v.at.id*10, owner+"/"+v.at.repo.Ref.Name
		repo["owner"], repo["fork"] = v.at.s.restUser(owner), true
	}
	return object{"label": owner + ":" + branch, "ref": branch, "sha": commit, "user": repo["owner"], "repo": repo}
}

// restFullPull returns a pull request by itself. Making it is one read of the mergeability.
func (v *restView) restFullPull(pr *memhost.PR) object {
	ok := v.at.rules().mergeable(pr)
	out, diffs := v.restPull(pr), v.at.rules().diff(pr)
	additions, deletions := 0, 0
	for _, d := range diffs {
		additions, deletions = additions+d.additions, deletions+d.deletions
	}
	out["mergeable"], out["rebaseable"] = ok, ok
	out["mergeable_state"] = lower(v.at.rules().mergeState(pr, ok))
	out["merged"], out["merged_by"] = pr.State == gitprovider.StateMerged, nil
	out["comments"], out["review_comments"], out["maintainer_can_modify"] = 0, 0, v.at.pull(pr).maintained
	out["commits"], out["additions"], out["deletions"] = len(v.at.rules().commits(pr)), additions, deletions
	out["changed_files"] = len(diffs)
	return out
}

func listPulls(p *place, a *exchange) {
	state, head := a.query.Get("state"), a.query.Get("head")
	if state == "" {
		state = "open"
	}
	var prs []*memhost.PR
	for _, pr := range p.repo.PRs {
		owner, branch := p.headOf(pr)
		open := pr.State == gitprovider.StateOpen
		switch {
		case (state == "open" && !open) || (state == "closed" && open),
			strings.Contains(head, ":") && lower(head) != lower(owner+":"+branch), // a head without an owner is ignored
			a.query.Has("base") && a.query.Get("base") != pr.Base:
		default:
			prs = append(prs, pr)
		}
	}
	if a.query.Get("sort") == "updated" {
		slices.SortStableFunc(prs, func(x, y *memhost.PR) int { return p.pull(x).updated.Compare(p.pull(y).updated) })
	}
	direction := a.query.Get("direction")
	if direction == "desc" || (direction == "" && slices.Contains([]string{"", "created"}, a.query.Get("sort"))) {
		slices.Reverse(prs)
	}
	out := []object{}
	for _, pr := range page(a, prs) {
		out = append(out, p.rest().restPull(pr))
	}
	a.reply(http.StatusOK, out)
}

func getPull(p *place, a *exchange, pr *memhost.PR) {
	a.reply(http.StatusOK, p.rest().restFullPull(pr))
}

func postPull(p *place, a *exchange) {
	var in struct {
		Title, Body, Head, Base string
		Draft                   bool
	}
	if !a.decode(&in) || !p.rights().mayWrite(a, "pull_requests", "read") {
		return
	}
	if p.hides(doorREST, branchName(in.Head)) {
		a.invalid("PullRequest", "head", "invalid")
		return
	}
	if p.hides(doorREST, commitsOf(in.Head)) {
		a.custom("PullRequest", "No commits between "+in.Base+" and "+in.Head)
		return
	}
	pr, problems := p.rules().openPull(newPull{title: in.Title, body: in.Body, head: in.Head, base: in.Base,
		draft: in.Draft})
	if len(problems) > 0 {
		refusePull(a, problems)
		return
	}
	p.made(pullName(pr.Number))
	p.changed()
	a.header.Set("Location", p.api("pulls", strconv.Itoa(pr.Number)))
	a.reply(http.StatusCreated, p.rest().restFullPull(pr))
}

func refusePull(a *exchange, problems []problem) {
	var errs []any
	for _, x := range problems {
		if strings.HasPrefix(x.message, "Draft pull requests") { // GitHub says this above, not among the errors
			a.fail(http.StatusUnprocessableEntity, x.message)
			return
		}
		e := object{"resource": "PullRequest", "code": x.code}
		if x.field != "" {
			e["field"] = x.field
		}
		if x.message != "" {
			e["message"] = x.message
		}
		errs = append(errs, e)
	}
	a.fail(http.StatusUnprocessableEntity, "Validation Failed", errs...)
}

func patchPull(p *place, a *exchange, pr *memhost.PR) {
	var in struct{ Title, Body, State, Base *string }
	if !a.decode(&in) || !p.rights().mayWrite(a, "pull_requests", "write") {
		return
	}
	switch {
	case in.Base != nil && p.tip(*in.Base) == "":
		a.invalid("PullRequest", "base", "invalid")
		return
	case in.Title != nil && strings.TrimSpace(*in.Title) == "":
		a.invalid("PullRequest", "title", "missing_field")
		return
	case in.State != nil && *in.State == "open" && pr.State != gitprovider.StateOpen && p.repo.Branches[pr.Branch] == "":
		a.custom("PullRequest", "state cannot be changed. The "+pr.Branch+" branch has been deleted.")
		return
	}
	for _, change := range []struct{ to, field *string }{{in.Title, &pr.Title}, {in.Body, &pr.Body}, {in.Base, &pr.Base}} {
		if change.to != nil {
			*change.field = *change.to
		}
	}
	switch {
	case in.State == nil || pr.State == gitprovider.StateMerged:
	case *in.State == "closed" && pr.State == gitprovider.StateOpen:
		pr.State, pr.ClosedAt = gitprovider.StateClosed, p.s.host.Now()
	case *in.State == "open" && pr.State == gitprovider.StateClosed:
		pr.State, pr.ClosedAt = gitprovider.StateOpen, time.Time{}
	}
	p.changed()
	a.reply(http.StatusOK, p.rest().restFullPull(pr))
}

func mergeRoutes() map[string]handler {
	return map[string]handler{
		"PUT /repos/{owner}/{repo}/pulls/{pull_number}/merge": withPull("pull_number", putMerge),
	}
}

// putMerge merges by a commit with two parents, which is GitHub's default.
func putMerge(p *place, a *exchange, pr *memhost.PR) {
	var in struct {
		SHA     string
		Title   string `json:"commit_title"`
		Message string `json:"commit_message"`
		Method  string `json:"merge_method"`
	}
	if !a.decode(&in) || !p.rights().mayWrite(a, "contents", "write") {
		return
	}
	if in.Method != "" && in.Method != "merge" {
		p.s.t.Errorf("the fake GitHub cannot merge by %s", in.Method)
	}
	base := p.tip(pr.Base)
	files, ok := p.repo.Merge(base, pr.HeadCommit)
	switch {
	case pr.State != gitprovider.StateOpen || !ok:
		a.fail(http.StatusMethodNotAllowed, "Pull Request is not mergeable")
	case p.pull(pr).draft:
		a.fail(http.StatusMethodNotAllowed, "Pull Request is still a draft")
	case p.rules().needsReview(pr) && p.rules().decision(pr) != "APPROVED":
		a.fail(http.StatusMethodNotAllowed, "At least 1 approving review is required by reviewers with write access.")
	case in.SHA != "" && in.SHA != pr.HeadCommit:
		a.fail(http.StatusConflict, "Head branch was modified. Review and try the merge again.")
	default:
		if in.Title == "" {
			owner, branch := p.headOf(pr)
			in.Title = fmt.Sprintf("Merge pull request #%d from %s/%s", pr.Number, owner, branch)
		}
		if in.Message == "" {
			in.Message = pr.Title
		}
		id := p.repo.Add(&memhost.Commit{
			Parents: []string{base, pr.HeadCommit}, Files: files, Message: in.Title + "\n\n" + in.Message,
		})
		p.details[id] = p.byGitHub()
		p.repo.Branches[pr.Base] = id
		p.changed()
		a.reply(http.StatusOK, object{"sha": id, "merged": true, "message": "Pull Request successfully merged"})
	}
}

// byGitHub returns the details of a commit that GitHub makes now for the owner of the token.
func (p *place) byGitHub() commitDetails {
	at := p.s.host.Now()
	return commitDetails{
		author:    signature{viewer, viewer + "@users.noreply.github.example", at},
		committer: signature{signer, "noreply@github.example", at},
	}
}

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
