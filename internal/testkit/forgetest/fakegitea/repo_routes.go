package fakegitea

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
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
	for _, pattern := range c.at.st.Protection.Signed {
		rule := c.json.protectionJSON(pattern, len(list)+1)
		rule["require_signed_commits"] = true
		list = append(list, rule)
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

// never is the server's form of an unknown time.
const never = "0001-01-01T00:00:00Z"

func stampTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// optionalTime returns null for the zero time.
func optionalTime(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	shown := stampTime(t)
	return &shown
}

type userJSON struct {
	ID                int64  `json:"id"`
	Login             string `json:"login"`
	LoginName         string `json:"login_name"`
	SourceID          int64  `json:"source_id"`
	FullName          string `json:"full_name"`
	Email             string `json:"email"`
	AvatarURL         string `json:"avatar_url"`
	HTMLURL           string `json:"html_url"`
	Language          string `json:"language"`
	IsAdmin           bool   `json:"is_admin"`
	LastLogin         string `json:"last_login"`
	Created           string `json:"created"`
	Restricted        bool   `json:"restricted"`
	Active            bool   `json:"active"`
	ProhibitLogin     bool   `json:"prohibit_login"`
	Location          string `json:"location"`
	Website           string `json:"website"`
	Description       string `json:"description"`
	Visibility        string `json:"visibility"`
	FollowersCount    int    `json:"followers_count"`
	FollowingCount    int    `json:"following_count"`
	StarredReposCount int    `json:"starred_repos_count"`
	Username          string `json:"username"`
}

// stranger returns a user as the server shows them to somebody it does not know.
func (s *Server) stranger(login string) *userJSON {
	face := sha256.Sum256([]byte(login))
	return &userJSON{
		ID: s.userID(login), Login: login, Username: login, Email: login + "@noreply.localhost",
		AvatarURL: s.URL() + "/avatars/" + hex.EncodeToString(face[:16]), HTMLURL: s.URL() + "/" + login,
		LastLogin: never, Created: stampTime(s.began), Visibility: "public",
	}
}

// acquaintance shows the email address as well.
func (s *Server) acquaintance(login string) *userJSON {
	user := s.stranger(login)
	user.Email = emailOf(login)
	return user
}

// person returns a user as the viewer may see them: all of it themselves and an administrator, nothing the anonymous.
func (j *rendering) person(login string) *userJSON {
	if j.viewer == "" {
		return j.s.stranger(login)
	}
	user := j.s.acquaintance(login)
	if j.admin() || j.viewer == login {
		user.IsAdmin, user.Active, user.LastLogin = login == Owner, true, "1970-01-01T00:00:00Z"
	}
	return user
}

func emailOf(login string) string { return login + "@example.test" }

type permissionsJSON struct {
	Admin bool `json:"admin"`
	Push  bool `json:"push"`
	Pull  bool `json:"pull"`
}

type trackerJSON struct {
	EnableTimeTracker                bool `json:"enable_time_tracker"`
	AllowOnlyContributorsToTrackTime bool `json:"allow_only_contributors_to_track_time"`
	EnableIssueDependencies          bool `json:"enable_issue_dependencies"`
}

type repoJSON struct {
	ID                            int64           `json:"id"`
	Owner                         *userJSON       `json:"owner"`
	Name                          string          `json:"name"`
	FullName                      string          `json:"full_name"`
	Description                   string          `json:"description"`
	Empty                         bool            `json:"empty"`
	Private                       bool            `json:"private"`
	Fork                          bool            `json:"fork"`
	Template                      bool            `json:"template"`
	Mirror                        bool            `json:"mirror"`
	Size                          int             `json:"size"`
	Language                      string          `json:"language"`
	LanguagesURL                  string          `json:"languages_url"`
	HTMLURL                       string          `json:"html_url"`
	URL                           string          `json:"url"`
	Link                          string          `json:"link"`
	SSHURL                        string          `json:"ssh_url"`
	CloneURL                      string          `json:"clone_url"`
	OriginalURL                   string          `json:"original_url"`
	Website                       string          `json:"website"`
	StarsCount                    int             `json:"stars_count"`
	ForksCount                    int             `json:"forks_count"`
	WatchersCount                 int             `json:"watchers_count"`
	OpenIssuesCount               int             `json:"open_issues_count"`
	OpenPRCounter                 int             `json:"open_pr_counter"`
	ReleaseCounter                int             `json:"release_counter"`
	DefaultBranch                 string          `json:"default_branch"`
	Archived                      bool            `json:"archived"`
	CreatedAt                     string          `json:"created_at"`
	UpdatedAt                     string          `json:"updated_at"`
	ArchivedAt                    string          `json:"archived_at"`
	Permissions                   permissionsJSON `json:"permissions"`
	HasCode                       bool            `json:"has_code"`
	HasIssues                     bool            `json:"has_issues"`
	InternalTracker               trackerJSON     `json:"internal_tracker"`
	HasWiki                       bool            `json:"has_wiki"`
	HasPullRequests               bool            `json:"has_pull_requests"`
	HasProjects                   bool            `json:"has_projects"`
	ProjectsMode                  string          `json:"projects_mode"`
	HasReleases                   bool            `json:"has_releases"`
	HasPackages                   bool            `json:"has_packages"`
	HasActions                    bool            `json:"has_actions"`
	IgnoreWhitespaceConflicts     bool            `json:"ignore_whitespace_conflicts"`
	AllowMergeCommits             bool            `json:"allow_merge_commits"`
	AllowRebase                   bool            `json:"allow_rebase"`
	AllowRebaseExplicit           bool            `json:"allow_rebase_explicit"`
	AllowSquashMerge              bool            `json:"allow_squash_merge"`
	AllowFastForwardOnlyMerge     bool            `json:"allow_fast_forward_only_merge"`
	AllowRebaseUpdate             bool            `json:"allow_rebase_update"`
	AllowManualMerge              bool            `json:"allow_manual_merge"`
	AutodetectManualMerge         bool            `json:"autodetect_manual_merge"`
	DefaultDeleteBranchAfterMerge bool            `json:"default_delete_branch_after_merge"`
	DefaultMergeStyle             string          `json:"default_merge_style"`
	DefaultAllowMaintainerEdit    bool            `json:"default_allow_maintainer_edit"`
	AvatarURL                     string          `json:"avatar_url"`
	Internal                      bool            `json:"internal"`
	MirrorInterval                string          `json:"mirror_interval"`
	ObjectFormatName              string          `json:"object_format_name"`
	MirrorUpdated                 string          `json:"mirror_updated"`
	Topics                        []string        `json:"topics"`
	Licenses                      []string        `json:"licenses"`
}

// web returns the address of the repository's pages, api that of its part of the API.
func (r *repository) web() string { return r.s.URL() + "/" + r.repo.Ref.String() }
func (r *repository) api() string { return r.s.URL() + apiRoot + "/repos/" + r.repo.Ref.String() }

func (j *rendering) repo() *repoJSON {
	repo, st := j.at.repo, j.at.st
	open := 0
	for _, pr := range repo.PRs {
		if isOpen(pr) {
			open++
		}
	}
	archivedAt := "1970-01-01T00:00:00Z"
	if repo.Archived {
		archivedAt = stampTime(j.s.began)
	}
	return &repoJSON{
		ID: st.id, Owner: j.s.acquaintance(repo.Ref.Owner), Name: repo.Ref.Name, FullName: repo.Ref.String(),
		Empty: len(repo.Branches) == 0, Private: st.Private, Fork: repo.Fork, Size: 25,
		LanguagesURL: j.at.api() + "/languages", HTMLURL: j.at.web(), URL: j.at.api(),
		SSHURL: "git@" + hostOf(j.s.origin) + ":" + repo.Ref.String() + ".git", CloneURL: j.at.web() + ".git",
		WatchersCount: 1, OpenPRCounter: open, DefaultBranch: repo.Default, Archived: repo.Archived,
		CreatedAt: stampTime(st.created), UpdatedAt: stampTime(j.updated()), ArchivedAt: archivedAt,
		Permissions: permissionsJSON{Admin: j.at.access >= adminAccess, Push: j.at.access >= writeAccess, Pull: true},
		HasIssues:   true, InternalTracker: trackerJSON{true, true, true}, HasWiki: true,
		HasPullRequests: !st.Features.NoPulls,
		HasProjects:     true, ProjectsMode: "all", HasReleases: true, HasActions: st.Features.Actions,
		AllowMergeCommits: true,
		AllowRebase:       true, AllowRebaseExplicit: true, AllowSquashMerge: true, AllowFastForwardOnlyMerge: true,
		AllowRebaseUpdate: true, DefaultMergeStyle: "merge", ObjectFormatName: "sha1", MirrorUpdated: never,
		Topics: []string{}, Licenses: []string{},
	}
}

// updated returns the time of the newest commit of a branch.
func (j *rendering) updated() time.Time {
	latest := j.at.st.created
	for _, tip := range j.at.repo.Branches {
		if made := j.s.stampOf(tip).committer.when; made.After(latest) {
			latest = made
		}
	}
	return latest
}

// hostOf returns the host without its port, for ssh.
func hostOf(origin string) string {
	host := strings.TrimPrefix(origin, "http://")
	return host[:strings.LastIndexByte(host, ':')]
}

type labelJSON struct {
	ID          int64  `json:"id"`
	Name        string `json:"name"`
	Exclusive   bool   `json:"exclusive"`
	IsArchived  bool   `json:"is_archived"`
	Color       string `json:"color"`
	Description string `json:"description"`
	URL         string `json:"url"`
}

func isOpen(pr *memhost.PR) bool { return pr.State == gitprovider.StateOpen }

// matches applies a branch pattern: * stays within a segment, ** does not, ? is one character of a segment.
func matches(pattern, branch string) bool {
	var expr strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch {
		case strings.HasPrefix(pattern[i:], "**"):
			expr.WriteString(".*")
			i++
		case pattern[i] == '*':
			expr.WriteString("[^/]*")
		case pattern[i] == '?':
			expr.WriteString("[^/]")
		default:
			expr.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		}
	}
	fits, err := regexp.MatchString("^"+expr.String()+"$", branch)
	return err == nil && fits
}
