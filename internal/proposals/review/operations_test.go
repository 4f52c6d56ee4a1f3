package review

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// kept is the records, in memory.
type kept struct {
	rows   []record.Attempt
	lifted int
}

func (k *kept) Record(_ context.Context, a record.Attempt, _ *record.Proposal, _ ...record.Notice) error {
	k.rows = append(k.rows, a)
	return nil
}

func (k *kept) RecordEnd(ctx context.Context, a record.Attempt, _ record.PullRecord, _ ...record.Notice) error {
	return k.Record(ctx, a, nil)
}

func (k *kept) LiftCooldown(ctx context.Context, _ record.PullKey, a record.Attempt) error {
	k.lifted++
	return k.Record(ctx, a, nil)
}

type nobody struct{}

func (nobody) Notices(record.Event, record.Attempt) []record.Notice { return nil }
func (nobody) Kick(context.Context)                                 {}

func TestARefusalSaysWhatWasWantedAsFarAsItIsKnown(t *testing.T) {
	listed := policy.Default()
	listed.Targets.EnvRepositories = []policy.RepoPattern{{Owner: "joe", Name: "other"}}
	const infra = `"number":7,"repo_owner":"joe","repo_name":"infra"`
	for name, c := range map[string]struct {
		operation, arguments string
		rules                operation.Rules
		dry                  bool
		door                 record.Door
		code                 fault.Code
		action, repo         string
	}{
		"an event that is none": {"review_pr", `{` + infra + `,"event":"sing"}`, operation.Rules{}, false, record.DoorREST,
			fault.InvalidArgument, "review", "infra"},
		"a field that is none": {"review_pr", `{` + infra + `,"event":"approve","x":1}`, operation.Rules{}, false,
			record.DoorREST, fault.InvalidArgument, "review.approve", "infra"},
		"a name that is none": {"merge_pr", `{"number":7,"repo_owner":"joe","repo_name":"a/b","x":1}`, operation.Rules{},
			false, record.DoorREST, fault.InvalidArgument, "review.merge", ""},
		"no policy": {"merge_pr", `{` + infra + `}`, operation.Rules{Problem: "broken"}, false,
			record.DoorREST, fault.ReadOnly, "review.merge", "infra"},
		"off the list": {"close_pr", `{` + infra + `}`, operation.Rules{Policy: listed}, false, record.DoorREST,
			fault.RepoNotAllowed, "review.close", "infra"},
		"dry run": {"review_pr", `{` + infra + `,"event":"comment","body":"x"}`, operation.Rules{}, true,
			record.DoorREST, fault.ReadOnly, "review.comment", "infra"},
		"an agent": {"review_pr", `{` + infra + `,"event":"approve"}`, operation.Rules{}, false,
			record.DoorMCP, fault.Forbidden, "review.approve", "infra"},
		"a cooldown, off the list": {"lift_cooldown", `{` + infra + `}`, operation.Rules{Policy: listed}, true,
			record.DoorREST, fault.RepoNotAllowed, "review.lift-cooldown", "infra"},
		"lifted in dry run": {"lift_cooldown", `{` + infra + `,"comment":"why"}`, operation.Rules{}, true,
			record.DoorREST, "", "review.lift-cooldown", "infra"},
	} {
		t.Run(name, func(t *testing.T) {
			k := &kept{}
			if c.rules.Problem == "" && c.rules.Policy.Targets.EnvRepositories == nil {
				c.rules.Policy = policy.Default()
			}
			kernel := operation.NewKernel(operation.KernelOptions{
				Authority: operation.Authority{Rules: c.rules, DryRun: c.dry}, Audit: k, Redact: func(s string) string { return s },
				Log: slog.New(slog.DiscardHandler), Now: time.Now, NewID: func() string { return "id" },
			})
			service := New(Options{ // its Host is nil: it panics if anything is done there
				Provider: "local", Kernel: kernel, Records: k, Notifier: nobody{},
				Pulls: known{&record.PullRecord{State: "closed"}},
			})
			desk := Operations{Service: func() *Service { return service }, ProviderOf: func(string,
				string) string {
				return "local"
			}}
			_, err := operation.Named(desk.Operations(), c.operation).Handle(t.Context(), operation.Call{
				Caller: operation.Caller{Actor: record.Actor{Door: c.door, Client: "ann"}}, Arguments: []byte(c.arguments),
			})
			if fault.CodeOf(err) != c.code || len(k.rows) != 1 || (k.lifted == 1) != (err == nil) {
				t.Fatalf("%v, %+v", err, k)
			}
			if got := service.Refused(t.Context(), Request{Verb: "approve",
				By:     operation.Caller{Actor: record.Actor{Door: record.DoorWeb}},
				Number: 7}, fault.New(fault.Forbidden, "no")); fault.CodeOf(got) != fault.Forbidden ||
				k.rows[1].Action != "review.approve" ||
				k.rows[1].PRNumber != 7 {
				t.Errorf("%v, %+v", got, k.rows)
			}
			if row := k.rows[0]; row.Action != c.action || row.Repo != c.repo || row.Code != c.code || row.PRNumber != 7 {
				t.Errorf("%+v", row)
			}
		})
	}
}

