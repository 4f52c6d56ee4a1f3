package prflow

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// The rounds in which a server settles what was left, and how often each is due.
const (
	resumeRound = "settle"
	resumeEvery = time.Minute
	sweepRound  = "sweep"
	sweepEvery  = time.Hour
)

// RoundsTick is the interval at which Rounds checks whether a round is due.
const RoundsTick = resumeEvery / 2

// RoundRecords is the state shared by the processes on one store. internal/records/store implements it; errors are
// faults.
type RoundRecords interface {
	// ClaimRound reports whether the caller should do the named work now: no process has begun it within the interval.
	ClaimRound(ctx context.Context, name string, every time.Duration) (mine bool, next time.Time, err error)
	// Repositories returns the repositories that the records name.
	Repositories(ctx context.Context) ([]record.RepoName, error)
}

// Rounds settle what killed processes and unclear answers have left, as long as a server runs. Of several servers on
// one store one does each round. They are not safe for concurrent use.
type Rounds struct {
	service *Service
	records RoundRecords
	sweeper *Sweeper
}

// NewRounds makes them.
func NewRounds(s *Service, records RoundRecords) *Rounds {
	return &Rounds{service: s, records: records, sweeper: s.NewSweeper()}
}

// Run settles what is there, and then in rounds, until ctx ends. It looks whether one is due at each tick; see
// RoundsTick. Where this process may not write it returns at once.
func (r *Rounds) Run(ctx context.Context, ticks <-chan time.Time) {
	if !r.service.CurrentAuthority().mayWrite() {
		return
	}
	r.resume(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		if r.due(ctx, resumeRound, resumeEvery) {
			r.resume(ctx)
		}
		if r.due(ctx, sweepRound, sweepEvery) {
			r.sweep(ctx)
		}
	}
}

// Sweep is Sweeper.Sweep in every repository that the records or the allowlists name.
func (r *Rounds) Sweep(ctx context.Context) ([]Swept, error) {
	repos, err := r.records.Repositories(ctx)
	if err != nil {
		return nil, err
	}
	policy := r.service.CurrentAuthority().Policy
	return r.sweeper.Sweep(ctx, KnownRepositories(repos, policy, r.service.Reader().ProviderOf))
}

func (r *Rounds) due(ctx context.Context, round string, every time.Duration) bool {
	mine, _, err := r.records.ClaimRound(ctx, round, every)
	r.warn(ctx, "a round was not begun: "+round, err)
	return mine
}

func (r *Rounds) resume(ctx context.Context) {
	settled, err := r.service.Resume(ctx)
	r.warn(ctx, "unfinished proposals not looked for", err)
	for _, p := range settled {
		r.service.Log.Info("unfinished proposal", "request_id", p.RequestID, "repo", p.Repo, "live", p.Live, "late_until",
			p.Late,
			"error", p.Error)
	}
}

func (r *Rounds) sweep(ctx context.Context) {
	swept, err := r.Sweep(ctx)
	r.warn(ctx, "branches without a pull request not looked for", err)
	for _, b := range swept {
		r.service.Log.Info("branch without a pull request", "repo", b.Repo, "branch", b.Branch, "error", b.Error)
	}
}

func (r *Rounds) warn(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		r.service.Log.Warn(what, "error", fault.From(err).Message)
	}
}
