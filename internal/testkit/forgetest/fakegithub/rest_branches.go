package fakegithub

import (
	"net/http"
	"path"
	"strings"
)

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
