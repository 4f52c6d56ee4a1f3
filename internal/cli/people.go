package cli

import (
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/people"
	"github.com/claudeops/claudeops/internal/review"
)

// peopleService judges and records what people do.
func (p *parts) peopleService() *people.Service {
	return people.New(people.Options{
		Settings: people.Settings{
			Policy: p.policy, PolicyProblem: p.policyProblem(), ReadOnly: p.cfg.Permissions.ReadOnly, DryRun: p.cfg.Permissions.DryRun,
		},
		Audit: p.store.Ledger, Redact: p.scanner.Redact, Log: p.log, Now: time.Now, NewID: newID,
	})
}

// reviews is the use case of what people do to pull requests.
func (p *parts) reviews() *review.Service {
	o := review.Options{
		Provider: local.Name, People: p.people, Records: p.store.Ledger, Notifier: p.notifier, Disabled: p.localDisabled,
	}
	if p.local != nil {
		o.Host = local.NewReviewer(p.local)
	}
	return review.New(o)
}

// policyProblem says why the operator's rules cannot be known, or "".
func (p *parts) policyProblem() string {
	if p.policyErr != nil {
		return p.policyErr.Error()
	}
	return p.cfg.Permissions.ReposProblem
}
