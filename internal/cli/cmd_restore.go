package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/backup"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/people"
	"github.com/claudeops/claudeops/internal/record"
	"github.com/claudeops/claudeops/internal/store"
)

func (a *app) restoreCommand() *cobra.Command {
	var opts store.RestoreOptions
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Bring back the records that backup has written",
		Long: "restore puts the records of a backup into the state folder; - is standard input. Nothing changes before the backup was\n" +
			"found sound: its structure, its version, the whole audit. No other claudeops may use the folder meanwhile. Records that\n" +
			"are there stay, unless --replace moves them aside. The restore itself becomes a row of the audit.",
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return a.restore(cmd.Context(), args[0], opts) },
	}
	cmd.Flags().BoolVar(&opts.Replace, "replace", false, "move records that are there aside, into a folder beside them")
	cmd.Flags().StringVar(&opts.ExpectHead, "expect-head", "",
		"hash that backup or audit verify printed; it must be in the chain of the backup")
	return cmd
}

// restoredAnswer is what a restore has brought, as JSON.
type restoredAnswer struct {
	backup.Manifest
	Aside string `json:"aside,omitempty"` // folder that the former records were moved to
}

func (a *app) restore(ctx context.Context, path string, opts store.RestoreOptions) error {
	p := a.wire()
	if err := p.needFileRecords(); err != nil {
		return err
	}
	var answer restoredAnswer
	var restored store.Restored
	err := p.people.Do(ctx, people.Act{Action: people.Restore, By: a.caller(p)}, func(row people.Row) error {
		in, err := a.backupToRead(path)
		if err != nil {
			return err
		}
		defer in.Close()
		opts.Options = store.Options{Now: time.Now, MakeParents: p.cfg.StateDirDefault}
		opts.Row = func(found record.AuditReport) record.Attempt {
			return row(fmt.Sprintf("restored the backup of %s, %d rows, head %s",
				answer.MadeAt.Format(time.RFC3339), found.Rows, found.Head))
		}
		restored, err = store.Restore(ctx, p.cfg.StateDir, opts, func(folder string) (err error) {
			answer.Manifest, err = backup.Unpack(ctx, in, folder)
			return err
		})
		return err
	})
	if err != nil {
		return err
	}
	answer.Aside = restored.Aside
	return a.print(answer, func(w *strings.Builder) { p.describeRestored(w, answer, restored) })
}

func (p *parts) describeRestored(w *strings.Builder, answer restoredAnswer, restored store.Restored) {
	fmt.Fprintf(w, "Restored the backup of %s: %d rows of the audit, head %s\n",
		answer.MadeAt.Format(time.RFC3339), restored.Audit.Rows, restored.Audit.Head)
	if restored.Aside != "" {
		fmt.Fprintf(w, "The former records are in %s.\n", restored.Aside)
	}
	if !answer.HoldsKey() && p.cfg.MarkKey == "" {
		w.WriteString("The backup holds no key of the marks: pull requests from before are recognised only with the key that signed them.\n")
	}
}

func (a *app) backupToRead(path string) (io.ReadCloser, error) {
	if path == onStdout {
		return io.NopCloser(a.streams.In), nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.Wrap(err, fault.NotFound, "the backup %s cannot be opened: %s", path, store.FileReason(err))
	}
	return f, nil
}
