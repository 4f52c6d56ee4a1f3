package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/people"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/system/transport"
)

func pruneCommand(a *app) *cobra.Command {
	var age string
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove contents that are older than the retention; never the audit",
		Long: "prune removes texts and file contents of settled proposals, settled notices, answers under idempotency keys, sessions of\n" +
			"browsers, and what agents said and noted, older than CLAUDEOPS_RETENTION, as serve does once a day. The audit stays whole, and\n" +
			"what is needed to recognise a change stays, too. With --dry-run it prints what would go.",
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
			return runPrune(cmd.Context(), a, p, keep)
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

func runPrune(ctx context.Context, a *app, p *parts, keep time.Duration) (err error) {
	answer := pruneAnswer{DryRun: p.cfg.Permissions.DryRun, Before: time.Now().Add(-keep).UTC()}
	done := working(a, "Removing what is old")
	answer.Removed, err = pruneOlder(ctx, p, a.caller(p), answer.Before)
	if done(); err != nil {
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

// pruneOlder removes what is older than before, and records by whom.
func pruneOlder(ctx context.Context, p *parts, by operation.Caller, before time.Time) (removed []store.Pruned, err error) {
	err = p.people().Do(ctx, people.Act{Action: people.Prune, By: by}, func(row people.Row) error {
		if p.cfg.Permissions.DryRun {
			removed, err = p.store.Retention.CountPrunable(ctx, before)
			return err
		}
		removed, err = p.store.Retention.Prune(ctx, before, func(removed []store.Pruned) record.Attempt {
			message := "removed what is older than " + before.UTC().Format(time.RFC3339) + ":"
			for _, r := range removed {
				message += fmt.Sprintf(" %s %d", r.Kind, r.Rows)
			}
			return row(message)
		})
		return err
	})
	return removed, err
}

// pruneInterval is how often a server removes what is older than the retention.
const pruneInterval = 24 * time.Hour

// keepPruned removes what is older than the retention, now and then daily, until ctx ends.
func keepPruned(ctx context.Context, p *parts) {
	if p.cfg.Records.Retention == 0 || p.cfg.Permissions.DryRun {
		return
	}
	for ctx.Err() == nil {
		before := time.Now().Add(-p.cfg.Records.Retention)
		removed, err := pruneOlder(ctx, p, operation.Caller{Door: record.DoorWeb, Name: "retention"}, before)
		if err != nil && ctx.Err() == nil {
			p.log.Warn("not everything that is old was removed", "error", fault.From(err).Message)
		}
		p.log.Info("retention", "before", before, "removed", removed)
		transport.Sleep(ctx, pruneInterval)
	}
}
