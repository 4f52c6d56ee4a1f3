// This file removes what is older than the operator keeps. The audit stays whole.

package admin

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// RetentionStore knows what is old. internal/records/store implements it.
type RetentionStore interface {
	CountPrunable(ctx context.Context, before time.Time, kinds ...string) ([]record.Pruned, error)
	// Prune removes it, and appends the row in the transaction of the last removal. Without kinds it is about all.
	Prune(ctx context.Context, before time.Time, row func(removed []record.Pruned) record.Attempt,
		kinds ...string) ([]record.Pruned, error)
}

// RetentionActs are the operations for people. All fields are required.
type RetentionActs struct {
	Kernel func() *operation.Kernel
	Store  func() RetentionStore
	Keep   func() time.Duration // what is configured; 0 keeps everything
	// KeepOutput is the same for what agents said in sessions, the kind Output.
	KeepOutput func() time.Duration
	Output     string
	Now        func() time.Time
}

// RetentionRequest says how old the removed records must be.
type RetentionRequest struct {
	OlderThan string `json:"older_than,omitempty" doc:"age such as 90d, at least 7d (default: CLAUDEOPS_RETENTION)"`
}

// RetentionAnswer lists what was removed, or would be.
type RetentionAnswer struct {
	DryRun  bool            `json:"dry_run"`
	Before  time.Time       `json:"before,omitzero" doc:"Absent where contents are kept for ever"`
	Removed []record.Pruned `json:"removed"`
	// OutputBefore is Before of what agents said in sessions, where that is kept for a shorter time.
	OutputBefore time.Time `json:"session_output_before,omitzero" doc:"Before which what agents said in sessions goes, where that is later"`
}

// Operation removes what is old. The server asks for it, too, once a day.
func (a RetentionActs) Operation() operation.Operation {
	return operation.Define(a.Kernel, "", operation.Operation{
		Name: "prune", Action: "prune", Summary: "Remove contents that are older than the retention; never the audit",
		Effect: operation.Write, Command: "prune",
		Needs: operation.Needs{For: operation.Person, Dry: operation.DryTried},
		Shown: operation.Shown{
			Help: "prune removes texts and file contents of settled proposals, settled notices, answers under idempotency " +
				"keys, sessions of\n" +
				"browsers, and what agents said and noted, older than CLAUDEOPS_RETENTION. What agents said in sessions goes when\n" +
				"it is older than the policy's retention.session_transcripts. serve does it once a day. The audit stays whole, and\n" +
				"what is needed to recognise a change stays, too. With --dry-run it prints what would go.",
			View: func(out any) operation.View {
				v := operation.View{Table: [][]string{{"KIND", "ROWS"}}}
				for _, r := range out.(RetentionAnswer).Removed {
					v.Table = append(v.Table, []string{r.Kind, strconv.FormatInt(r.Rows, 10)})
				}
				return v
			},
			Said: func(out any, _ bool) string {
				if out.(RetentionAnswer).DryRun {
					return "Nothing was removed: this is a dry run."
				}
				return ""
			},
		},
	}, operation.CallSpec[RetentionRequest]{
		Timeout: operation.Unbounded,
		Check: func(in RetentionRequest) *operation.Fault {
			keep, err := a.retentionPeriod(in)
			switch {
			case err != nil:
				return operation.Invalid("older_than", "--older-than: %s", err)
			case keep == 0 && a.KeepOutput() == 0:
				return operation.Invalid("older_than",
					"everything is kept: set CLAUDEOPS_RETENTION, such as 90d, or give --older-than")
			}
			return nil
		},
	}, a.prune)
}

func (a RetentionActs) retentionPeriod(in RetentionRequest) (time.Duration, error) {
	if in.OlderThan == "" {
		return a.Keep(), nil
	}
	age, err := policy.ParseRetention(in.OlderThan)
	if err != nil {
		return 0, fmt.Errorf("%q is %w", in.OlderThan, err)
	}
	return age, nil
}

func (a RetentionActs) prune(ctx context.Context, call operation.Call, in RetentionRequest) (RetentionAnswer, error) {
	keep, err := a.retentionPeriod(in)
	if err != nil {
		return RetentionAnswer{}, err
	}
	out := RetentionAnswer{DryRun: call.DryRun}
	if output := a.KeepOutput(); output > 0 && (keep == 0 || output < keep) {
		out.OutputBefore = a.Now().Add(-output).UTC()
		if out.Removed, err = a.removed(ctx, call, out.OutputBefore, a.Output); err != nil || keep == 0 {
			return out, err
		}
	}
	out.Before = a.Now().Add(-keep).UTC()
	more, err := a.removed(ctx, call, out.Before)
	for i := range more { // older rows went first, or, in a dry run, are among them
		for _, r := range out.Removed {
			if r.Kind == more[i].Kind {
				more[i].Rows = max(more[i].Rows, r.Rows)
			}
		}
	}
	out.Removed = more
	return out, err
}

// removed removes what is older, of the kinds, and records it; in a dry run it counts.
func (a RetentionActs) removed(ctx context.Context, call operation.Call, before time.Time,
	kinds ...string) ([]record.Pruned,
	error) {
	if call.DryRun {
		return a.Store().CountPrunable(ctx, before, kinds...)
	}
	return a.Store().Prune(ctx, before, func(removed []record.Pruned) record.Attempt {
		message := "removed what is older than " + before.Format(time.RFC3339) + ":"
		for _, r := range removed {
			message += fmt.Sprintf(" %s %d", r.Kind, r.Rows)
		}
		return call.Done(message)
	}, kinds...)
}
