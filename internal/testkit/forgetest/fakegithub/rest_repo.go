package fakegithub

import (
	"net/http"
	"path"
	"strings"
	"time"
)

func repoRoutes() map[string]handler {
	return map[string]handler{
		"GET /repos/{owner}/{repo}": func(p *place, a *exchange) {
			a.header.Set("X-Accepted-GitHub-Permissions", "metadata=read")
			a.reply(http.StatusOK, p.rest().restFullRepo())
		},
	}
}

// stamp returns a time as REST writes it, or null.
func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(time.RFC3339)
}

// links returns the addresses of a repository's parts in REST, by the field that has them.
func (v *restView) links() object {
	out := object{}
	for field, part := range map[string]string{
		"archive": "{archive_format}{/ref}", "assignees": "assignees{/user}", "blobs": "git/blobs{/sha}",
		"branches": "branches{/branch}", "collaborators": "collaborators{/collaborator}", "comments": "comments{/number}",
		"commits": "commits{/sha}", "compare": "compare/{base}...{head}", "contents": "contents/{+path}",
		"contributors": "contributors", "deployments": "deployments", "downloads": "downloads", "events": "events",
		"forks": "forks", "git_commits": "git/commits{/sha}", "git_refs": "git/refs{/sha}", "git_tags": "git/tags{/sha}",
		"hooks": "hooks", "issue_comment": "issues/comments{/number}", "issue_events": "issues/events{/number}",
		"issues": "issues{/number}", "keys": "keys{/key_id}", "labels": "labels{/name}", "languages": "languages",
		"merges": "merges", "milestones": "milestones{/number}", "notifications": "notifications{?since,all,participating}",
		"pulls": "pulls{/number}", "releases": "releases{/id}", "stargazers": "stargazers", "statuses": "statuses/{sha}",
		"subscribers": "subscribers", "subscription": "subscription", "tags": "tags", "teams": "teams",
		"trees": "git/trees{/sha}",
	} {
		out[field+"_url"] = v.at.api(part)
	}
	return out
}

// restRepo returns the repository as REST shows it inside other things.
func (v *restView) restRepo() object {
	out := v.links()
	visibility := "public"
	if v.at.set.Private {
		visibility = "private"
	}
	host := strings.TrimPrefix(v.at.s.host.Web(), "https://")
	for field, value := range (object{
		"id": v.at.id, "node_id": nodeID(kindRepo, v.at.id, ""), "name": v.at.repo.Ref.Name,
		"full_name": v.at.repo.Ref.String(),
		"owner":     v.at.s.restUser(v.at.repo.Ref.Owner), "private": v.at.set.Private, "html_url": v.at.web(),
		"url":         v.at.api(),
		"description": nil, "fork": v.at.repo.Fork, "created_at": stamp(epoch()), "updated_at": stamp(epoch()),
		"pushed_at": stamp(epoch()), "git_url": "git://" + host + "/" + v.at.repo.Ref.String() + ".git",
		"ssh_url":   "git@" + host + ":" + v.at.repo.Ref.String() + ".git",
		"clone_url": v.at.web() + ".git", "svn_url": v.at.web(), "mirror_url": nil, "homepage": nil, "size": 1,
		"language": nil, "stargazers_count": 0, "watchers_count": 0, "forks_count": 0, "open_issues_count": 0,
		"watchers": 0, "forks": 0, "open_issues": 0, "license": nil, "default_branch": v.at.repo.Default,
		"has_issues": true, "has_projects": true, "has_wiki": true, "has_pages": false, "has_discussions": false,
		"has_downloads": true, "archived": v.at.repo.Archived, "disabled": false, "visibility": visibility,
		"allow_forking": true, "is_template": false, "topics": []string{}, "web_commit_signoff_required": false,
		"permissions": v.restPermissions(),
	}) {
		out[field] = value
	}
	return out
}

// restFullRepo returns the repository by itself.
func (v *restView) restFullRepo() object {
	out := v.restRepo()
	out["network_count"], out["subscribers_count"] = 0, 1
	return out
}

