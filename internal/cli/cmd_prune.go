package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/people"
	"github.com/claudeops/claudeops/internal/record"
	"github.com/claudeops/claudeops/internal/store"
)

func (a *app) pruneCommand() *cobra.Command {
	var age string
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove contents that are older than the retention; never the audit",
		Long: "prune removes texts and file contents of settled proposals, settled notices, answers under idempotency keys and sessions\n" +
			"that are older than CLAUDEOPS_RETENTION, as serve does once a day. The audit stays whole, and what is needed to recognise a\n" +
			"change stays, too. With --dry-run it prints what would go.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p := a.wire(needs{records: true})
			keep := p.cfg.Records.Retention
			if age != "" {
				var err error
				if keep, err = config.ParseRetention(age); err != nil {
					return usageError{fmt.Errorf("--older-than: %w", err)}
				}
			}
			if keep == 0 {
				return usageError{errors.New("everything is kept: set CLAUDEOPS_RETENTION, such as 90d, or give --older-than")}
			}
			return a.prune(cmd.Context(), p, keep)
		},
	}
	cmd.Flags().StringVar(&age, "older-than", "", "age such as 90d, at least 7d (default: CLAUDEOPS_RETENTION)")
	return cmd
}

// pruneAnswer is what prune prints.
type pruneAnswer struct {
	DryRun  bool           `json:"dry_run"`
	Before  time.Time      `json:"before"`
	Removed []store.Pruned `json:"removed"`
}

func (a *app) prune(ctx context.Context, p *parts, keep time.Duration) (err error) {
	answer := pruneAnswer{DryRun: p.cfg.Permissions.DryRun, Before: time.Now().Add(-keep).UTC()}
	err = p.people.Do(ctx, people.Act{Action: people.Prune, By: a.caller(p)}, func(row people.Row) error {
		if p.cfg.Permissions.DryRun {
			answer.Removed, err = p.store.CountPrunable(ctx, answer.Before)
		} else {
			answer.Removed, err = p.store.Prune(ctx, answer.Before, pruneRow(row, answer.Before))
		}
		return err
	})
	if err != nil {
		return err
	}
	return a.print(answer, func(w *strings.Builder) {
		rows := [][]string{{"KIND", "ROWS"}}
		for _, r := range answer.Removed {
			rows = append(rows, []string{r.Kind, strconv.FormatInt(r.Rows, 10)})
		}
		columns(w, rows)
		if answer.DryRun {
			w.WriteString("Nothing was removed: this is a dry run.\n")
		}
	})
}

// pruneRow makes the row of the audit about a removal.
func pruneRow(row people.Row, before time.Time) func([]store.Pruned) record.Attempt {
	return func(removed []store.Pruned) record.Attempt {
		message := "removed what is older than " + before.UTC().Format(time.RFC3339) + ":"
		for _, r := range removed {
			message += fmt.Sprintf(" %s %d", r.Kind, r.Rows)
		}
		return row(message)
	}
}

// pruneInterval is how often a server removes what is older than the retention.
const pruneInterval = 24 * time.Hour

// pruneInBackground removes what is old, now and then daily, until ctx ends. done is closed at the end.
func (p *parts) pruneInBackground(ctx context.Context) (done chan struct{}) {
	done = make(chan struct{})
	if p.cfg.Records.Retention == 0 || p.cfg.Permissions.DryRun {
		close(done)
		return done
	}
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			before := time.Now().Add(-p.cfg.Records.Retention)
			var removed []store.Pruned
			act := people.Act{Action: people.Prune, By: operation.Caller{Door: record.DoorWeb, Name: "retention"}}
			err := p.people.Do(ctx, act, func(row people.Row) (err error) {
				removed, err = p.store.Prune(ctx, before, pruneRow(row, before))
				return err
			})
			if err != nil && ctx.Err() == nil {
				p.log.Warn("not everything that is old was removed", "error", fault.From(err).Message)
			}
			p.log.Info("retention", "before", before, "removed", removed)
			sleep(ctx, pruneInterval)
		}
	}()
	return done
}
