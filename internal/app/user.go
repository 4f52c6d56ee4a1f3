package app

import (
	"context"
	"os"
	"os/user"
	"strconv"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
)

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
		return operation.Call{Caller: operation.Caller{Actor: User()}, Ceiling: operation.Unlimited,
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