// known is the record of #1; nil for none.
type known struct{ pull *record.PullRecord }

func (k known) FindPull(context.Context, record.PullKey) (record.PullRecord, bool, error) {
	if k.pull == nil {
		return record.PullRecord{}, false, nil
	}
	return *k.pull, true, nil
}

// What the provider says counts: the record may be older, or of another state folder.
func TestTheCooldownIsLiftedOfWhatTheProviderSaysIsClosed(t *testing.T) {
	inRecord := func(s gitprovider.State) *record.PullRecord { return &record.PullRecord{State: s} }
	at := func(s gitprovider.State) gitprovider.PullRequest { return gitprovider.PullRequest{Number: 1, State: s} }
	down, none := fault.New(fault.Timeout, "no answer"), fault.New(fault.NotFound, "there is none")
	for name, c := range map[string]struct {
		record *record.PullRecord
		pr     gitprovider.PullRequest
		ours   bool
		err    error
		want   gitprovider.State
		code   fault.Code
	}{
		"closed a moment ago, open in the record": {record: inRecord(gitprovider.StateOpen),
			pr: at(gitprovider.StateClosed), want: gitprovider.StateClosed},
		"reopened, closed in the record": {record: inRecord(gitprovider.StateClosed),
			pr: at(gitprovider.StateOpen), want: gitprovider.StateOpen},
		"merged after all": {record: inRecord(gitprovider.StateClosed),
			pr: at(gitprovider.StateMerged), want: gitprovider.StateMerged},
		"closed, and ours by its mark, no record": {pr: at(gitprovider.StateClosed), ours: true,
			want: gitprovider.StateClosed},
		"closed, of somebody else": {pr: at(gitprovider.StateClosed)},
		"no such number":           {err: none},
		"closed in the record, no answer": {record: inRecord(gitprovider.StateClosed), err: down,
			want: gitprovider.StateClosed},
		"open in the record, no answer": {record: inRecord(gitprovider.StateOpen), err: down,
			code: fault.Timeout},
		"not in the record, no answer": {err: down, code: fault.Timeout},
		"in the record, and gone from the provider": {record: inRecord(gitprovider.StateOpen), err: none,
			code: fault.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(Options{Pulls: known{c.record},
				Ask: func(context.Context, string, string, string, int) (gitprovider.PullRequest, bool, error) {
					return c.pr, c.ours, c.err
				}})
			_, state, err := s.stateOf(t.Context(), record.PullKey{Number: 1})
			if fault.CodeOf(err) != c.code && (err != nil || c.code != "") || state != c.want {
				t.Errorf("%q, %v; want %q, %q", state, err, c.want, c.code)
			}
			var e *fault.Error
			if err != nil && !errors.As(err, &e) {
				t.Errorf("%v is not a fault", err)
			}
		})
	}
}
