package fakegithub

import (
	"net/http"
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
