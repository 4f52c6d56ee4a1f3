package github

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"
	"unicode/utf8"

	gogithub "github.com/google/go-github/v60/github"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// commitWriter makes branches with a commit on them.
type commitWriter struct {
	api      *api
	branches branches
	files    changedFiles
	trees    *forge.LRU[string, string] // root tree by commit
}

func (w commitWriter) commit(ctx context.Context, req gitprovider.CommitRequest) (string, error) {
	repoID, err := w.branches.repositoryID(ctx, req.Snapshot.Repo)
	if err != nil {
		return "", err
	}
	var id string
	if mustKeepMode(req) {
		id, err = w.byTree(ctx, req, repoID)
	} else {
		id, err = w.onBranch(ctx, req, repoID)
	}
	if err != nil {
		return "", err
	}
	w.api.fresh.add(objectKey(req.Snapshot.Repo, id))
	w.files.known.Committed(req, versionOf(id, req.Snapshot.Base))
	return id, nil
}

// onBranch creates the branch at the snapshot's commit, and makes the commit on it under the condition that it is still
// there.
func (w commitWriter) onBranch(ctx context.Context, req gitprovider.CommitRequest, repoID string) (string, error) {
	if err := w.createRef(ctx, req, repoID, req.Snapshot.BaseCommit); err != nil {
		return "", err
	}
	var id, base string
	late, err := w.api.fresh.retryUntilKnown(ctx, branchObject(req.Snapshot.Repo, req.Branch), branchUnknown,
		func() (err error) {
			id, base, err = w.createCommit(ctx, req)
			return err
		})
	if r := asRefusal(err); late && r.kind == "NOT_FOUND" { // one that moved is somebody's
		return "", notYet("the branch "+req.Branch, err)
	}
	if err != nil {
		return "", w.undo(ctx, req, req.Snapshot.BaseCommit, err)
	}
	if base != req.Snapshot.BaseCommit {
		return "", w.undo(ctx, req, id, forge.BaseMoved(req.Snapshot, nil))
	}
	return id, nil
}

// branchUnknown reports whether a refusal can mean that GitHub does not know a branch, or its commit.
func branchUnknown(err error) bool {
	r := asRefusal(err)
	return r != nil && (r.kind == "STALE_DATA" || r.kind == "NOT_FOUND" && !r.says("to a repository"))
}

// undo removes the branch after a definite failure. After an ambiguous one nothing is undone: what GitHub does late
// would not be seen.
func (w commitWriter) undo(ctx context.Context, req gitprovider.CommitRequest, tip string, failure error) error {
	if fault.CodeOf(failure).Ambiguous() {
		return failure
	}
	return forge.Undo(ctx, w.branches, req, tip, failure)
}

// baseTip selects the present commit of the base branch from a payload's reference.
const baseTip = `repository { base: ref(qualifiedName: $base) { target { oid } } }`

// refPayload is a payload's reference, with the present commit of the base branch.
type refPayload struct {
	Repository struct{ Base *refNode }
}

func (r *refPayload) baseTip() string {
	if r == nil {
		return ""
	}
	return r.Repository.Base.tip()
}

const createRefDocument = `mutation($input: CreateRefInput!, $base: String!) {
  createRef(input: $input) { ref { ` + baseTip + ` } }
}`

// createRef creates the request's branch at a commit, if there is none of the name, and removes it again if the base
// branch has moved.
func (w commitWriter) createRef(ctx context.Context, req gitprovider.CommitRequest, repoID, at string) error {
	var data struct{ CreateRef *struct{ Ref *refPayload } }
	err := w.api.fresh.waitFor(ctx, objectKey(req.Snapshot.Repo, at), "the commit", commitUnknown, func() error {
		return w.api.graphql(ctx, mutation(createRefDocument, map[string]any{
			"input": map[string]any{"repositoryId": repoID, "name": branchRef(req.Branch), "oid": at},
			"base":  branchRef(req.Snapshot.Base),
		}), &data)
	})
	if err == nil || fault.CodeOf(err).Ambiguous() {
		w.api.fresh.add(branchObject(req.Snapshot.Repo, req.Branch))
	}
	if err != nil {
		if r := asRefusal(err); r != nil && r.kind == "UNPROCESSABLE" && r.fault.Code == fault.Conflict {
			if r.says("already exists") { // though it may not be shown yet
				w.api.fresh.add(branchObject(req.Snapshot.Repo, req.Branch))
			}
			r.fault = fault.New(fault.Conflict,
				"the branch %s cannot be created: %s; it exists, or one above or below it does, "+
					"or the base commit is gone; choose another title, or have that branch removed (no title helps where it is "+
					"the branch claude-ops)", req.Branch, fault.Said(r.message))
		}
		return err
	}
	if data.CreateRef == nil || data.CreateRef.Ref == nil {
		return fault.New(fault.UpstreamError, "GitHub did not say whether it made the branch %s", req.Branch)
	}
	if data.CreateRef.Ref.baseTip() != req.Snapshot.BaseCommit {
		return w.undo(ctx, req, at, forge.BaseMoved(req.Snapshot, nil))
	}
	return nil
}

