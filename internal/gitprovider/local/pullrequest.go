package local

import (
	"context"
	"slices"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// OpenPullRequest implements gitprovider.Provider. Beside the codes of the port: not_found for a missing head or base
// branch, no_change if the base contains the head already, invalid_argument for a head that is not one of ours.
func (p *Provider) OpenPullRequest(ctx context.Context, spec gitprovider.PullRequestSpec) (gitprovider.PullRequest,
	error) {
	none := gitprovider.PullRequest{}
	if err := gitprovider.CheckOurs(spec.Head); err != nil {
		return none, err
	}
	repo, err := p.open(ctx, spec.Repo)
	if err != nil {
		return none, err
	}
	seen, err := p.look(ctx, repo) // also settles an older pull request of a branch of the same name
	if err != nil {
		return none, err
	}
	if spec.Base, err = p.base(ctx, repo, seen.refs, spec.Base); err != nil {
		return none, err
	}
	for _, pr := range seen.open {
		if pr.Branch == spec.Head && pr.Base == spec.Base {
			return pr, nil
		}
	}
	k := pair{seen.refs.tips[spec.Base], seen.refs.tips[spec.Head]}
	if k.head == "" {
		return none, fault.New(fault.NotFound, "the repository %s has no branch %s; commit to it first", repo.ref, spec.Head)
	}
	compared, err := p.compare(ctx, repo, []pair{k})
	if err != nil {
		return none, err
	}
	if compared[k].contained {
		return none, fault.New(fault.NoChange, "the branch %s holds nothing that %s does not; there is nothing to propose",
			spec.Head, spec.Base)
	}
	pr, err := p.records.InsertPR(ctx, repo.key(), gitprovider.PullRequest{
		Title: spec.Title, Body: spec.Body, Branch: spec.Head, HeadCommit: k.head, Base: spec.Base,
		State: gitprovider.StateOpen, Labels: missingFrom(nil,
			spec.Labels), CreatedAt: p.now().UTC(), Paths: slices.Clone(compared[k].paths),
	})
	if err != nil {
		return none, err
	}
	return present(repo, pr, seen.refs, compared), nil
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
	repo, err := p.open(ctx, ref)
	if err != nil {
		return err
	}
	pr, _, err := p.records.PR(ctx, repo.key(), number)
	if err != nil || len(missingFrom(pr.Labels, labels)) == 0 {
		return err
	}
	return p.records.UpdatePR(ctx, repo.key(), number, func(pr *gitprovider.PullRequest) error {
		pr.Labels = append(slices.Clone(pr.Labels), missingFrom(pr.Labels, labels)...)
		return nil
	})
}

// FindByHead implements gitprovider.Provider.
func (p *Provider) FindByHead(ctx context.Context, ref gitprovider.RepoRef, branch string) (*gitprovider.PullRequest,
	error) {
	repo, err := p.open(ctx, ref)
	if err != nil {
		return nil, err
	}
	seen, err := p.look(ctx, repo)
	if err != nil {
		return nil, err
	}
	all, err := p.records.PRs(ctx, repo.key(), "")
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

// current is a pull request from the records as the look shows it.
func (v view) current(repo *repository, recorded gitprovider.PullRequest) gitprovider.PullRequest {
	for _, pr := range v.open {
		if pr.Number == recorded.Number && recorded.State == gitprovider.StateOpen {
			return pr
		}
	}
	recorded.URL = repo.prURL(recorded.Number)
	return recorded
}

// ListOpen implements gitprovider.Provider.
func (p *Provider) ListOpen(ctx context.Context, ref gitprovider.RepoRef, label string) ([]gitprovider.PullRequest,
	error) {
	repo, err := p.open(ctx, ref)
	if err != nil {
		return nil, err
	}
	seen, err := p.look(ctx, repo)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(seen.open, func(pr gitprovider.PullRequest) bool {
		return !gitprovider.Listed(pr, label)
	}), nil
}
