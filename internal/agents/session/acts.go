package session

import (
	"context"
	"net/http"
	"net/url"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

// Names of the operations that start and stop sessions.
const (
	ActStart = "start_session"
	ActRun   = "run_session"
	ActStop  = "stop_session"
)

// Runs runs sessions; *Supervisor is one. Errors are faults.
type Runs interface {
	// Start returns when the beginning of the session is recorded, Run when it and those that it escalates to have ended.
	Start(ctx context.Context, spec Spec) (id string, err error)
	Run(ctx context.Context, spec Spec) ([]sessions.Record, error)
	// Stop has a session end, and does not wait for that.
	Stop(ctx context.Context, id string) error
}

// Acts are the operations on sessions of agents, for people. All fields are required.
type Acts struct {
	Kernel func() *operation.Kernel
	Audit  func() operation.Audit
	// Runs gives what runs sessions, the same at each call.
	Runs func() (Runs, error)
}

// StartRequest starts a session.
type StartRequest struct {
	Tier int    `json:"tier" required:"true" doc:"1 to 3, at most what server and token permit"`
	Note string `json:"note,omitempty" doc:"What the agent shall know; at most 8192 bytes"`
}

// SessionAccepted says that a session has been started, or was told to end.
type SessionAccepted struct { //nolint:revive // its schema in the description of REST has this name
	ID string `json:"id"`
}

// Location implements operation.Located.
func (s SessionAccepted) Location() string { return "/sessions/" + url.PathEscape(s.ID) }

// Ran lists the sessions that were run, the first one first, and says why no further one was.
type Ran struct {
	Records []sessions.Record
	Failure error // of a chain that had begun; it is on the record
}

// StopRequest names a session.
type StopRequest struct {
	ID string `json:"id" path:"id"`
}

// Operations returns start, run and stop.
func (a Acts) Operations() []operation.Operation {
	start := operation.Operation{
		Name: ActStart, Action: record.ActionStartSession, Summary: "Start a session", Effect: operation.Write,
		// In dry run the session is one, too, and its proposals pass the gates.
		Needs: operation.Needs{For: operation.People, Scope: access.Operate, Dry: operation.DryDone},
		Route: operation.Route{
			Method: http.MethodPost, Path: "/sessions", ID: "startSession", Status: http.StatusAccepted, Keyed: true,
			MaxBody: 64 << 10, TooLarge: "say less in the note", // a note fits whose every byte is escaped
			Notes: "The tier is at most the server's CLAUDEOPS_MAX_TIER and the token's, and so is that of every session that it hands " +
				"over to. conflict while another session runs.",
		},
	}
	run := operation.Operation{
		Name: ActRun, Action: start.Action, Summary: "Run an agent session at a tier", Effect: operation.Write,
		Command: "run",
		Needs:   operation.Needs{For: operation.Person, Dry: operation.DryDone},
	}
	stop := operation.Operation{
		Name: ActStop, Action: "session.stop", Summary: "Have a session end; read it to see when it has",
		Effect: operation.Write, Command: "session stop",
		Needs: operation.Needs{For: operation.People, Scope: access.Operate, Dry: operation.DryDone},
		Route: operation.Route{Method: http.MethodPost, Path: "/sessions/{id}/stop", ID: "stopSession",
			Status: http.StatusAccepted},
	}
	starting := operation.CallSpec[StartRequest]{
		Timeout: operation.Unbounded,
		Target:  func(in StartRequest) operation.Target { return operation.Target{Tier: gitprovider.Tier(in.Tier)} },
	}
	return []operation.Operation{
		operation.Define(a.Kernel, "", start, starting, a.startSession),
		operation.Define(a.Kernel, "", run, starting, a.startAndWait),
		operation.Define(a.Kernel, "", stop, operation.CallSpec[StopRequest]{Timeout: operation.Unbounded}, a.stopSession),
	}
}

// spec converts a call to a Spec. The start of the session is recorded before the session starts; if that fails, it
// does not start. Neither the session nor those that it hands over to have a right that the caller lacks: forbidden.
func (a Acts) spec(call operation.Call, in StartRequest) (Spec, error) {
	tier := gitprovider.Tier(in.Tier)
	if known := tier >= gitprovider.TierObserve && tier <= gitprovider.TierRemediate; known && tier <= call.Ceiling {
		if err := call.Scopes.MayGive(call.Caller.String(), tier, false); err != nil {
			return Spec{}, err
		}
	}
	trigger := sessions.TriggerCommand
	switch call.Caller.Door {
	case record.DoorREST:
		trigger = sessions.TriggerREST
	case record.DoorWeb:
		trigger = sessions.TriggerDashboard
	}
	return Spec{
		Tier: tier, Note: in.Note, Trigger: trigger, Starter: call.Caller.Actor,
		Ceiling: max(call.Scopes.HighestAgent(call.Ceiling), gitprovider.TierObserve), // 0 would cap nothing
		Admit: func(ctx context.Context, id string) error {
			return a.Audit().Record(context.WithoutCancel(ctx), call.Done("session "+id), nil)
		},
	}, nil
}

func (a Acts) startSession(ctx context.Context, call operation.Call, in StartRequest) (SessionAccepted, error) {
	runs, err := a.Runs()
	if err != nil {
		return SessionAccepted{}, err
	}
	spec, err := a.spec(call, in)
	if err != nil {
		return SessionAccepted{}, err
	}
	id, err := runs.Start(ctx, spec)
	return SessionAccepted{id}, err
}

// startAndWait waits for the end. A chain that has begun is on the record, so that its failure is none of the call.
func (a Acts) startAndWait(ctx context.Context, call operation.Call, in StartRequest) (Ran, error) {
	runs, err := a.Runs()
	if err != nil {
		return Ran{}, err
	}
	spec, err := a.spec(call, in)
	if err != nil {
		return Ran{}, err
	}
	records, err := runs.Run(ctx, spec)
	if len(records) == 0 {
		return Ran{}, err
	}
	return Ran{records, err}, nil
}

func (a Acts) stopSession(ctx context.Context, call operation.Call, in StopRequest) (SessionAccepted, error) {
	runs, err := a.Runs()
	if err != nil {
		return SessionAccepted{}, err
	}
	if err := runs.Stop(ctx, in.ID); err != nil {
		return SessionAccepted{}, err
	}
	if err := a.Audit().Record(context.WithoutCancel(ctx), call.Done("session "+in.ID), nil); err != nil {
		e := fault.From(err)
		return SessionAccepted{}, fault.Wrap(err, e.Code,
			"the session was told to end, but that is not recorded in the audit: %s", e.Message)
	}
	return SessionAccepted(in), nil
}