func (v *restView) restPermissions() map[string]bool {
	return map[string]bool{
		"pull": v.at.set.allows("read"), "triage": v.at.set.allows("triage"), "push": v.at.set.allows("write"),
		"maintain": v.at.set.allows("maintain"), "admin": v.at.set.allows("admin"),
	}
}

// restUser returns a user as REST shows them inside other things.
func (s *Server) restUser(login string) object {
	out := object{
		"login": login, "id": userID(login), "node_id": nodeID(kindUser, 0, login), "gravatar_id": "", "type": "User",
		"site_admin": false, "html_url": s.host.Web() + "/" + login, "url": s.URL() + "/users/" + login,
		"avatar_url": s.host.Web() + "/" + login + ".png", "user_view_type": "public",
	}
	for field, part := range map[string]string{
		"events": "events{/privacy}", "followers": "followers", "following": "following{/other_user}",
		"gists": "gists{/gist_id}", "organizations": "orgs", "received_events": "received_events", "repos": "repos",
		"starred": "starred{/owner}{/repo}", "subscriptions": "subscriptions",
	} {
		out[field+"_url"] = s.URL() + "/users/" + login + "/" + part
	}
	return out
}

// userID returns a number that stands for a name.
func userID(login string) int {
	id := 1000
	for _, r := range lower(login) {
		id = (id*31 + int(r)) % 90_000_000
	}
	return id
}

func branchRoutes() map[string]handler {
	return map[string]handler{
		"GET /repos/{owner}/{repo}/branches":                     listBranches,
		"GET /repos/{owner}/{repo}/branches/{branch}":            getBranch,
		"GET /repos/{owner}/{repo}/branches/{branch}/protection": getProtection,
		"GET /repos/{owner}/{repo}/rules/branches/{branch}":      getRules,
		"GET /repos/{owner}/{repo}/contents/{path}":              getContents,
	}
}

func listBranches(p *place, a *exchange) {
	out := []object{}
	for _, branch := range p.branches() {
		if a.query.Get("protected") == "true" && !p.set.protects(branch) {
			continue
		}
		out = append(out, object{
			"name": branch, "commit": object{"sha": p.tip(branch), "url": p.api("commits", p.tip(branch))},
			"protected": p.set.protects(branch),
		})
	}
	a.reply(http.StatusOK, page(a, out))
}

func getBranch(p *place, a *exchange) {
	branch := a.path["branch"]
	if p.tip(branch) == "" {
		a.fail(http.StatusNotFound, "Branch not found")
		return
	}
	a.reply(http.StatusOK, p.rest().restBranch(branch))
}

// restBranch returns a branch by itself.
func (v *restView) restBranch(branch string) object {
	self := v.at.api("branches", branch)
	return object{
		"name": branch, "commit": v.restFullCommit(v.at.tip(branch)), "protected": v.at.set.protects(branch),
		"_links":         object{"self": self, "html": v.at.web("tree", branch)},
		"protection":     object{"enabled": v.at.set.protects(branch)},
		"protection_url": self + "/protection",
	}
}

// getProtection is for administrators only.
func getProtection(p *place, a *exchange) {
	branch := a.path["branch"]
	switch {
	case p.set.Token.MissingScopes || !p.set.allows("admin"):
		(&refusal{status: http.StatusForbidden, message: "Resource not accessible by personal access token",
			accepts: "administration=read"}).rest(a)
	case p.tip(branch) == "":
		a.fail(http.StatusNotFound, "Branch not found")
	case !p.set.protects(branch):
		a.fail(http.StatusNotFound, "Branch not protected")
	default:
		url := p.api("branches", branch, "protection")
		out := object{
			"url": url, "enforce_admins": object{"url": url + "/enforce_admins", "enabled": true},
			"allow_force_pushes": object{"enabled": false}, "allow_deletions": object{"enabled": false},
			"block_creations": object{"enabled": true}, "lock_branch": object{"enabled": false},
		}
		if p.set.Protection.RequireReview {
			out["required_pull_request_reviews"] = object{
				"url": url + "/required_pull_request_reviews", "dismiss_stale_reviews": false,
				"require_code_owner_reviews": false, "required_approving_review_count": 1,
			}
		}
		a.reply(http.StatusOK, out)
	}
}

