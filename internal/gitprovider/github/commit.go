package github

import (
	"context"
	"encoding/base64"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Commit implements gitprovider.Provider. The branch is created at the snapshot's commit, and the commit is made on it
// under the condition that it is still there; the author is the token's user, and GitHub sets the time. Whatever stops
// this half-way, a base branch that has moved included, removes the branch again. Beside the codes of the port:
// repo_not_allowed if a rule forbids the branch, or the repository is archived.
func (p *Provider) Commit(ctx context.Context, req gitprovider.CommitRequest) (gitprovider.Commit, error) {
	ctx = about(ctx, req.Snapshot.Repo)
	id, err := p.commit(ctx, req)
	if err != nil {
		return gitprovider.Commit{}, publish(err)
	}
	p.rememberChanges(req, id)
	return gitprovider.Commit{ID: id, Branch: req.Branch}, nil
}

func (p *Provider) commit(ctx context.Context, req gitprovider.CommitRequest) (string, error) {
	if err := req.Check(); err != nil {
		return "", err
	}
	repoID, err := p.repositoryID(ctx, req.Snapshot.Repo)
	if err != nil {
		return "", err
	}
	if mustKeepMode(req) {
		return p.commitByTree(ctx, req, repoID)
	}
	if err := p.createRef(ctx, req, repoID, req.Snapshot.BaseCommit); err != nil {
		return "", err
	}
	id, err := p.commitOnBranch(ctx, req)
	if err != nil {
		return "", p.undo(ctx, req, repoID, req.Snapshot.BaseCommit, err)
	}
	if id.base != req.Snapshot.BaseCommit {
		return "", p.undo(ctx, req, repoID, id.commit, baseMoved(req.Snapshot.Base))
	}
	return id.commit, nil
}

// repositoryID gives a repository's node id, from the last snapshot of it if there was one.
func (p *Provider) repositoryID(ctx context.Context, repo gitprovider.RepoRef) (string, error) {
	if known, found := p.facts.get(repoKey(repo)); found && known.id != "" {
		return known.id, nil
	}
	_, id, err := p.tip(ctx, repo, "")
	return id, err
}

// baseTip selects the present commit of the base branch from a payload's reference.
const baseTip = `repository { base: ref(qualifiedName: $base) { target { oid } } }`

// refPayload is a payload's reference, with the present commit of the base branch.
type refPayload struct {
	Repository struct {
		Base *struct{ Target struct{ Oid string } }
	}
}

func (r *refPayload) baseTip() string {
	if r == nil || r.Repository.Base == nil {
		return ""
	}
	return r.Repository.Base.Target.Oid
}

const createRefDocument = `mutation($input: CreateRefInput!, $base: String!) {
  createRef(input: $input) { ref { ` + baseTip + ` } }
}`

// createRef creates the request's branch at a commit, if there is none of the name, and removes it again if the base
// branch has moved.
func (p *Provider) createRef(ctx context.Context, req gitprovider.CommitRequest, repoID, at string) error {
	op := operation{document: createRefDocument, write: true, need: needContents, variables: map[string]any{
		"input": map[string]any{"repositoryId": repoID, "name": branchRef(req.Branch), "oid": at},
		"base":  branchRef(req.Snapshot.Base),
	}}
	var data struct{ CreateRef *struct{ Ref *refPayload } }
	if err := p.graphql(ctx, op, &data); err != nil {
		if r := refused(err); r != nil && r.kind == "UNPROCESSABLE" && r.fault.Code == fault.Conflict {
			r.fault = fault.New(fault.Conflict, "the branch %s cannot be created: %s; it exists, or one above or below it does, "+
				"or the base commit is gone; choose another title, or have that branch removed", req.Branch, r.said)
		}
		return err
	}
	if data.CreateRef == nil || data.CreateRef.Ref == nil {
		return fault.New(fault.UpstreamError, "GitHub did not say whether it made the branch %s", req.Branch)
	}
	if data.CreateRef.Ref.baseTip() != req.Snapshot.BaseCommit {
		return p.undo(ctx, req, repoID, at, baseMoved(req.Snapshot.Base))
	}
	return nil
}

func baseMoved(base string) error {
	return fault.New(fault.Conflict,
		"the base branch %s has moved since it was read; look at it again, and propose against what is there now", clean(base))
}

const commitDocument = `mutation($input: CreateCommitOnBranchInput!, $base: String!) {
  createCommitOnBranch(input: $input) { commit { oid } ref { ` + baseTip + ` } }
}`

// committed is a commit, and the base branch's commit just after it was made.
type committed struct{ commit, base string }

func (p *Provider) commitOnBranch(ctx context.Context, req gitprovider.CommitRequest) (committed, error) {
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
	op := operation{document: commitDocument, write: true, need: needContents, variables: map[string]any{
		"base": branchRef(req.Snapshot.Base),
		"input": map[string]any{
			"branch":          map[string]any{"repositoryNameWithOwner": req.Snapshot.Repo.String(), "branchName": req.Branch},
			"expectedHeadOid": req.Snapshot.BaseCommit,
			"message":         map[string]any{"headline": headline, "body": strings.TrimSpace(body)},
			"fileChanges":     map[string]any{"additions": additions, "deletions": deletions},
		},
	}}
	var data struct {
		CreateCommitOnBranch *struct {
			Commit *struct{ Oid string }
			Ref    *refPayload
		}
	}
	if err := p.graphql(ctx, op, &data); err != nil {
		return committed{}, err
	}
	made := data.CreateCommitOnBranch
	if made == nil || made.Commit == nil || made.Commit.Oid == "" {
		return committed{}, fault.New(fault.UpstreamError, "GitHub did not say which commit it made on %s", req.Branch)
	}
	return committed{made.Commit.Oid, made.Ref.baseTip()}, nil
}

// undoTime bounds the removal of a branch that is not to stay. It runs also when the caller has given up.
const undoTime = 30 * time.Second

// undo removes the request's branch after a definite failure, if its tip is the given commit, and returns the failure. If
// the branch may remain, the error says that by its code, so that somebody looks. After an ambiguous failure nothing is
// undone: what GitHub does late would not be seen.
func (p *Provider) undo(ctx context.Context, req gitprovider.CommitRequest, repoID, tip string, failure error) error {
	if fault.CodeOf(failure).Ambiguous() {
		return failure
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	err := p.removeBranch(ctx, req.Snapshot.Repo, repoID, req.Branch, tip)
	if err == nil || fault.CodeOf(err) == fault.Conflict { // moved: it is somebody else's now
		return failure
	}
	return fault.Wrap(err, fault.UpstreamError, "%s; and the branch %s could not be removed again: %s",
		fault.From(failure).Message, req.Branch, fault.From(err).Message)
}

// rememberChanges keeps what a commit changes, for the pull request that is opened of it.
func (p *Provider) rememberChanges(req gitprovider.CommitRequest, id string) {
	paths := make([]string, 0, req.Changes.Len())
	for _, path := range req.Changes.Paths() { // sorted
		paths = append(paths, path.String())
	}
	p.files.put(filesKey{repoKey(req.Snapshot.Repo), 0, id, req.Snapshot.Base}, paths)
}
