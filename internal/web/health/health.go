// Package health finds out how this server is: what doctor says, whether the audit is whole, and whether the providers
// answer. Finding out is expensive, and anybody may ask, so that an answer may be a while old and questions share one.
package health

import (
	"context"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/records"
)

// Options are what a Checker is made of. All are required but ComparePulls.
type Options struct {
	Doctor func(ctx context.Context) []doctor.Finding
	Audit  records.Audit
	// ComparePulls compares the audit with the marks of pull requests at the providers; nil: that cannot be asked.
	ComparePulls func(ctx context.Context) ([]record.HeadCheck, error)
	Registry     *gitprovider.Registry
	Env          handler.Env
}

// Checker finds out how this server is. It is safe for concurrent use.
type Checker struct {
	doctor   func(ctx context.Context) []doctor.Finding
	audit    records.Audit
	compare  func(ctx context.Context) ([]record.HeadCheck, error)
	registry *gitprovider.Registry
	env      handler.Env

	heavy     *handler.Turns // of reading the whole record
	diagnosis Diagnosis      // the last one, for who has the turn
	verified  lastVerification
	asking    *handler.Turns // of asking the providers
	providers providersSaid  // what they said last, for who has that turn
	seen      seenForges     // the same, for who does not wait
}

// New makes a Checker that has found out nothing yet.
func New(o Options) *Checker {
	return &Checker{
		doctor: o.Doctor, audit: o.Audit, compare: o.ComparePulls, registry: o.Registry, env: o.Env,
		heavy: handler.NewTurns(1), asking: handler.NewTurns(1),
	}
}
