package web_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

// agents is session.Runs without processes: a session that was started runs until it is stopped. It decides as the real
// one does. It keeps the rows of the audit that are about sessions.
type agents struct {
	w        *world
	settings session.Settings
	plan     session.Plan
	started  []session.Spec
	running  string
	rows     []record.Attempt
}

func (a *agents) Start(ctx context.Context, spec session.Spec) (string, error) {
	if err := a.settings.Check(spec); err != nil {
		return "", err
	}
	if a.running != "" {
		return "", fault.New(fault.Conflict, "session %s is running; wait until it ends, or stop it", a.running)
	}
	id := fmt.Sprintf("session-%04d", len(a.started)+1)
	if err := spec.Admit(ctx, id); err != nil {
		return "", err
	}
	a.started, a.running = append(a.started, spec), id
	return id, a.w.store.AgentSessions.BeginSession(ctx, sessions.Record{
		ID:        id,
		StartedAt: a.w.Now(),
		Task:      sessions.Task{Tier: spec.Tier, Trigger: spec.Trigger, Note: spec.Note, Model: "haiku"},
		Ending:    sessions.Ending{State: sessions.StateRunning},
	})
}

// Run implements session.Runs, for the command line alone.
func (a *agents) Run(context.Context, session.Spec) ([]sessions.Record, error) {
	return nil, fault.New(fault.Internal, "a server runs no session to its end")
}

func (a *agents) Stop(ctx context.Context, id string) error {
	r, err := a.w.store.AgentSessions.Session(ctx, id)
	if err == nil && r.State != sessions.StateRunning {
		err = fault.New(fault.Conflict, "session %s has ended already: %s", id, r.State)
	}
	if err != nil {
		return err
	}
	a.running, r.State, r.EndedAt = "", sessions.StateCancelled, a.w.Now()
	return a.w.store.AgentSessions.SaveSession(ctx, r)
}

// Record implements operation.Audit.
func (a *agents) Record(ctx context.Context, row record.Attempt, dryRun *record.Proposal,
	notices ...record.Notice) error {
	if strings.HasPrefix(row.Action, "session.") {
		a.rows = append(a.rows, row)
	}
	return a.w.store.Ledger.Record(ctx, row, dryRun, notices...)
}

func (a *agents) Plan() session.Plan {
	a.plan.MaxTier = a.settings.MaxTier
	return a.plan
}

// begun records a session, which runs unless it says otherwise.
func (w *world) begun(r sessions.Record) string {
	w.Helper()
	if r.State == "" {
		r.State = sessions.StateRunning
	}
	if r.Tier == 0 {
		r.Tier = 1
	}
	if r.Trigger == "" {
		r.Trigger = sessions.TriggerCommand
	}
	if r.StartedAt.IsZero() {
		r.StartedAt = w.Now()
	}
	if err := w.store.AgentSessions.BeginSession(context.Background(), r); err != nil {
		w.Fatal(err)
	}
	return r.ID
}

// said records events of a session, numbered from the one given.
func (w *world) said(id string, from int, events ...sessions.Event) {
	w.Helper()
	for i := range events {
		events[i].Seq, events[i].Time = from+i, w.Now()
	}
	if err := w.store.AgentSessions.AppendEvents(context.Background(), id, events); err != nil {
		w.Fatal(err)
	}
}
