package people_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/people"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// audit keeps rows, or fails.
type audit struct {
	rows []record.Attempt
	err  error
}

func (a *audit) Record(_ context.Context, row record.Attempt, _ *record.Proposal, _ ...record.Notice) error {
	if a.err == nil {
		a.rows = append(a.rows, row)
	}
	return a.err
}

func service(a *audit, settings operation.Authority) *people.Service {
	return &people.Service{Kernel: operation.NewKernel(operation.KernelOptions{
		Authority: settings, Audit: a, Redact: func(s string) string { return s }, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return time.Unix(1, 0) }, NewID: func() string { return "id" },
	})}
}

func rules(r operation.Rules) operation.Authority { return operation.Authority{Rules: r} }

func act(action people.Action) people.Act {
	return people.Act{Action: action, By: operation.Caller{Door: record.DoorCLI, Name: "ann"}, Provider: "local", Owner: "joe", Name: "infra"}
}

func TestEachRuleRefusesWhatItSaysAndRecordsIt(t *testing.T) {
	listed := policy.Default()
	listed.Targets.EnvRepositories = []policy.RepoPattern{{Owner: "joe", Name: "other"}}
	for name, c := range map[string]struct {
		settings operation.Authority
		refuses  func(people.Rule) bool
		code     fault.Code
	}{
		"nothing":   {rules(operation.Rules{Policy: policy.Default()}), func(people.Rule) bool { return false }, ""},
		"no policy": {rules(operation.Rules{Problem: "broken"}), func(r people.Rule) bool { return r.Needs.Policy }, fault.ReadOnly},
		"read-only": {rules(operation.Rules{Closed: true}), func(r people.Rule) bool { return r.Needs.Writable }, fault.ReadOnly},
		"dry run":   {operation.Authority{DryRun: true}, func(r people.Rule) bool { return r.Needs.Dry == operation.DryRefused }, fault.ReadOnly},
		"a list":    {rules(operation.Rules{Policy: listed}), func(r people.Rule) bool { return r.Needs.Listed }, fault.RepoNotAllowed},
	} {
		for _, rule := range people.Rules() {
			t.Run(fmt.Sprint(name, ", ", rule.Action), func(t *testing.T) {
				a, did := &audit{}, false
				err := service(a, c.settings).Do(t.Context(), act(rule.Action), func(row people.Row) error {
					did = true
					return a.Record(t.Context(), row("done it"), nil)
				})
				want, outcome := fault.Code(""), record.OutcomeDone
				if c.refuses(rule) {
					want, outcome = c.code, record.OutcomeRefused
				}
				if fault.CodeOf(err) != want || did == (want != "") || len(a.rows) != 1 {
					t.Fatalf("got %v, done %t, rows %+v", err, did, a.rows)
				}
				row := a.rows[0]
				if row.Outcome != outcome || row.Code != want || row.Action != string(rule.Action) || row.Caller != "ann" || row.RequestID != "id" {
					t.Errorf("row %+v", row)
				}
				if want != "" && operation.RequestIDOf(err) != "id" {
					t.Errorf("the error names the row %q", operation.RequestIDOf(err))
				}
			})
		}
	}
}

func TestWhatGoesWrongIsRecordedAsItIs(t *testing.T) {
	for _, c := range []struct {
		err     error
		outcome record.Outcome
		code    fault.Code
	}{
		{fault.New(fault.Conflict, "closed already"), record.OutcomeRefused, fault.Conflict},
		{fault.New(fault.UpstreamError, "it is down"), record.OutcomeFailed, fault.UpstreamError},
		{errors.New("odd"), record.OutcomeFailed, fault.Internal},
	} {
		a := &audit{}
		err := service(a, operation.Authority{}).Do(t.Context(), act(people.StopSession), func(people.Row) error { return c.err })
		if !errors.Is(err, c.err) || len(a.rows) != 1 || a.rows[0].Outcome != c.outcome || a.rows[0].Code != c.code {
			t.Errorf("%v: %v, %+v", c.err, err, a.rows)
		}
	}
}

func TestARefusalThatCannotBeRecordedIsOneAllTheSame(t *testing.T) {
	a := &audit{err: errors.New("the disk is full")}
	s := service(a, operation.Authority{DryRun: true})
	err := s.Do(t.Context(), act(people.AllowSource), func(people.Row) error { t.Error("it was done"); return nil })
	if fault.CodeOf(err) != fault.ReadOnly || operation.RequestIDOf(err) != "" {
		t.Errorf("got %v, row %q", err, operation.RequestIDOf(err))
	}
	if err := s.Do(t.Context(), act("sing"), func(people.Row) error { t.Error("it was done"); return nil }); fault.CodeOf(err) != fault.Internal {
		t.Errorf("an action without a rule: %v", err)
	}
}

func TestWhoIsNotLetInAnyMoreDoesNothing(t *testing.T) {
	a := &audit{}
	late := act(people.StopSession)
	late.By.Recheck = func(context.Context) error { return fault.New(fault.Unauthenticated, "the login has ended") }
	err := service(a, operation.Authority{}).Do(t.Context(), late, func(people.Row) error {
		t.Error("it was done")
		return nil
	})
	if fault.CodeOf(err) != fault.Unauthenticated || len(a.rows) != 1 || a.rows[0].Outcome != record.OutcomeRefused || a.rows[0].Code != fault.Unauthenticated {
		t.Errorf("got %v, rows %+v", err, a.rows)
	}
}
