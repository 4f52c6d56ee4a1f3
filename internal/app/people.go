package app

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"os/user"
	"slices"
	"strconv"
	"time"

	"github.com/claudeops/claudeops/internal/agents/credentials"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/ops/admin"
	"github.com/claudeops/claudeops/internal/ops/places"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
	"github.com/claudeops/claudeops/internal/procedures/packages"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/settings/sources"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// Acts returns the operations for people, whatever they come through. Calling it has no side effects.
func Acts(p func() *Parts) []operation.Operation {
	kernel := func() *operation.Kernel { return p().kernel }
	return slices.Concat(
		credentials.ConnectionActs{Kernel: kernel,
			Store: func() credentials.ConnectionStore { return p().Store.Connections() },
			Now:   func() time.Time { return p().Store.Now() }}.Operations(),
		NewTokens(p).Operations(),
		credentials.LoginActs{
			Kernel: kernel,
			Store:  func() credentials.LoginStore { return p().Store.Access },
			Now:    func() time.Time { return p().Store.Now() },
		}.Operations(),
		newSessionActs(p).Operations(),
		newAllowed(p).Operations(),
		admin.PauseActs{
			Kernel: kernel, Store: func() admin.PauseStore { return p().Store.Pauses() },
			Now: func() time.Time { return p().Store.Now() }, Sleep: transport.Sleep,
		}.Operations(),
		places.Acts{
			Kernel: kernel, Tier: func() gitprovider.Tier { return p().Cfg.Permissions.Tier },
			Find: func(ctx context.Context, repo gitprovider.RepoRef) ([]places.Place, bool, error) {
				return p().findListedPlaces(ctx, repo)
			},
		}.Operations(),
		[]operation.Operation{admin.OutcomeActs{Kernel: kernel,
			Store: func() admin.OutcomeStore { return p().Store.History },
			Now:   func() time.Time { return p().Store.Now() }}.Operation()},
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

func newAllowed(p func() *Parts) admin.SourceActs {
	return admin.SourceActs{
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
func NewTokens(p func() *Parts) credentials.TokenActs {
	return credentials.TokenActs{
		Providers: func() []string { return identityNames(p()) },
		Kernel:    func() *operation.Kernel { return p().kernel },
		Store:     func() credentials.TokenStore { return p().Store.Access },
		Random:    rand.Reader, Now: func() time.Time { return p().Store.Now() }, NewID: NewID,
	}
}

func newRetention(p func() *Parts) admin.RetentionActs {
	return admin.RetentionActs{
		Kernel: func() *operation.Kernel { return p().kernel },
		Store:  func() admin.RetentionStore { return p().Store.Retention },
		Keep:   func() time.Duration { return p().Cfg.Records.Retention }, Now: func() time.Time { return p().Store.Now() },
		KeepOutput: func() time.Duration { return p().keepTranscripts() }, Output: store.KindSessionOutput,
	}
}

func newSettling(p func() *Parts) prflow.Settling {
	return prflow.Settling{
		Kernel: func() *operation.Kernel { return p().kernel }, Log: func() *slog.Logger { return p().Log },
		Rounds: func() *prflow.PeriodicJob {
			return p().NewRounds()
		},
		Look: func(ctx context.Context, key record.PullKey, by record.Door) error {
			return NewFollower(p()).Look(ctx, key, by)
		},
	}
}

// User returns the user of the operating system that runs this process, as the kernel and the user database have them.
// The environment is not used: anybody can set it.
func User() record.Actor {
	uid := strconv.Itoa(os.Getuid())
	if current, err := user.Current(); err == nil {
		uid = current.Uid // on Windows the only one
	}
	name := ""
	if known, err := user.LookupId(uid); err == nil {
		name = known.Username
	}
	return record.OSUser(uid, name)
}

// AtTerminal returns a call of the person at the command line: of the holder of CLAUDEOPS_TOKEN, with the rights that
// it has, or else of the user of the operating system, who may do everything. unauthenticated for a token that is not
// good.
func AtTerminal(ctx context.Context, p *Parts) (operation.Call, error) {
	secret := p.Cfg.Person.Text
	if secret == "" && p.Cfg.Person.File != "" {
		return operation.Call{}, fault.New(fault.Unauthenticated, "CLAUDEOPS_TOKEN_FILE names a file that cannot be read")
	}
	if secret == "" {
		return operation.Call{Caller: operation.Caller{Actor: User()}, Ceiling: operation.UncappedTier,
			Scopes: access.AllScopes()}, nil
	}
	who, err := p.access.Bearer(ctx, secret)
	if err != nil {
		e := fault.From(err)
		return operation.Call{}, fault.Wrap(err, e.Code, "CLAUDEOPS_TOKEN: %s", e.Message)
	}
	call := operation.Call{Ceiling: who.Ceiling, Scopes: who.Scopes}
	at := who.Actor.At(record.DoorCLI)
	call.Caller = operation.Caller{Actor: at, TokenHash: who.TokenHash, Recheck: func(ctx context.Context) error {
		now, err := p.access.Bearer(ctx, secret)
		if err == nil {
			err = now.Still(who, "")
		}
		return err
	}}
	return call, nil
}

// MayAtTerminal returns forbidden for an operation that needs a scope that the token of a call lacks.
func MayAtTerminal(call operation.Call, needs operation.Needs) error {
	if scope := needs.Scope; scope != "" && !call.Scopes.Has(scope) {
		return fault.New(fault.Forbidden, "this needs the scope %s; %s has %s", scope, call.Caller, call.Scopes)
	}
	return nil
}

// Agent returns the agent that a process of its own serves over stdio. It acts for the user who has started it and,
// where that names a session, for those who stand behind the session.
func Agent(ctx context.Context, p *Parts) record.Actor {
	who := User().At(record.DoorMCP)
	if p.Cfg.SessionID == "" {
		return who
	}
	who.Session = &record.ActorSession{ID: p.Cfg.SessionID}
	if known, err := p.Store.AgentSessions.Session(ctx, p.Cfg.SessionID); err == nil && known.Actor.Session != nil {
		who.Session = known.Actor.Session
	}
	return who
}
