package github

import (
	"context"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

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
			w.api.fresh.add(object(req.Snapshot.Repo, id))
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
	return w.api.fresh.waitFor(ctx, object(req.Snapshot.Repo, commit), "the commit", commitUnknown, func() error {
		err := w.api.graphql(ctx, mutation(moveDocument, map[string]any{"input": input}), &data)
		if lacksUpdateRefs(err) {
			return w.branches.moveByID(ctx, req.Snapshot.Repo, req.Branch, commit)
		}
		return err
	})
}

// notAppended tells a branch that is gone from a repository that is.
func notAppended(req gitprovider.CommitRequest, err error) error {
	r := refused(err)
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
	r := refused(err)
	return r != nil && r.kind == "NOT_FOUND" && r.says("to a ref")
}
