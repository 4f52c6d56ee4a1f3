package local

import (
	"context"
	"strconv"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Append implements gitprovider.Reviser. The record keeps the head that was opened or last approved, so that a person
// approves the new one before it is merged. Beside the codes of the port: conflict for a branch that is checked out in
// a work tree, which would look as if the commit had been undone there.
func (p *Provider) Append(ctx context.Context, req gitprovider.CommitRequest) (gitprovider.Commit, error) {
	none := gitprovider.Commit{}
	if err := req.CheckAppend(); err != nil {
		return none, err
	}
	if err := checkCommit(req); err != nil {
		return none, err
	}
	repo, err := p.open(ctx, req.Snapshot.Repo)
	if err != nil {
		return none, err
	}
	out, err := repo.checkedOut(ctx)
	if err != nil {
		return none, err
	}
	if dir := out[req.Branch]; dir != "" {
		return none, fault.New(fault.Conflict,
			"the branch %s is checked out in %s, so it is not moved behind that work tree's back; "+
				"ask a person to check out another branch there", req.Branch, dir)
	}
	id, err := makeCommit(ctx, p, repo, req)
	if err != nil {
		return none, err
	}
	if err := repo.moveBranch(ctx, req.Branch, id, req.Snapshot.BaseCommit); err != nil {
		return none, err
	}
	return gitprovider.Commit{ID: id, Branch: req.Branch, Parent: req.Snapshot.BaseCommit}, nil
}

// moveBranch moves a branch from one commit to the next. As with createBranch, a failure without a reason that can be
// seen is tried again.
func (repo *repository) moveBranch(ctx context.Context, branch, to, from string) error {
	const attempts = 3
	var err error
	for range attempts {
		t := &transaction{}
		t.update(branch, to, from)
		if err = repo.update(ctx, t, "claude-ops: revised"); err == nil {
			return nil
		}
		have, lookErr := repo.branches(ctx)
		switch tip := have.tips[branch]; {
		case lookErr != nil:
			return err
		case tip == to:
			return nil // git was ended after it had done its work
		case tip == "":
			return fault.Wrap(err, fault.NotFound, "the repository %s has no branch %s any more", repo.ref, branch)
		case tip != from:
			return fault.Wrap(err, fault.Conflict, "the branch %s has moved since it was read; somebody has added to it", branch)
		case ctx.Err() != nil || t.leftLock(repo) != "":
			return err
		}
	}
	return err
}

// SetText implements gitprovider.Editor.
func (p *Provider) SetText(ctx context.Context, ref gitprovider.RepoRef, number int,
	title, body string) (state gitprovider.State, err error) {
	repo, _, err := p.openPulls(ctx, ref) // so that what has ended in git meanwhile is recorded
	if err != nil {
		return "", err
	}
	err = p.pulls.change(ctx, repo, number, func(pr *gitprovider.PullRequest) error {
		if title != "" {
			pr.Title = title
		}
		pr.Body, state = body, pr.State
		return nil
	})
	return state, err
}

// Comment implements gitprovider.Reviser. It is in the name of the author of our commits.
func (p *Provider) Comment(ctx context.Context, ref gitprovider.RepoRef, number int, text string) error {
	repo, err := p.open(ctx, ref)
	if err != nil {
		return err
	}
	return p.pulls.addReview(ctx, repo, number, gitprovider.ReviewCommented, Note{Who: p.author.name, Body: text})
}

// Reply implements gitprovider.Replier: one review of the author of our commits, with a comment on the line of each.
func (p *Provider) Reply(ctx context.Context, ref gitprovider.RepoRef, number int,
	replies []gitprovider.LineReply) error {
	repo, err := p.open(ctx, ref)
	if err != nil {
		return err
	}
	n := Note{Who: p.author.name}
	for _, r := range replies {
		n.Comments = append(n.Comments, gitprovider.LineComment{
			Path: r.To.Path, Line: r.To.Line, Before: r.To.Before, Commit: r.To.Commit, Body: r.Quoting,
		})
	}
	return p.pulls.addReview(ctx, repo, number, gitprovider.ReviewCommented, n)
}

// Remarks implements gitprovider.RemarkReader. Every reviewer here may write.
func (p *Provider) Remarks(ctx context.Context, ref gitprovider.RepoRef, number int) ([]gitprovider.Remark, error) {
	_, _, reviews, err := p.openPull(ctx, ref, number)
	return remarksOf(reviews), err
}

// remarksOf are what submitted reviews say. All who review here may write.
func remarksOf(reviews []gitprovider.Review) (out []gitprovider.Remark) {
	for i, r := range withIDs(reviews) { // none is ever removed
		if r.State != gitprovider.ReviewPending {
			out = append(out, gitprovider.ReviewRemarks(strconv.Itoa(i), r)...)
		}
	}
	for i := range out {
		out[i].MayWrite = true
	}
	return out
}
