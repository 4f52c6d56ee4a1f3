package local_test

import (
	"context"
	"slices"
	"sync"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
)

// memory is a Records without a store.
type memory struct {
	mu      sync.Mutex
	prs     map[string][]gitprovider.PullRequest // by repository; number is index + 1
	reviews map[string]map[int][]gitprovider.Review
	updates int   // calls of UpdatePR
	broken  error // what UpdatePR fails with, if not nil
	adopts  func(context.Context, func(context.Context, string, []string) (map[string]bool, error)) error
}

var _ local.Records = (*memory)(nil)

func newMemory() *memory {
	return &memory{prs: map[string][]gitprovider.PullRequest{}, reviews: map[string]map[int][]gitprovider.Review{}}
}

func clonePR(pr gitprovider.PullRequest) gitprovider.PullRequest {
	pr.Labels, pr.Paths = slices.Clone(pr.Labels), slices.Clone(pr.Paths)
	return pr
}

func (m *memory) InsertPR(ctx context.Context, repo string, pr gitprovider.PullRequest) (gitprovider.PullRequest,
	error) {
	if ctx.Err() != nil {
		return gitprovider.PullRequest{}, fault.From(ctx.Err())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, have := range m.prs[repo] {
		if have.State == gitprovider.StateOpen && have.Branch == pr.Branch && have.Base == pr.Base {
			return clonePR(have), nil
		}
	}
	pr.Number = len(m.prs[repo]) + 1
	m.prs[repo] = append(m.prs[repo], clonePR(pr))
	return pr, nil
}

func (m *memory) PR(_ context.Context, repo string, number int) (gitprovider.PullRequest, []gitprovider.Review, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if number < 1 || number > len(m.prs[repo]) {
		return gitprovider.PullRequest{}, nil, fault.New(fault.NotFound, "there is no pull request #%d", number)
	}
	return clonePR(m.prs[repo][number-1]), slices.Clone(m.reviews[repo][number]), nil
}

func (m *memory) PRs(_ context.Context, repo string, state gitprovider.State) ([]gitprovider.PullRequest, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []gitprovider.PullRequest
	for _, pr := range m.prs[repo] {
		if state == "" || pr.State == state {
			out = append(out, clonePR(pr))
		}
	}
	return out, nil
}

func (m *memory) UpdatePR(_ context.Context, repo string, number int,
	change func(*gitprovider.PullRequest) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.updates++
	if m.broken != nil {
		return m.broken
	}
	if number < 1 || number > len(m.prs[repo]) {
		return fault.New(fault.NotFound, "there is no pull request #%d", number)
	}
	pr := clonePR(m.prs[repo][number-1])
	if err := change(&pr); err != nil {
		return err
	}
	m.prs[repo][number-1] = pr
	return nil
}

func (m *memory) Adopt(ctx context.Context, holds func(context.Context, string, []string) (map[string]bool,
	error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.adopts != nil {
		return m.adopts(ctx, holds)
	}
	return nil
}

func (m *memory) AddReview(_ context.Context, repo string, number int, review gitprovider.Review) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if number < 1 || number > len(m.prs[repo]) {
		return fault.New(fault.NotFound, "there is no pull request #%d", number)
	}
	if m.reviews[repo] == nil {
		m.reviews[repo] = map[int][]gitprovider.Review{}
	}
	m.reviews[repo][number] = append(m.reviews[repo][number], review)
	return nil
}
