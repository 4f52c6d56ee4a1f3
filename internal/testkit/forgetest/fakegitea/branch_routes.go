package fakegitea

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

type personJSON struct {
	Name     string `json:"name"`
	Email    string `json:"email"`
	Username string `json:"username"`
}

func personOf(login string) personJSON {
	return personJSON{Name: login, Email: emailOf(login), Username: login}
}

type verificationJSON struct {
	Verified  bool      `json:"verified"`
	Reason    string    `json:"reason"`
	Signature string    `json:"signature"`
	Signer    *userJSON `json:"signer"`
	Payload   string    `json:"payload"`
}

func unsigned() verificationJSON { return verificationJSON{Reason: "gpg.error.not_signed_commit"} }

type tipJSON struct {
	ID           string           `json:"id"`
	Message      string           `json:"message"`
	URL          string           `json:"url"`
	Author       personJSON       `json:"author"`
	Committer    personJSON       `json:"committer"`
	Verification verificationJSON `json:"verification"`
	Timestamp    string           `json:"timestamp"`
	Added        []string         `json:"added"`
	Removed      []string         `json:"removed"`
	Modified     []string         `json:"modified"`
}

type branchJSON struct {
	Name                string   `json:"name"`
	Commit              tipJSON  `json:"commit"`
	Protected           bool     `json:"protected"`
	RequiredApprovals   int      `json:"required_approvals"`
	EnableStatusCheck   bool     `json:"enable_status_check"`
	StatusCheckContexts []string `json:"status_check_contexts"`
	UserCanPush         bool     `json:"user_can_push"`
	UserCanMerge        bool     `json:"user_can_merge"`
	ProtectionName      string   `json:"effective_branch_protection_name"`
}

// message returns a commit's message as git keeps it: with a line feed at its end.
func message(text string) string { return strings.TrimRight(text, "\n") + "\n" }

func (j *rendering) branch(name string) *branchJSON {
	tip := j.at.repo.Branches[name]
	made := j.s.stampOf(tip)
	out := &branchJSON{
		Name: name,
		Commit: tipJSON{
			ID: tip, Message: message(j.at.repo.Commits[tip].Message), URL: j.at.web() + "/commit/" + tip,
			Author:    made.author.who,
			Committer: made.committer.who, Verification: unsigned(), Timestamp: stampTime(made.committer.when),
		},
		StatusCheckContexts: []string{}, UserCanPush: j.at.access >= writeAccess, UserCanMerge: j.at.access >= writeAccess,
	}
	if pattern := j.at.st.protection(name); pattern != "" {
		out.Protected, out.ProtectionName, out.UserCanPush = true, pattern, false
		out.StatusCheckContexts, out.RequiredApprovals = nil, j.at.st.Protection.RequiredApprovals[pattern]
	}
	return out
}

// listBranches begins with the default branch. An empty repository has null for a list.
func listBranches(c *call) (*answer, error) {
	if len(c.at.repo.Branches) == 0 {
		var none []branchJSON
		return ok(none).counted(0), nil
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(c.at.repo.Branches)), ofFork)
	if i := slices.Index(names, c.at.repo.Default); i > 0 {
		names = slices.Insert(slices.Delete(names, i, i+1), 0, c.at.repo.Default)
	}
	p := pageOf(c.query)
	list := []*branchJSON{}
	for _, name := range cut(names, p) {
		list = append(list, c.json.branch(name))
	}
	return ok(list).counted(len(names)).with("Link", c.link(p, len(names))), nil
}

// ofFork reports whether a branch of the host stands for one of a fork, which the repository does not have.
func ofFork(name string) bool { return strings.Contains(name, ":") }

func getBranch(c *call) (*answer, error) {
	if c.at.repo.Branches[c.params["branch"]] == "" {
		return nil, notFound()
	}
	return ok(c.json.branch(c.params["branch"])), nil
}

// deleteBranch says the same of a branch that never existed as of one that it deleted.
func deleteBranch(c *call) (*answer, error) {
	name := c.params["branch"]
	if err := c.at.writer(); err != nil {
		return nil, err
	}
	if err := c.at.inUse(); err != nil {
		return nil, err
	}
	if name == c.at.repo.Default {
		return nil, forbidden("can not delete default branch")
	}
	if c.at.st.protection(name) != "" {
		return nil, forbidden("branch protected")
	}
	if c.at.repo.Branches[name] != "" {
		delete(c.at.repo.Branches, name)
		for _, pr := range c.at.repo.PRs {
			if isOpen(pr) && pr.Branch == name {
				c.at.pull(pr).late = c.at.st.Delays.LateClose
			}
		}
		c.at.settle()
	}
	return &answer{status: http.StatusNoContent}, nil
}

