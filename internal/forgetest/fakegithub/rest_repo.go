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
			a.reply(http.StatusOK, p.restFullRepo())
		},
	}
}

// stamp is a time as REST writes it, or null.
func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(time.RFC3339)
}

// links are the addresses of a repository's parts in REST, by the field that has them.
func (p *place) links() object {
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
		out[field+"_url"] = p.api(part)
	}
	return out
}

// restRepo is the repository as REST shows it inside other things.
func (p *place) restRepo() object {
	out := p.links()
	visibility := "public"
	if p.set.Private {
		visibility = "private"
	}
	host := strings.TrimPrefix(p.s.host.Web(), "https://")
	for field, value := range (object{
		"id": p.id, "node_id": nodeID(kindRepo, p.id, ""), "name": p.repo.Ref.Name, "full_name": p.repo.Ref.String(),
		"owner": p.s.restUser(p.repo.Ref.Owner), "private": p.set.Private, "html_url": p.web(), "url": p.api(),
		"description": nil, "fork": p.repo.Fork, "created_at": stamp(epoch()), "updated_at": stamp(epoch()),
		"pushed_at": stamp(epoch()), "git_url": "git://" + host + "/" + p.repo.Ref.String() + ".git",
		"ssh_url":   "git@" + host + ":" + p.repo.Ref.String() + ".git",
		"clone_url": p.web() + ".git", "svn_url": p.web(), "mirror_url": nil, "homepage": nil, "size": 1,
		"language": nil, "stargazers_count": 0, "watchers_count": 0, "forks_count": 0, "open_issues_count": 0,
		"watchers": 0, "forks": 0, "open_issues": 0, "license": nil, "default_branch": p.repo.Default,
		"has_issues": true, "has_projects": true, "has_wiki": true, "has_pages": false, "has_discussions": false,
		"has_downloads": true, "archived": p.repo.Archived, "disabled": false, "visibility": visibility,
		"allow_forking": true, "is_template": false, "topics": []string{}, "web_commit_signoff_required": false,
		"permissions": p.restPermissions(),
	}) {
		out[field] = value
	}
	return out
}

// restFullRepo is the repository by itself.
func (p *place) restFullRepo() object {
	out := p.restRepo()
	out["network_count"], out["subscribers_count"] = 0, 1
	return out
}

func (p *place) restPermissions() map[string]bool {
	return map[string]bool{
		"pull": p.set.allows("read"), "triage": p.set.allows("triage"), "push": p.set.allows("write"),
		"maintain": p.set.allows("maintain"), "admin": p.set.allows("admin"),
	}
}

// restUser is somebody as REST shows them inside other things.
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

// userID is a number that stands for a name.
func userID(login string) int {
	id := 1000
	for _, r := range lower(login) {
		id = (id*31 + int(r)) % 90_000_000
	}
	return id
}