const commitDocument = `mutation($input: CreateCommitOnBranchInput!, $base: String!) {
  createCommitOnBranch(input: $input) { commit { oid } ref { ` + baseTip + ` } }
}`

// createCommit gives the commit, and the base branch's just after it was made.
func (w commitWriter) createCommit(ctx context.Context, req gitprovider.CommitRequest) (id, base string, err error) {
	additions, deletions := []any{}, []any{}
	for _, c := range req.Changes.Changes() {
		if c.Action == gitprovider.ActionDelete {
			deletions = append(deletions, map[string]any{"path": c.Path.String()})
			continue
		}
		additions = append(additions, map[string]any{
			"path": c.Path.String(), "contents": base64.StdEncoding.EncodeToString([]byte(c.Content)),
		})
	}
	headline, body, _ := strings.Cut(strings.TrimSpace(req.Message), "\n")
	var data struct {
		CreateCommitOnBranch *struct {
			Commit *struct{ Oid string }
			Ref    *refPayload
		}
	}
	err = w.api.graphql(ctx, mutation(commitDocument, map[string]any{
		"base": branchRef(req.Snapshot.Base),
		"input": map[string]any{
			"branch":          map[string]any{"repositoryNameWithOwner": req.Snapshot.Repo.String(), "branchName": req.Branch},
			"expectedHeadOid": req.Snapshot.BaseCommit,
			"message":         map[string]any{"headline": headline, "body": strings.TrimSpace(body)},
			"fileChanges":     map[string]any{"additions": additions, "deletions": deletions},
		},
	}), &data)
	if err != nil {
		return "", "", err
	}
	made := data.CreateCommitOnBranch
	if made == nil || made.Commit == nil || made.Commit.Oid == "" {
		return "", "", fault.New(fault.UpstreamError, "GitHub did not say which commit it made on %s", req.Branch)
	}
	return made.Commit.Oid, made.Ref.baseTip(), nil
}

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
	err := w.api.fresh.waitFor(ctx, objectKey(repo, of), "a folder", commitUnknown, func() error {
		return w.api.post(ctx, w.api.repoURL(repo, "git", kind), needContents, body, &made)
	})
	if err != nil {
		return "", err
	}
	if made.SHA == "" {
		return "", fault.New(fault.UpstreamError, "GitHub did not say which object it made; try again")
	}
	w.api.fresh.add(objectKey(repo, made.SHA))
	return made.SHA, nil
}

// commitUnknown reports whether a refusal can mean that GitHub does not know a commit or a tree.
func commitUnknown(err error) bool {
	r := asRefusal(err)
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

// append adds a commit to the request's branch.
func (w commitWriter) append(ctx context.Context, req gitprovider.CommitRequest) (string, error) {
	if !mustKeepMode(req) {
		var id string
		err := w.api.fresh.waitFor(ctx, branchObject(req.Snapshot.Repo, req.Branch), "the branch "+req.Branch, noSuchRef,
			func() (err error) {
				id, _, err = w.createCommit(ctx, req)
				return err
			})
		if err == nil {
			w.api.fresh.add(objectKey(req.Snapshot.Repo, id))
		}
		return id, notAppended(req, err)
	}
	commit, err := w.treeCommit(ctx, req)
	if err != nil {
		return "", err
	}
	return commit, notAppended(req, w.moveBranch(ctx, req, commit))
}

const moveDocument = `mutation($input: UpdateRefsInput!) { updateRefs(input: $input) { clientMutationId } }`

// moveBranch moves the branch to a commit that follows the one where it was read, under the condition that it is there.
func (w commitWriter) moveBranch(ctx context.Context, req gitprovider.CommitRequest, commit string) error {
	id, err := w.branches.repositoryID(ctx, req.Snapshot.Repo)
	if err != nil {
		return err
	}
	input := map[string]any{
		"repositoryId": id,
		"refUpdates": []any{map[string]any{
			"name": branchRef(req.Branch), "beforeOid": req.Snapshot.BaseCommit, "afterOid": commit, "force": false,
		}},
	}
	var data struct{ UpdateRefs *struct{} }
	return w.api.fresh.waitFor(ctx, objectKey(req.Snapshot.Repo, commit), "the commit", commitUnknown, func() error {
		err := w.api.graphql(ctx, mutation(moveDocument, map[string]any{"input": input}), &data)
		if lacksUpdateRefs(err) {
			return w.branches.moveByID(ctx, req.Snapshot.Repo, req.Branch, commit)
		}
		return err
	})
}

// notAppended tells a branch that is gone from a repository that is.
func notAppended(req gitprovider.CommitRequest, err error) error {
	r := asRefusal(err)
	switch {
	case r == nil:
		return err
	case r.kind == "STALE_DATA":
		return fault.Wrap(err, fault.Conflict, "the branch %s has moved since it was read; somebody has added to it",
			req.Branch)
	case noSuchRef(err):
		return fault.Wrap(err, fault.NotFound, "the repository %s has no branch %s any more", req.Snapshot.Repo, req.Branch)
	}
	return err
}

func noSuchRef(err error) bool {
	r := asRefusal(err)
	return r != nil && r.kind == "NOT_FOUND" && r.says("to a ref")
}
