package local

import (
	"context"
	"slices"
	"strconv"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// openPulls opens a repository and reads its pull requests as they are now.
func (p *Provider) openPulls(ctx context.Context, ref gitprovider.RepoRef) (*repository, pullsNow, error) {
	repo, err := p.openRepository(ctx, ref)
	if err != nil {
		return nil, pullsNow{}, err
	}
	seen, err := p.pulls.refresh(ctx, repo)
	return repo, seen, err
}

// openPull opens a repository and reads what is recorded of one pull request.
func (p *Provider) openPull(ctx context.Context, ref gitprovider.RepoRef, number int) (
	repo *repository, pr gitprovider.PullRequest, reviews []gitprovider.Review, err error,
) {
	if repo, err = p.openRepository(ctx, ref); err == nil {
		pr, reviews, err = p.pulls.records.PR(ctx, repo.recordKey(), number)
	}
	return repo, pr, reviews, err
}

// OpenPullRequest implements gitprovider.Provider. Beside the codes of the port: not_found for a missing head or base
// branch, no_change if the base contains the head already, invalid_argument for a head that is not one of ours.
func (p *Provider) OpenPullRequest(ctx context.Context, spec gitprovider.PullRequestSpec) (gitprovider.PullRequest,
	error) {
	none := gitprovider.PullRequest{}
	if err := gitprovider.CheckOurs(spec.Head); err != nil {
		return none, err
	}
	repo, seen, err := p.openPulls(ctx, spec.Repo) // also ends an older pull request of a branch of the same name
	if err != nil {
		return none, err
	}
	if spec.Base, err = repo.baseBranch(ctx, seen.branches, spec.Base); err != nil {
		return none, err
	}
	for _, pr := range seen.open {
		if pr.Branch == spec.Head && pr.Base == spec.Base {
			return pr, nil
		}
	}
	k := pair{seen.branches.tips[spec.Base], seen.branches.tips[spec.Head]}
	if k.head == "" {
		return none, fault.New(fault.NotFound, "the repository %s has no branch %s; commit to it first", repo.ref, spec.Head)
	}
	compared, err := repo.compareHeads(ctx, []pair{k})
	if err != nil {
		return none, err
	}
	if compared[k].contained {
		return none, fault.New(fault.NoChange, "the branch %s holds nothing that %s does not; there is nothing to propose",
			spec.Head, spec.Base)
	}
	pr, err := p.pulls.records.InsertPR(ctx, repo.recordKey(), gitprovider.PullRequest{
		Title: spec.Title, Body: spec.Body, Branch: spec.Head, HeadCommit: k.head, Base: spec.Base,
		State:  gitprovider.StateOpen,
		Labels: missingFrom(nil, spec.Labels), CreatedAt: p.now().UTC(), Paths: slices.Clone(compared[k].paths),
	})
	if err != nil {
		return none, err
	}
	return asOfNow(repo, pr, seen.branches, compared), nil
}

// missingFrom lists the wanted labels that are not there, each once.
func missingFrom(have, want []string) []string {
	var missing []string
	for _, label := range want {
		if !slices.Contains(have, label) && !slices.Contains(missing, label) {
			missing = append(missing, label)
		}
	}
	return missing
}

// Label implements gitprovider.Provider. not_found if there is no such pull request.
func (p *Provider) Label(ctx context.Context, ref gitprovider.RepoRef, number int, labels []string) error {
	repo, pr, _, err := p.openPull(ctx, ref, number)
	if err != nil || len(missingFrom(pr.Labels, labels)) == 0 {
		return err
	}
	return p.pulls.updatePull(ctx, repo, number, func(pr *gitprovider.PullRequest) error {
		pr.Labels = append(slices.Clone(pr.Labels), missingFrom(pr.Labels, labels)...)
		return nil
	})
}

// FindByHead implements gitprovider.Provider.
func (p *Provider) FindByHead(ctx context.Context, ref gitprovider.RepoRef, branch string) (*gitprovider.PullRequest,
	error) {
	repo, seen, err := p.openPulls(ctx, ref)
	if err != nil {
		return nil, err
	}
	all, err := p.pulls.records.PRs(ctx, repo.recordKey(), "")
	if err != nil {
		return nil, err
	}
	for _, pr := range slices.Backward(all) {
		if pr.Branch == branch {
			found := seen.current(repo, pr)
			return &found, nil
		}
	}
	return nil, nil
}

// ListOpen implements gitprovider.Provider.
func (p *Provider) ListOpen(ctx context.Context, ref gitprovider.RepoRef, label string) ([]gitprovider.PullRequest,
	error) {
	_, seen, err := p.openPulls(ctx, ref)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(seen.open, func(pr gitprovider.PullRequest) bool { return !gitprovider.Listed(pr, label) }),
		nil
}

// OpenOurs implements gitprovider.Settler.
func (p *Provider) OpenOurs(ctx context.Context, ref gitprovider.RepoRef, below int) ([]gitprovider.PullRequest,
	error) {
	_, seen, err := p.openPulls(ctx, ref)
	return slices.DeleteFunc(seen.open, func(pr gitprovider.PullRequest) bool {
		return pr.Number >= below ||
			notOurs(pr)
	}), err
}

// Status implements gitprovider.Provider.
func (p *Provider) Status(ctx context.Context, ref gitprovider.RepoRef, number int) (gitprovider.Status, error) {
	repo, seen, err := p.openPulls(ctx, ref)
	if err != nil {
		return gitprovider.Status{}, err
	}
	return p.pulls.pullStatus(ctx, repo, number, seen)
}

// Details implements gitprovider.Editor. There are no assignees and no requests for a review here.
func (p *Provider) Details(ctx context.Context, ref gitprovider.RepoRef, number int) (gitprovider.Details, error) {
	_, pr, reviews, err := p.openPull(ctx, ref, number)
	out := gitprovider.Details{Labels: pr.Labels}
	for _, review := range reviews {
		if review.State != gitprovider.ReviewPending {
			out.Reviewed = append(out.Reviewed, review.Author)
		}
	}
	return out, err
}

// Withdraw implements gitprovider.Settler.
func (p *Provider) Withdraw(ctx context.Context, ref gitprovider.RepoRef, w gitprovider.Withdrawal) error {
	repo, seen, err := p.openPulls(ctx, ref)
	if err != nil {
		return err
	}
	return p.pulls.updatePull(ctx, repo, w.Number, func(pr *gitprovider.PullRequest) error {
		if err := w.Check(seen.current(repo, *pr)); err != nil {
			return err
		}
		if pr.State == gitprovider.StateOpen {
			pr.State, pr.ClosedAt = gitprovider.StateClosed, p.now().UTC()
		}
		pr.Body = w.Body
		return nil
	})
}

// Close implements gitprovider.Provider.
func (p *Provider) Close(ctx context.Context, ref gitprovider.RepoRef, c gitprovider.Closing) (gitprovider.State,
	error) {
	repo, seen, err := p.openPulls(ctx, ref)
	if err != nil {
		return "", err
	}
	var state gitprovider.State
	err = p.pulls.updatePull(ctx, repo, c.Number, func(pr *gitprovider.PullRequest) error {
		ended, err := c.Check(seen.current(repo, *pr))
		if state = ended; err != nil || ended != "" {
			return err
		}
		pr.State, pr.ClosedAt, pr.Body = gitprovider.StateClosed, p.now().UTC(), c.Body
		state = pr.State
		return nil
	})
	return state, err
}

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
	repo, err := p.openRepository(ctx, req.Snapshot.Repo)
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
	err = p.pulls.updatePull(ctx, repo, number, func(pr *gitprovider.PullRequest) error {
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
	repo, err := p.openRepository(ctx, ref)
	if err != nil {
		return err
	}
	return p.pulls.addReview(ctx, repo, number, gitprovider.ReviewCommented, Note{Who: p.author.name, Body: text})
}

// Reply implements gitprovider.Replier: one review of the author of our commits, with a comment on the line of each.
func (p *Provider) Reply(ctx context.Context, ref gitprovider.RepoRef, number int,
	replies []gitprovider.LineReply) error {
	repo, err := p.openRepository(ctx, ref)
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

// ReviewStates implements gitprovider.ReviewLister.
func (p *Provider) ReviewStates(ctx context.Context, ref gitprovider.RepoRef,
	numbers []int) (map[int]gitprovider.ReviewState, error) {
	repo, err := p.findRepository(ctx, ref)
	if err != nil {
		return nil, err
	}
	out := map[int]gitprovider.ReviewState{}
	for _, number := range numbers[:min(len(numbers), gitprovider.MaxReviewStates)] {
		_, reviews, err := p.pulls.records.PR(ctx, repo.recordKey(), number)
		if err != nil && fault.CodeOf(err) != fault.NotFound {
			return nil, err
		}
		if state := gitprovider.StateOfReview(remarksOf(reviews)); state != "" {
			out[number] = state
		}
	}
	return out, nil
}
