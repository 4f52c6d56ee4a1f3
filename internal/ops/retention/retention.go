// Package retention removes what is older than the operator keeps. The audit stays whole.
package retention

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/config"
)

// Store knows what is old. internal/records/store implements it.
type Store interface {
	CountPrunable(ctx context.Context, before time.Time) ([]record.Pruned, error)
	// Prune removes it, and appends the row in the transaction of the last removal.
	Prune(ctx context.Context, before time.Time, row func(removed []record.Pruned) record.Attempt) ([]record.Pruned, error)
}

// Acts are the operations for people. All fields are required.
type Acts struct {
	Kernel func() *operation.Kernel
	Store  func() Store
	Keep   func() time.Duration // what is configured; 0 keeps everything
	Now    func() time.Time
}

// Request says how old the removed records must be.
type Request struct {
	OlderThan string `json:"older_than,omitempty" doc:"age such as 90d, at least 7d (default: CLAUDEOPS_RETENTION)"`
}

// Answer lists what was removed, or would be.
type Answer struct {
	DryRun  bool            `json:"dry_run"`
	Before  time.Time       `json:"before"`
	Removed []record.Pruned `json:"removed"`
}

// Operation removes what is old. The server asks for it, too, once a day.
func (a Acts) Operation() operation.Operation {
	return operation.Define(a.Kernel, "", operation.Operation{
		Name: "prune", Action: "prune", Summary: "Remove contents that are older than the retention; never the audit",
		Effect: operation.Write, Command: "prune",
		Needs: operation.Needs{For: operation.Person, Dry: operation.DryTried},
		Shown: operation.Shown{
			Help: "prune removes texts and file contents of settled proposals, settled notices, answers under idempotency " +
				"keys, sessions of\n" +
				"browsers, and what agents said and noted, older than CLAUDEOPS_RETENTION, as serve does once a day. The audit " +
				"stays whole, and\n" +
				"what is needed to recognise a change stays, too. With --dry-run it prints what would go.",
			View: func(out any) operation.View {
				v := operation.View{Table: [][]string{{"KIND", "ROWS"}}}
				for _, r := range out.(Answer).Removed {
					v.Table = append(v.Table, []string{r.Kind, strconv.FormatInt(r.Rows, 10)})
				}
				return v
			},
			Said: func(out any, _ bool) string {
				if out.(Answer).DryRun {
					return "Nothing was removed: this is a dry run."
				}
				return ""
			},
		},
	}, operation.Way[Request]{
		Timeout: operation.Unbounded,
		Check: func(in Request) *operation.Fault {
			keep, err := a.keep(in)
			switch {
			case err != nil:
				return operation.Invalid("older_than", "--older-than: %s", err)
			case keep == 0:
				return operation.Invalid("older_than",
					"everything is kept: set CLAUDEOPS_RETENTION, such as 90d, or give --older-than")
			}
			return nil
		},
	}, a.prune)
}

func (a Acts) keep(in Request) (time.Duration, error) {
	if in.OlderThan == "" {
		return a.Keep(), nil
	}
	return config.ParseRetention(in.OlderThan)
}

func (a Acts) prune(ctx context.Context, call operation.Call, in Request) (Answer, error) {
	keep, err := a.keep(in)
	if err != nil {
		return Answer{}, err
	}
	out := Answer{DryRun: call.DryRun, Before: a.Now().Add(-keep).UTC()}
	if out.DryRun {
		out.Removed, err = a.Store().CountPrunable(ctx, out.Before)
		return out, err
	}
	out.Removed, err = a.Store().Prune(ctx, out.Before, func(removed []record.Pruned) record.Attempt {
		message := "removed what is older than " + out.Before.Format(time.RFC3339) + ":"
		for _, r := range removed {
			message += fmt.Sprintf(" %s %d", r.Kind, r.Rows)
		}
		return call.Done(message)
	})
	return out, err
}
