package forge

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Branches is an adapter's access to branches.
type Branches interface {
	// Tip gives a branch's commit as git has it now, "" if there is none. not_found for a missing repository.
	Tip(ctx context.Context, repo gitprovider.RepoRef, branch string) (string, error)
	// Remove deletes a branch, if the forge can under the condition that its tip is the given commit.
	Remove(ctx context.Context, repo gitprovider.RepoRef, branch, tip string) error
}

// DeleteBranch keeps what gitprovider.Provider promises of its method: it looks, deletes, and looks again if that was
// refused. So the forge's words are not needed to tell why.
func DeleteBranch(ctx context.Context, b Branches, repo gitprovider.RepoRef, branch, tip string) error {
	if err := gitprovider.CheckOurs(branch); err != nil {
		return err
	}
	if tip == "" {
		return fault.New(fault.InvalidArgument, "the branch %s can only be deleted with its expected commit", branch)
	}
	have, err := b.Tip(ctx, repo, branch)
	switch {
	case err != nil || have == "":
		return err
	case have != tip:
		return branchMoved(branch)
	}
	return removeBranch(ctx, b, repo, branch, tip)
}

// removeBranch is DeleteBranch without the first look. A branch that is gone already is not an error.
func removeBranch(ctx context.Context, b Branches, repo gitprovider.RepoRef, branch, tip string) error {
	failure := b.Remove(ctx, repo, branch, tip)
	if failure == nil {
		return nil
	}
	have, err := b.Tip(ctx, repo, branch)
	switch {
	case err != nil:
		return failure
	case have == "":
		return nil
	case have != tip:
		return branchMoved(branch)
	}
	return failure
}

func branchMoved(branch string) error {
	return fault.New(fault.Conflict, "the branch %s has moved since, so it was not deleted; somebody has added to it",
		branch)
}

// undoTime bounds the removal of a branch that is not to stay. It runs also when the caller has given up.
const undoTime = 30 * time.Second

// Undo removes the request's branch, which is not to stay, if its tip is the given commit, and returns the failure for
// which it does. If a commit of ours may remain, the error says that by its code, so that somebody looks; a branch that
// somebody took before there was one is theirs.
func Undo(ctx context.Context, b Branches, req gitprovider.CommitRequest, tip string, failure error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	err := DeleteBranch(ctx, b, req.Snapshot.Repo, req.Branch, tip)
	if err == nil || fault.CodeOf(err) == fault.Conflict && tip == req.Snapshot.BaseCommit {
		return failure
	}
	return fault.Wrap(err, fault.UpstreamError, "%s; and the branch %s could not be removed again: %s",
		fault.From(failure).Message, req.Branch, fault.From(err).Message)
}
