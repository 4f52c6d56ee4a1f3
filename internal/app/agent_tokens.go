package app

import (
	"context"
	"crypto/rand"
	"slices"

	"github.com/claudeops/claudeops/internal/agents/connections"
	"github.com/claudeops/claudeops/internal/agents/door"
	"github.com/claudeops/claudeops/internal/agents/oauth"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
)

// AgentTokens admits agents that the operator has given a token each.
func AgentTokens(p *Parts) *door.Tokens {
	rights := sessionRights(p) // which is too much work for each request
	return door.NewTokens(p.Agents,
		func(ctx context.Context, secret string) (door.Arrival, error) {
			return admitAgent(ctx, p, rights, secret)
		},
		func(ctx context.Context, name string) (bool, error) {
			tokens, err := p.Store.Access.Tokens(ctx)
			if err != nil {
				return false, err
			}
			at := slices.IndexFunc(
				tokens,
				func(t access.Token) bool { return t.Agent && t.Name == name && t.Good(p.Store.Now()) },
			)
			if at < 0 {
				return false, nil
			}
			err = connections.Admit(ctx, p.Store.Connections(), name, tokens[at].CreatedAt, p.Store.Now())
			if fault.CodeOf(err) == fault.Unauthenticated { // a person has cut the token's agent off
				return false, nil
			}
			return err == nil, err
		})
}

// newPrograms makes the service that admits agents by people's consent in a browser.
func newPrograms(p *Parts) *oauth.Service {
	return oauth.New(oauth.Options{
		Kernel:     func() *operation.Kernel { return p.kernel },
		Store:      func() oauth.Store { return p.Store.Access },
		Gatekeeper: func() oauth.Gatekeeper { return p.access },
		Record:     func(ctx context.Context, a record.Attempt) error { return p.Store.Ledger.Record(ctx, a, nil) },
		MaxTier:    func() gitprovider.Tier { return p.Cfg.Sessions.MaxTier },
		Providers:  identityNames(p),
		Random:     rand.Reader,
		Now:        p.Store.Now,
		NewID:      NewID,
	})
}

// listenForTokens makes the socket for agents that have tokens, if there is to be one, and returns what serves it until
// its context ends.
func listenForTokens(ctx context.Context, p *Parts, tokens *door.Tokens) (serve func(context.Context), err error) {
	path := p.Cfg.Web.DoorSocket
	if path == "" {
		return func(context.Context) {}, nil
	}
	d := door.TokenDoor{Tokens: tokens, Path: path}
	listener, err := d.Listen(ctx)
	if err != nil {
		return nil, fault.Wrap(err, fault.Misconfigured, "agents cannot be let in at CLAUDEOPS_DOOR_SOCKET (%s): %s", path,
			err)
	}
	p.Log.Info("agents with tokens are let in", "socket", path)
	return func(ctx context.Context) { d.Serve(ctx, listener) }, nil
}

// AdmitAgent finds what the holder of a token may do: no more than an agent of a session, and no more than the token
// says.
func AdmitAgent(ctx context.Context, p *Parts, secret string) (door.Arrival, error) {
	return admitAgent(ctx, p, sessionRights(p), secret)
}

// admitAgent is AdmitAgent; rights are the rights of an agent of a session.
func admitAgent(ctx context.Context, p *Parts, rights door.Rights, secret string) (door.Arrival, error) {
	t, err := p.access.AgentToken(ctx, secret)
	if err != nil {
		return door.Arrival{}, err
	}
	if err := connections.Admit(ctx, p.Store.Connections(), t.Name, t.CreatedAt, p.Store.Now()); err != nil {
		return door.Arrival{}, err
	}
	rights.Tier = max(min(t.MaxTier, p.Cfg.Sessions.MaxTier), gitprovider.TierObserve)
	rights.DryRun, rights.ReadOnly = t.DryRun, t.ReadOnly
	rights.Repos = t.Repos
	return door.Arrival{
		Rights:     rights,
		Actor:      t.Actor(),
		Credential: t.Name,
		Holder:     t.ID,
		Still: func(ctx context.Context) error {
			if err := p.access.StillAgent(ctx, t); err != nil {
				return err
			}
			return connections.Admit(ctx, p.Store.Connections(), t.Name, t.CreatedAt, p.Store.Now())
		},
	}, nil
}
