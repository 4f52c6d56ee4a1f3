package github

import (
	"context"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// writtenEntry is an entry of a tree to be made, with its content in place.
type writtenEntry struct {
	Path    string `json:"path"`
	Mode    string `json:"mode"`
	Type    string `json:"type"`
	Content string `json:"content"`
}

// removedEntry has the null that removes a path; a missing field would not.
type removedEntry struct {
	Path string  `json:"path"`
	Mode string  `json:"mode"`
	Type string  `json:"type"`
	SHA  *string `json:"sha"`
}

// byTree makes tree, commit and branch in git's own terms: nothing is visible before the branch, which comes last.
func (w commitWriter) byTree(ctx context.Context, req gitprovider.CommitRequest, repoID string) (string, error) {
	entries, err := treeEntries(req)
	if err != nil {
		return "", err
	}
	repo := req.Snapshot.Repo
	base, err := w.rootTree(ctx, repo, req.Snapshot.BaseCommit)
	if err != nil {
		return "", err
	}
	tree, err := w.makeObject(ctx, repo, "trees", map[string]any{"base_tree": base, "tree": entries})
	if err != nil {
		return "", err
	}
	commit, err := w.makeObject(ctx, repo, "commits", map[string]any{
		"message": req.Message, "tree": tree, "parents": []string{req.Snapshot.BaseCommit},
	})
	if err != nil {
		return "", err
	}
	return commit, w.createRef(ctx, req, repoID, commit)
}

// makeObject makes a git object, which nobody sees before a reference leads to it, and returns its id.
func (w commitWriter) makeObject(ctx context.Context, repo gitprovider.RepoRef, kind string, body any) (string, error) {
	var made struct{ SHA string }
	if err := w.api.post(ctx, w.api.repoURL(repo, "git", kind), needContents, body, &made); err != nil {
		return "", err
	}
	if made.SHA == "" {
		return "", fault.New(fault.UpstreamError, "GitHub did not say which object it made; try again")
	}
	return made.SHA, nil
}

func treeEntries(req gitprovider.CommitRequest) ([]any, error) {
	var entries []any
	for _, c := range req.Changes.Changes() {
		path, mode := c.Path.String(), "100644"
		if req.Snapshot.Tree[path].Executable {
			mode = "100755"
		}
		switch {
		case c.Action == gitprovider.ActionDelete:
			entries = append(entries, removedEntry{Path: path, Mode: mode, Type: "blob"})
		case !utf8.ValidString(c.Content): // JSON cannot carry it
			return nil, fault.New(fault.InvalidArgument, "the content of %s is not UTF-8; files are text", path)
		default:
			entries = append(entries, writtenEntry{Path: path, Mode: mode, Type: "blob", Content: c.Content})
		}
	}
	return entries, nil
}

// rootTree gives the id of a commit's root tree, as a rule from the snapshot that read it.
func (w commitWriter) rootTree(ctx context.Context, repo gitprovider.RepoRef, commit string) (string, error) {
	if tree, known := w.trees.Get(commit); known {
		return tree, nil
	}
	var answer struct{ Tree struct{ SHA string } }
	_, err := w.api.get(ctx, w.api.repoURL(repo, "git", "commits", commit), needContents, &answer)
	return answer.Tree.SHA, err
}

// mustKeepMode reports whether an executable file is updated: createCommitOnBranch makes every file that it writes an
// ordinary one.
func mustKeepMode(req gitprovider.CommitRequest) bool {
	for _, c := range req.Changes.Changes() {
		if c.Action == gitprovider.ActionUpdate && req.Snapshot.Tree[c.Path.String()].Executable {
			return true
		}
	}
	return false
}
