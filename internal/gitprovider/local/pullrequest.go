package local

import (
	"context"
	"slices"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// openPulls opens a repository and reads its pull requests as they are now.
func (p *Provider) openPulls(ctx context.Context, ref gitprovider.RepoRef) (*repository, pullsNow, error) {
	repo, err := p.open(ctx, ref)
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
	if repo, err = p.open(ctx, ref); err == nil {
		pr, reviews, err = p.pulls.records.PR(ctx, repo.key(), number)
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
	compared, err := repo.compare(ctx, []pair{k})
	if err != nil {
		return none, err
	}
	if compared[k].contained {
		return none, fault.New(fault.NoChange, "the branch %s holds nothing that %s does not; there is nothing to propose",
			spec.Head, spec.Base)
	}
	pr, err := p.pulls.records.InsertPR(ctx, repo.key(), gitprovider.PullRequest{
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
	return p.pulls.change(ctx, repo, number, func(pr *gitprovider.PullRequest) error {
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
	all, err := p.pulls.records.PRs(ctx, repo.key(), "")
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
	return p.pulls.status(ctx, repo, number, seen)
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
	return p.pulls.change(ctx, repo, w.Number, func(pr *gitprovider.PullRequest) error {
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