// getRules lists the rules that hold for a branch, whether or not it exists.
func getRules(p *place, a *exchange) {
	rules := []object{}
	rule := func(typ string, parameters object) {
		out := object{
			"type": typ, "ruleset_id": 1, "ruleset_source": p.repo.Ref.String(), "ruleset_source_type": "Repository",
		}
		if parameters != nil {
			out["parameters"] = parameters
		}
		rules = append(rules, out)
	}
	if p.set.protects(a.path["branch"]) {
		rule("creation", nil)
		rule("deletion", nil)
		rule("pull_request", object{
			"dismiss_stale_reviews_on_push": false, "require_code_owner_review": false,
			"require_last_push_approval": false, "required_approving_review_count": p.approvals(),
			"required_review_thread_resolution": false,
		})
	}
	for _, r := range p.set.Protection.Rules {
		if ok, err := path.Match(r.Branches, a.path["branch"]); ok && err == nil {
			rule(r.Type, r.Parameters)
		}
	}
	a.reply(http.StatusOK, page(a, rules))
}

// maxContent is the most bytes that the contents API gives in JSON.
const maxContent = 1 << 20

func getContents(p *place, a *exchange) {
	rev := p.repo.Default
	if a.query.Get("ref") != "" {
		rev = a.query.Get("ref")
	}
	commit := p.read().commitOf(rev)
	if commit == "" {
		a.fail(http.StatusNotFound, "No commit found for the ref "+rev)
		return
	}
	full := strings.Trim(a.path["path"], "/")
	e, found := p.read().entry(p.read().root(commit), full)
	switch {
	case !found:
		a.notFound()
	case e.mode == modeDir:
		list := []object{}
		for _, inside := range p.objects.trees[e.id] {
			list = append(list, p.rest().restContent(inside, path.Join(full, inside.name)))
		}
		a.reply(http.StatusOK, list)
	case wantsRaw(a) && e.kind() == "blob":
		a.header.Set("Content-Type", "application/vnd.github.raw+json; charset=utf-8")
		a.reply(http.StatusOK, nil)
		a.raw = []byte(e.file.Content)
	default:
		out := p.rest().restContent(e, full)
		switch {
		case e.mode == modeSymlink:
			out["target"] = e.file.Content
		case e.mode == modeSubmodule:
			out["submodule_git_url"] = p.web() + "-sub.git"
		case len(e.file.Content) > maxContent:
			out["encoding"], out["content"] = "none", ""
		default:
			out["encoding"], out["content"] = "base64", wrapped(e.file.Content)
		}
		a.reply(http.StatusOK, out)
	}
}

func (v *restView) restContent(e treeEntry, full string) object {
	kinds := map[string]string{modeDir: "dir", modeSymlink: "symlink", modeSubmodule: "submodule"}
	kind := kinds[e.mode]
	if kind == "" {
		kind = "file"
	}
	self, git := v.at.api("contents", full), v.at.api("git", e.kind()+"s", e.id)
	return object{
		"name": e.name, "path": full, "sha": e.id, "size": len(e.file.Content), "type": kind, "url": self,
		"git_url": git, "html_url": v.at.web("blob", full), "download_url": nil,
		"_links": object{"self": self, "git": git, "html": v.at.web("blob", full)},
	}
}

func checkRoutes() map[string]handler {
	return map[string]handler{
		"GET /repos/{owner}/{repo}/commits/{ref}/status":     getStatus,
		"GET /repos/{owner}/{repo}/commits/{ref}/check-runs": listRuns,
	}
}

// commitIn finds the commit that a path names; it answers the request if there is none.
func (p *place) commitIn(a *exchange) string {
	commit := p.read().commitOf(a.path["ref"])
	if commit == "" {
		a.fail(http.StatusUnprocessableEntity, "No commit found for SHA: "+a.path["ref"])
	}
	return commit
}

