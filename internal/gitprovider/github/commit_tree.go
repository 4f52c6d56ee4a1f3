package github

import (
	"context"
	"net/http"
	"unicode/utf8"

	gogithub "github.com/google/go-github/v60/github"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// byTree makes tree, commit and branch in git's own terms: nothing is visible before the branch, which comes last.
func (w commitWriter) byTree(ctx context.Context, req gitprovider.CommitRequest, repoID string) (string, error) {
	commit, err := w.treeCommit(ctx, req)
	if err != nil {
		return "", err
	}
	return commit, w.createRef(ctx, req, repoID, commit)
}

// treeCommit makes tree and commit.
func (w commitWriter) treeCommit(ctx context.Context, req gitprovider.CommitRequest) (string, error) {
	entries, err := treeEntries(req)
	if err != nil {
		return "", err
	}
	repo := req.Snapshot.Repo
	base, err := w.rootTree(ctx, repo, req.Snapshot.BaseCommit)
	if err != nil {
		return "", err
	}
	tree, err := w.makeObject(ctx, repo, "trees", base, map[string]any{"base_tree": base, "tree": entries})
	if err != nil {
		return "", err
	}
	return w.makeObject(ctx, repo, "commits", tree, map[string]any{
		"message": req.Message, "tree": tree, "parents": []string{req.Snapshot.BaseCommit},
	})
}

// makeObject makes a git object, which stays invisible until a reference leads to it, and returns its id. of is an
// existing object that the new one refers to.
func (w commitWriter) makeObject(ctx context.Context, repo gitprovider.RepoRef, kind, of string, body any) (string,
	error) {
	var made struct{ SHA string }
	err := w.api.fresh.waitFor(ctx, object(repo, of), "a folder", commitUnknown, func() error {
		return w.api.post(ctx, w.api.repoURL(repo, "git", kind), needContents, body, &made)
	})
	if err != nil {
		return "", err
	}
	if made.SHA == "" {
		return "", fault.New(fault.UpstreamError, "GitHub did not say which object it made; try again")
	}
	w.api.fresh.add(object(repo, made.SHA))
	return made.SHA, nil
}

// commitUnknown reports whether a refusal can mean that GitHub does not know a commit or a tree.
func commitUnknown(err error) bool {
	r := refused(err)
	return r != nil && (r.status == http.StatusUnprocessableEntity || r.status == http.StatusNotFound ||
		r.kind == "UNPROCESSABLE" || r.kind == "NOT_FOUND") && r.says("does not exist", "not found", "could not resolve to")
}

// treeEntries returns the changed files. An entry with neither content nor id removes its path.
func treeEntries(req gitprovider.CommitRequest) ([]*gogithub.TreeEntry, error) {
	var entries []*gogithub.TreeEntry
	for _, c := range req.Changes.Changes() {
		path, mode, kind := c.Path.String(), "100644", "blob"
		if req.Snapshot.Tree[path].Executable {
			mode = "100755"
		}
		entry := &gogithub.TreeEntry{Path: &path, Mode: &mode, Type: &kind}
		if c.Action != gitprovider.ActionDelete {
			if !utf8.ValidString(c.Content) { // JSON cannot carry it
				return nil, fault.New(fault.InvalidArgument, "the content of %s is not UTF-8; files are text", path)
			}
			entry.Content = &c.Content
		}
		entries = append(entries, entry)
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
