package fakegitea

import (
	"net/http"
	"strings"
)

func (c *call) version() (*answer, error) {
	return ok(map[string]string{"version": "1.26.0"}), nil
}

func (c *call) apiSettings() (*answer, error) {
	return ok(map[string]int{
		"max_response_items": maxLimit, "default_paging_num": defaultLimit, "default_git_trees_per_page": maxTreeEntries,
		"default_max_blob_size": maxBlob, "default_max_response_size": 10 * maxBlob,
	}), nil
}

func (c *call) self() (*answer, error) {
	if err := c.signedIn(); err != nil {
		return nil, err
	}
	return ok(c.person(c.viewer)), nil
}

func (c *call) getRepo() (*answer, error) { return ok(c.repository()), nil }

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
func (c *call) listWorkflows() (*answer, error) {
	if err := c.signedIn(); err != nil {
		return nil, err
	}
	list := []workflowJSON{}
	tip := c.repo.Branches[c.repo.Default]
	for _, dir := range []string{".gitea/workflows", ".github/workflows"} {
		folder := c.st.objects.root(c.repo, tip).find(dir)
		if !c.st.Actions || folder == nil || len(list) > 0 {
			continue
		}
		for _, file := range folder.children {
			list = append(list, c.workflow(tip, file))
		}
	}
	return ok(map[string]any{"workflows": list, "total_count": len(list)}), nil
}

// workflow describes a workflow file, by the name in it if there is one.
func (c *call) workflow(tip string, file *node) workflowJSON {
	made := c.s.stampOf(c.st.objects.lastChange(c.repo, tip, file.path))
	page := c.web() + "/actions/workflows/" + file.name()
	out := workflowJSON{
		ID: file.name(), Name: file.name(), Path: file.path, State: "active",
		CreatedAt: stampTime(made.author.when), UpdatedAt: stampTime(made.author.when), DeletedAt: never,
		URL:      c.api() + "/actions/workflows/" + file.name(),
		HTMLURL:  c.web() + "/src/branch/" + c.repo.Default + "/" + file.path,
		BadgeURL: page + "/badge.svg?branch=" + c.repo.Default,
	}
	for _, line := range lines(file.content) {
		if name, named := strings.CutPrefix(line, "name:"); named {
			out.Name = strings.TrimSpace(name)
		}
	}
	return out
}

// protection is the pattern that protects a branch, "" if none does.
func (st *repoState) protection(branch string) string {
	for _, pattern := range st.ProtectedPatterns {
		if pattern == branch || matches(pattern, branch) {
			return pattern
		}
	}
	return ""
}

func (c *call) listProtections() (*answer, error) {
	if err := c.keeper(); err != nil {
		return nil, err
	}
	list := []map[string]any{}
	for i, pattern := range c.st.ProtectedPatterns {
		list = append(list, c.protectionJSON(pattern, i+1))
	}
	return ok(list), nil
}

func (c *call) getProtection() (*answer, error) {
	if err := c.keeper(); err != nil {
		return nil, err
	}
	for i, pattern := range c.st.ProtectedPatterns {
		if pattern == c.params["name"] {
			return ok(c.protectionJSON(pattern, i+1)), nil
		}
	}
	return nil, notFound()
}

// keeper refuses those who may not administer the repository.
func (c *call) keeper() error {
	if err := c.signedIn(); err != nil {
		return err
	}
	if c.access < adminAccess {
		return &refusal{status: http.StatusForbidden,
			message: "user should be an owner or a collaborator with admin write of a repository"}
	}
	return nil
}

func (c *call) protectionJSON(pattern string, priority int) map[string]any {
	out := map[string]any{
		"branch_name": "", "rule_name": pattern, "priority": priority, "status_check_contexts": nil,
		"required_approvals": c.st.RequiredApprovals[pattern], "protected_file_patterns": "",
		"unprotected_file_patterns": "", "created_at": stampTime(c.st.created), "updated_at": stampTime(c.st.created),
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