type refJSON struct {
	Ref    string        `json:"ref"`
	URL    string        `json:"url"`
	Object refObjectJSON `json:"object"`
}

type refObjectJSON struct {
	Type string `json:"type"`
	SHA  string `json:"sha"`
	URL  string `json:"url"`
}

// listRefs lists the refs whose names begin with the one asked for, which need not end at a slash.
func listRefs(c *call) (*answer, error) {
	refs := map[string]string{}
	for name, tip := range c.at.repo.Branches {
		if !ofFork(name) {
			refs["refs/heads/"+name] = tip
		}
	}
	for name, commit := range c.at.st.Tags {
		refs["refs/tags/"+name] = commit
	}
	for _, pr := range c.at.repo.PRs {
		refs[pullRef(pr.Number)] = pr.HeadCommit
	}
	list := []refJSON{}
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		if strings.HasPrefix(name, "refs/"+c.params["ref"]) {
			object := refObjectJSON{Type: "commit", SHA: refs[name], URL: c.at.api() + "/git/commits/" + refs[name]}
			list = append(list, refJSON{Ref: name, URL: c.at.api() + "/git/" + name, Object: object})
		}
	}
	if len(list) == 0 {
		return nil, notFound()
	}
	return ok(list), nil
}

type treeEntryJSON struct {
	Path string `json:"path"`
	Mode string `json:"mode"`
	Type string `json:"type"`
	Size int    `json:"size"`
	SHA  string `json:"sha"`
	URL  string `json:"url"`
}

// objectIDLength is the length of a SHA-1, in hex digits. The fake has no repository with SHA-256.
const objectIDLength = 40

// getTree takes a commit, a tree, HEAD, a branch or a tag; the tag wins where both have the name. Its sha is the
// commit's own when it was asked for a commit. A name as long as an object id counts as one, whatever its letters.
func getTree(c *call) (*answer, error) {
	name := c.params["sha"]
	id := c.at.st.Tags[name]
	if id == "" {
		id = resolve(c.at.repo, c.at.st, strings.TrimPrefix(name, "refs/heads/"))
	}
	if len(name) == objectIDLength && c.at.repo.Commits[name] == nil {
		id = ""
	}
	root := c.at.st.objects.object(c.at.repo, name)
	switch {
	case id != "":
		root = c.at.st.objects.root(c.at.repo, id)
	case root != nil && root.kind == gitprovider.KindDir:
		id = root.id
	default:
		return nil, refuse(http.StatusBadRequest, "sha not found ["+name+"]")
	}
	deep, _ := strconv.ParseBool(c.query.Get("recursive"))
	all := root.walk(deep)
	p := page{number: max(number(c.query, "page"), 1), limit: number(c.query, "per_page")}
	if p.limit <= 0 || p.limit > maxTreeEntries {
		p.limit = maxTreeEntries
	}
	var entries []treeEntryJSON // null past the end
	for _, n := range cut(all, p) {
		entries = append(entries, c.json.treeEntry(n, root.path))
	}
	return ok(map[string]any{
		"sha": id, "url": c.at.api() + "/git/trees/" + id, "tree": entries, "truncated": p.number*p.limit < len(all),
		"page": p.number, "total_count": len(all),
	}).counted(len(all)), nil
}

func (j *rendering) treeEntry(n *node, below string) treeEntryJSON {
	path := strings.TrimPrefix(strings.TrimPrefix(n.path, below), "/")
	out := treeEntryJSON{Path: path, Mode: n.mode, Type: "blob", Size: n.size(), SHA: n.id}
	out.URL = j.at.api() + "/git/blobs/" + n.id
	switch n.kind {
	case gitprovider.KindDir:
		out.Type, out.URL = "tree", j.at.api()+"/git/trees/"+n.id
	case gitprovider.KindSubmodule:
		out.Type, out.URL, out.Size = "commit", "", 0
	}
	return out
}
