package cli

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/prflow"
)

// The rounds in which a server settles what was left, and how often each is due.
const (
	resumeRound = "settle"
	resumeEvery = time.Minute
	sweepRound  = "sweep"
	sweepEvery  = time.Hour
)

// settler settles what killed processes and unclear answers have left, as long as a server runs. Of several servers on one
// store one does each round.
type settler struct {
	*parts
	sweeper *prflow.Sweeper
	ticks   <-chan time.Time
}

// settleInBackground begins with what is there, unless this process may not write. done is closed at the end, which comes with
// ctx.
func (p *parts) settleInBackground(ctx context.Context) (done chan struct{}) {
	done = make(chan struct{})
	if p.readOnlyReason() != "" || p.cfg.Permissions.DryRun || p.policy.Tiers.MaxFiles(p.cfg.Permissions.Tier) == 0 {
		close(done)
		return done
	}
	s := &settler{parts: p, sweeper: p.flow.NewSweeper(), ticks: time.Tick(resumeEvery / 2)}
	go func() {
		defer close(done)
		s.resume(ctx)
		s.rounds(ctx)
	}()
	return done
}

func (s *settler) rounds(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.ticks:
		}
		if s.mine(ctx, resumeRound, resumeEvery) {
			s.resume(ctx)
		}
		if s.mine(ctx, sweepRound, sweepEvery) {
			s.sweep(ctx)
		}
	}
}

func (s *settler) mine(ctx context.Context, round string, every time.Duration) bool {
	mine, _, err := s.store.ClaimRound(ctx, round, every)
	if err != nil && ctx.Err() == nil {
		s.log.Warn("a round was not begun", "round", round, "error", fault.From(err).Message)
	}
	return mine
}

func (s *settler) resume(ctx context.Context) {
	settled, err := s.flow.Resume(ctx)
	if err != nil && ctx.Err() == nil {
		s.log.Warn("unfinished proposals not looked for", "error", fault.From(err).Message)
	}
	for _, p := range settled {
		s.log.Info("unfinished proposal", "request_id", p.RequestID, "repo", p.Repo, "live", p.Live, "late_until", p.Late, "error", p.Error)
	}
}

func (s *settler) sweep(ctx context.Context) {
	swept, err := s.parts.sweep(ctx, s.sweeper)
	if err != nil && ctx.Err() == nil {
		s.log.Warn("branches without a pull request not looked for", "error", fault.From(err).Message)
	}
	for _, b := range swept {
		s.log.Info("branch without a pull request", "repo", b.Repo, "branch", b.Branch, "error", b.Error)
	}
}

// sweep looks at every repository that the records or the allowlists name.
func (p *parts) sweep(ctx context.Context, sweeper *prflow.Sweeper) ([]prflow.Swept, error) {
	repos, err := p.store.Repositories(ctx)
	if err != nil {
		return nil, err
	}
	return sweeper.Sweep(ctx, prflow.KnownRepositories(repos, p.policy, p.flow.ProviderOf))
}