func getStatus(p *place, a *exchange) {
	commit := p.commitIn(a)
	if commit == "" {
		return
	}
	list := []object{}
	statuses := p.statuses(commit)
	for i, st := range statuses {
		list = append(list, object{
			"id": i + 1, "node_id": nodeID(kindContext, p.id, commit+"/"+st.Context), "url": p.api("statuses", commit),
			"avatar_url": p.s.host.Web() + "/" + viewer + ".png", "context": st.Context, "state": st.State,
			"description": body(st.Description),
			"target_url":  body(st.TargetURL), "created_at": stamp(epoch()), "updated_at": stamp(epoch()),
		})
	}
	a.reply(http.StatusOK, object{
		"state": combined(statuses), "sha": commit, "total_count": len(statuses), "statuses": page(a, list),
		"repository": p.rest().restMinimalRepo(), "commit_url": p.api("commits", commit),
		"url": p.api("commits", commit, "status"),
	})
}

func listRuns(p *place, a *exchange) {
	commit := p.commitIn(a)
	if commit == "" {
		return
	}
	runs := []object{}
	for i, run := range p.runs(commit) {
		wanted := a.query.Get("check_name") == "" || a.query.Get("check_name") == run.Name
		if !wanted || (a.query.Has("status") && a.query.Get("status") != run.Status) {
			continue
		}
		var completed any
		if run.Status == "completed" {
			completed = stamp(epoch())
		}
		runs = append(runs, object{
			"id": i + 1, "node_id": nodeID(kindCheckRun, p.id, commit+"/"+run.Name), "head_sha": commit, "name": run.Name,
			"url": p.api("check-runs/1"), "html_url": p.web("runs", commit), "details_url": p.web("runs", commit),
			"external_id": "", "status": run.Status, "conclusion": body(run.Conclusion), "started_at": stamp(epoch()),
			"completed_at": completed, "check_suite": object{"id": 1}, "app": nil, "pull_requests": []object{},
			"output": object{"title": nil, "summary": nil, "text": nil, "annotations_count": 0,
				"annotations_url": p.api("check-runs/1/annotations")},
		})
	}
	a.reply(http.StatusOK, object{"total_count": len(runs), "check_runs": page(a, runs)})
}

func actionsRoutes() map[string]handler {
	return map[string]handler{
		"GET /repos/{owner}/{repo}/actions/permissions": func(p *place, a *exchange) {
			if p.set.Token.MissingScopes || !p.set.allows("admin") {
				(&refusal{status: http.StatusForbidden, message: "Resource not accessible by personal access token",
					accepts: "administration=read"}).rest(a)
				return
			}
			out := object{"enabled": !p.set.CI.NoActions}
			if !p.set.CI.NoActions {
				out["allowed_actions"] = "all"
			}
			a.reply(http.StatusOK, out)
		},
		"GET /repos/{owner}/{repo}/actions/workflows": listWorkflows,
	}
}

func listWorkflows(p *place, a *exchange) {
	flows := []object{}
	if tip := p.tip(p.repo.Default); tip != "" && !p.set.CI.NoActions {
		p.read().walk(p.read().root(tip), "", func(full string, e treeEntry) {
			if path.Dir(full) != ".github/workflows" || !strings.HasPrefix(strings.TrimPrefix(path.Ext(full), "."), "y") {
				return
			}
			self := p.api("actions/workflows", e.name)
			flows = append(flows, object{
				"id": len(flows) + 1, "node_id": nodeID("W", p.id, full), "name": strings.TrimSuffix(e.name, path.Ext(full)),
				"path": full, "state": "active", "url": self, "html_url": p.web("blob", p.repo.Default, full),
				"badge_url": p.web("workflows", e.name, "badge.svg"), "created_at": stamp(epoch()), "updated_at": stamp(epoch()),
			})
		})
	}
	a.reply(http.StatusOK, object{"total_count": len(flows), "workflows": page(a, flows)})
}
