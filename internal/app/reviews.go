package app

import (
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/proposals/review"
)

// NewReviews returns the use case of what people do to pull requests.
func NewReviews(p *Parts) *review.Service {
	o := review.Options{
		Provider: local.Name, Kernel: p.kernel, Records: p.Store.Ledger, Notifier: p.notifier, Pulls: p.Store.Pulls,
		Disabled: p.Providers.localDisabled,
	}
	o.Starters = p.Store.Pulls.Starters
	o.Ask = p.Flow.Reader().OursAt
	if p.Providers.local != nil {
		o.Host, o.Look = local.NewReviewer(p.Providers.local), NewFollower(p).Look
	}
	return review.New(o)
}
