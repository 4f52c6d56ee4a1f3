package app

import (
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/agents/connections"
	"github.com/claudeops/claudeops/internal/agents/logins"
	"github.com/claudeops/claudeops/internal/agents/tokens"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/ops/allowed"
	"github.com/claudeops/claudeops/internal/ops/retention"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
	"github.com/claudeops/claudeops/internal/procedures/packages"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/settings/sources"
)

// Acts returns the operations for people, whatever they come through. Calling it has no side effects.
func Acts(p func() *Parts) []operation.Operation {
	kernel := func() *operation.Kernel { return p().kernel }
	return slices.Concat(
		connections.Acts{Kernel: kernel, Store: func() connections.Store { return p().Store.Connections() },
			Now: func() time.Time { return p().Store.Now() }}.Operations(),
		NewTokens(p).Operations(),
		logins.Acts{
			Kernel: kernel,
			Store:  func() logins.Store { return p().Store.Access },
			Now:    func() time.Time { return p().Store.Now() },
		}.Operations(),
		newSessionActs(p).Operations(),
		newAllowed(p).Operations(),
		[]operation.Operation{newRetention(p).Operation(), newSettling(p).Operation()},
		packages.Acts{
			Kernel: kernel, Service: func() *packages.Service { return p().Tools.packages() },
			Audit: func() operation.Audit { return p().Store.Ledger },
		}.Operations(),
		deploy.Acts{
			Kernel: kernel, Service: func() *deploy.Service { return p().Tools.Deploy() },
			Audit: func() operation.Audit { return p().Store.Ledger },
		}.Operations(),
	)
}

// ActNamed returns the act of a name.
func ActNamed(acts []operation.Operation, name string) operation.Operation {
	at := slices.IndexFunc(acts, func(o operation.Operation) bool { return o.Name == name })
	return acts[at]
}

func newAllowed(p func() *Parts) allowed.Acts {
	return allowed.Acts{
		Kernel: func() *operation.Kernel { return p().kernel }, Audit: func() operation.Audit { return p().Store.Ledger },
		File: func() (sources.File, error) {
			file := p().AllowedSources()
			if file.Path == "" {
				return file, fault.New(fault.Misconfigured, "%s", p().Cfg.Records.Problem)
			}
			return file, nil
		},
		Policy: func() (policy.Policy, error) {
			return p().Rules.Effective()
		},
	}
}

// NewTokens makes the acts about tokens.
func NewTokens(p func() *Parts) tokens.Acts {
	return tokens.Acts{
		Providers: func() []string { return identityNames(p()) },
		Kernel:    func() *operation.Kernel { return p().kernel }, Store: func() tokens.Store { return p().Store.Access },
		Random: rand.Reader, Now: func() time.Time { return p().Store.Now() }, NewID: NewID,
	}
}

func newRetention(p func() *Parts) retention.Acts {
	return retention.Acts{
		Kernel: func() *operation.Kernel { return p().kernel }, Store: func() retention.Store { return p().Store.Retention },
		Keep: func() time.Duration { return p().Cfg.Records.Retention }, Now: func() time.Time { return p().Store.Now() },
		KeepOutput: func() time.Duration { return p().Cfg.Records.SessionRetention }, Output: store.KindSessionOutput,
	}
}

func newSettling(p func() *Parts) prflow.Settling {
	return prflow.Settling{
		Kernel: func() *operation.Kernel { return p().kernel }, Log: func() *slog.Logger { return p().Log },
		Rounds: func() *prflow.Rounds {
			return p().NewRounds()
		},
		Look: func(ctx context.Context, key record.PullKey, by record.Door) error {
			return NewFollower(p()).Look(ctx, key, by)
		},
	}
}
