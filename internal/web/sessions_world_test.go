package web_test

import (
	"context"
	"fmt"

	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/people"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

// agents is web.Sessions without processes: a session that was started runs until it is stopped. It decides and records as
// the real one does.
type agents struct {
	w        *world
	settings session.Settings
	plan     session.Plan
	started  []session.Spec
	running  string
	rows     []record.Attempt // of the audit
}

func (a *agents) Start(ctx context.Context, o people.Operator, spec session.Spec) (string, error) {
	err := a.settings.Check(spec)
	if err == nil && a.running != "" {
		err = fault.New(fault.Conflict, "session %s is running; wait until it ends, or stop it", a.running)
	}
	if err != nil {
		return "", a.Refused(ctx, o, people.StartSession, err)
	}
	a.started = append(a.started, spec)
	a.running = fmt.Sprintf("session-%04d", len(a.started))
	a.record(o, people.StartSession, record.OutcomeDone, "")
	return a.running, a.w.store.AgentSessions.BeginSession(ctx, sessions.Record{
		ID:        a.running,
		StartedAt: a.w.Now(),
		Task:      sessions.Task{Tier: spec.Tier, Trigger: spec.Trigger, Note: spec.Note, Model: "haiku"},
		Ending:    sessions.Ending{State: sessions.StateRunning},
	})
}

func (a *agents) Stop(ctx context.Context, o people.Operator, id string) error {
	r, err := a.w.store.AgentSessions.Session(ctx, id)
	if err == nil && r.State != sessions.StateRunning {
		err = fault.New(fault.Conflict, "session %s has ended already: %s", id, r.State)
	}
	if err != nil {
		return a.Refused(ctx, o, people.StopSession, err)
	}
	a.running, r.State, r.EndedAt = "", sessions.StateCancelled, a.w.Now()
	a.record(o, people.StopSession, record.OutcomeDone, "")
	return a.w.store.AgentSessions.SaveSession(ctx, r)
}

func (a *agents) Refused(_ context.Context, o people.Operator, action people.Action, why error) error {
	a.record(o, action, record.OutcomeRefused, fault.CodeOf(why))
	return operation.Recorded(why, o.RequestID)
}

func (a *agents) record(o people.Operator, action people.Action, outcome record.Outcome, code fault.Code) {
	row := record.Attempt{
		Time: a.w.Now(), RequestID: o.RequestID, Door: o.By.Door, Caller: o.By.Name, Action: string(action), Outcome: outcome, Code: code,
	}
	a.rows = append(a.rows, row)
	if err := a.w.store.Ledger.Record(context.Background(), row, nil); err != nil {
		a.w.Error(err)
	}
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
