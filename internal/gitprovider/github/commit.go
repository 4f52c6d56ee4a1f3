package github

import (
	"context"
	"encoding/base64"
	"strings"

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
	w.api.fresh.add(object(req.Snapshot.Repo, id))
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
	late, err := w.api.fresh.wait(ctx, branchObject(req.Snapshot.Repo, req.Branch), branchUnknown, func() (err error) {
		id, base, err = w.createCommit(ctx, req)
		return err
	})
	if r := refused(err); late && r.kind == "NOT_FOUND" { // one that moved is somebody's
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
	r := refused(err)
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
	err := w.api.fresh.waitFor(ctx, object(req.Snapshot.Repo, at), "the commit", commitUnknown, func() error {
		return w.api.graphql(ctx, mutation(createRefDocument, map[string]any{
			"input": map[string]any{"repositoryId": repoID, "name": branchRef(req.Branch), "oid": at},
			"base":  branchRef(req.Snapshot.Base),
		}), &data)
	})
	if err == nil || fault.CodeOf(err).Ambiguous() {
		w.api.fresh.add(branchObject(req.Snapshot.Repo, req.Branch))
	}
	if err != nil {
		if r := refused(err); r != nil && r.kind == "UNPROCESSABLE" && r.fault.Code == fault.Conflict {
			if r.says("already exists") { // though it may not be shown yet
				w.api.fresh.add(branchObject(req.Snapshot.Repo, req.Branch))
			}
			r.fault = fault.New(fault.Conflict,
				"the branch %s cannot be created: %s; it exists, or one above or below it does, "+
					"or the base commit is gone; choose another title, or have that branch removed (no title helps where it is "+
					"the branch claude-ops)", req.Branch, fault.Said(r.said))
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
