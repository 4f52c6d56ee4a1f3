package people_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/people"
	"github.com/claudeops/claudeops/internal/policy"
	"github.com/claudeops/claudeops/internal/record"
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

func service(a *audit, settings people.Settings) *people.Service {
	return people.New(people.Options{
		Settings: settings, Audit: a, Redact: func(s string) string { return s }, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return time.Unix(1, 0) }, NewID: func() string { return "id" },
	})
}

func act(action people.Action) people.Act {
	return people.Act{Action: action, By: operation.Caller{Door: record.DoorCLI, Name: "ann"}, Provider: "local", Owner: "joe", Name: "infra"}
}

func TestEachRuleRefusesWhatItSaysAndRecordsIt(t *testing.T) {
	listed := policy.Default()
	listed.Targets.EnvRepositories = []policy.RepoPattern{{Owner: "joe", Name: "other"}}
	for name, c := range map[string]struct {
		settings people.Settings
		refuses  func(people.Rule) bool
		code     fault.Code
	}{
		"nothing":   {people.Settings{Policy: policy.Default()}, func(people.Rule) bool { return false }, ""},
		"no policy": {people.Settings{PolicyProblem: "broken"}, func(r people.Rule) bool { return r.NoPolicy }, fault.ReadOnly},
		"read-only": {people.Settings{ReadOnly: true}, func(r people.Rule) bool { return r.ReadOnly }, fault.ReadOnly},
		"dry run":   {people.Settings{DryRun: true}, func(r people.Rule) bool { return r.DryRun }, fault.ReadOnly},
		"a list":    {people.Settings{Policy: listed}, func(r people.Rule) bool { return r.Listed }, fault.RepoNotAllowed},
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
		err := service(a, people.Settings{}).Do(t.Context(), act(people.Prune), func(people.Row) error { return c.err })
		if !errors.Is(err, c.err) || len(a.rows) != 1 || a.rows[0].Outcome != c.outcome || a.rows[0].Code != c.code {
			t.Errorf("%v: %v, %+v", c.err, err, a.rows)
		}
	}
}

func TestARefusalThatCannotBeRecordedIsOneAllTheSame(t *testing.T) {
	a := &audit{err: errors.New("the disk is full")}
	s := service(a, people.Settings{DryRun: true})
	err := s.Do(t.Context(), act(people.Merge), func(people.Row) error { t.Error("it was done"); return nil })
	if fault.CodeOf(err) != fault.ReadOnly || operation.RequestIDOf(err) != "" {
		t.Errorf("got %v, row %q", err, operation.RequestIDOf(err))
	}
	if err := s.Do(t.Context(), act("sing"), func(people.Row) error { t.Error("it was done"); return nil }); fault.CodeOf(err) != fault.Internal {
		t.Errorf("an action without a rule: %v", err)
	}
}
