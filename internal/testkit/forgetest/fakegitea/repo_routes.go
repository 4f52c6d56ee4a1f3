package fakegitea

import (
	"net/http"
	"strings"
)

func getVersion(_ *call) (*answer, error) {
	return ok(map[string]string{"version": "1.26.0"}), nil
}

func getAPISettings(_ *call) (*answer, error) {
	return ok(map[string]int{
		"max_response_items": maxLimit, "default_paging_num": defaultLimit, "default_git_trees_per_page": maxTreeEntries,
		"default_max_blob_size": maxBlob, "default_max_response_size": 10 * maxBlob,
	}), nil
}

func getSelf(c *call) (*answer, error) {
	if err := c.signedIn(); err != nil {
		return nil, err
	}
	return ok(c.json.person(c.viewer)), nil
}

func getRepo(c *call) (*answer, error) { return ok(c.json.repo()), nil }

type workflowJSON struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Path      string `json:"path"`
	State     string `json:"state"`
	CreatedAt string `json:"created_at"`
	UpdatedAt string `json:"updated_at"`
	URL       string `json:"url"`
	HTMLURL   string `json:"html_url"`
	BadgeURL  string `json:"badge_url"`
	DeletedAt string `json:"deleted_at"`
}

// listWorkflows lists the workflow files of the default branch, from the first folder that has any.
func listWorkflows(c *call) (*answer, error) {
	if err := c.signedIn(); err != nil {
		return nil, err
	}
	list := []workflowJSON{}
	tip := c.at.repo.Branches[c.at.repo.Default]
	for _, dir := range []string{".gitea/workflows", ".github/workflows"} {
		folder := c.at.st.objects.root(c.at.repo, tip).find(dir)
		if !c.at.st.Features.Actions || folder == nil || len(list) > 0 {
			continue
		}
		for _, file := range folder.children {
			list = append(list, c.json.workflow(tip, file))
		}
	}
	return ok(map[string]any{"workflows": list, "total_count": len(list)}), nil
}

// workflow describes a workflow file, by the name in it if there is one.
func (j *rendering) workflow(tip string, file *node) workflowJSON {
	made := j.s.stampOf(j.at.st.objects.lastChange(j.at.repo, tip, file.path))
	page := j.at.web() + "/actions/workflows/" + file.name()
	out := workflowJSON{
		ID: file.name(), Name: file.name(), Path: file.path, State: "active",
		CreatedAt: stampTime(made.author.when), UpdatedAt: stampTime(made.author.when), DeletedAt: never,
		URL:      j.at.api() + "/actions/workflows/" + file.name(),
		HTMLURL:  j.at.web() + "/src/branch/" + j.at.repo.Default + "/" + file.path,
		BadgeURL: page + "/badge.svg?branch=" + j.at.repo.Default,
	}
	for _, line := range lines(file.content) {
		if name, named := strings.CutPrefix(line, "name:"); named {
			out.Name = strings.TrimSpace(name)
		}
	}
	return out
}

// protection returns the pattern that protects a branch, "" if none does.
func (st *repoState) protection(branch string) string {
	for _, pattern := range st.Protection.ProtectedPatterns {
		if pattern == branch || matches(pattern, branch) {
			return pattern
		}
	}
	return ""
}

func listProtections(c *call) (*answer, error) {
	if err := c.keeper(); err != nil {
		return nil, err
	}
	list := []map[string]any{}
	for i, pattern := range c.at.st.Protection.ProtectedPatterns {
		list = append(list, c.json.protectionJSON(pattern, i+1))
	}
	return ok(list), nil
}

func getProtection(c *call) (*answer, error) {
	if err := c.keeper(); err != nil {
		return nil, err
	}
	for i, pattern := range c.at.st.Protection.ProtectedPatterns {
		if pattern == c.params["name"] {
			return ok(c.json.protectionJSON(pattern, i+1)), nil
		}
	}
	return nil, notFound()
}

// keeper refuses those who may not administer the repository.
func (c *call) keeper() error {
	if err := c.signedIn(); err != nil {
		return err
	}
	if c.at.access < adminAccess {
		return &refusal{status: http.StatusForbidden,
			message: "user should be an owner or a collaborator with admin write of a repository"}
	}
	return nil
}

func (j *rendering) protectionJSON(pattern string, priority int) map[string]any {
	out := map[string]any{
		"branch_name": "", "rule_name": pattern, "priority": priority, "status_check_contexts": nil,
		"required_approvals": j.at.st.Protection.RequiredApprovals[pattern], "protected_file_patterns": "",
		"unprotected_file_patterns": "", "created_at": stampTime(j.at.st.created), "updated_at": stampTime(j.at.st.created),
	}
	if !strings.ContainsAny(pattern, "*?") {
		out["branch_name"] = pattern
	}
	for _, off := range []string{
		"enable_push", "enable_push_whitelist", "push_whitelist_deploy_keys", "enable_force_push",
		"enable_force_push_allowlist", "force_push_allowlist_deploy_keys", "enable_merge_whitelist",
		"enable_status_check", "enable_approvals_whitelist", "block_on_rejected_reviews",
		"block_on_official_review_requests", "block_on_outdated_branch", "dismiss_stale_approvals",
		"ignore_stale_approvals", "require_signed_commits", "block_admin_merge_override",
	} {
		out[off] = false
	}
	for _, nobody := range []string{
		"push_whitelist_usernames", "push_whitelist_teams", "force_push_allowlist_usernames",
		"force_push_allowlist_teams", "merge_whitelist_usernames", "merge_whitelist_teams",
		"approvals_whitelist_username", "approvals_whitelist_teams",
	} {
		out[nobody] = []string{}
	}
	return out
}
