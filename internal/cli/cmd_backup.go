package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/backup"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/keyfile"
)

// onStdout, as the name of a file, is standard output or input.
const onStdout = "-"

func (a *app) backupCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write the records to one file, while servers go on working",
		Long: "backup writes a consistent copy of the records, and the key of the marks, to a file that only you can read; - is standard\n" +
			"output. The copy is read again before it is kept: its structure and the whole audit. Keep the file like a password: with\n" +
			"the key in it, anybody makes marks that Claude Ops takes for its own. Keep the head that backup prints somewhere else,\n" +
			"and give it to restore with --expect-head.",
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return a.backUp(cmd.Context(), args[0], force) },
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace a file that exists")
	return cmd
}

func (a *app) backUp(ctx context.Context, path string, force bool) error {
	p := a.wire()
	if err := p.needFileRecords(); err != nil {
		return err
	}
	src := backup.Source{
		Copy: p.store.CopyTo, Version: version(), Now: time.Now,
		Key: func() ([]byte, error) { return keyfile.Find(p.cfg.StateDir) },
	}
	if path == onStdout {
		m, err := backup.Write(ctx, src, p.cfg.StateDir, a.streams.Out)
		if err != nil {
			return err
		}
		fmt.Fprint(a.streams.Err, p.backedUp(m, "standard output"))
		return nil
	}
	m, err := backup.WriteFile(ctx, src, path, force)
	if err != nil {
		return err
	}
	return a.print(m, func(w *strings.Builder) { w.WriteString(p.backedUp(m, path)) })
}

// backedUp says what a backup holds and what to do with it.
func (p *parts) backedUp(m backup.Manifest, where string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Backed up to %s: %d rows of the audit, head %s\n", where, m.Rows, m.Head)
	switch {
	case m.HoldsKey():
		b.WriteString("It holds the key of the marks: keep it like a password.\n")
	case p.cfg.MarkKey != "":
		b.WriteString("The key of the marks is not in it: it is configured (CLAUDEOPS_MARK_KEY). Keep it elsewhere.\n")
	default:
		b.WriteString("There is no key of the marks yet.\n")
	}
	return b.String()
}

// needFileRecords refuses what is for records in a state folder only.
func (p *parts) needFileRecords() error {
	switch {
	case p.cfg.DatabaseURL != "":
		return usageError{errors.New("the records are in PostgreSQL (CLAUDEOPS_DATABASE_URL): back them up with pg_dump and restore them " +
			"with pg_restore; keep CLAUDEOPS_MARK_KEY, or mark.key of the state folder, with the dump")}
	case p.cfg.StateDir == "":
		return fault.New(fault.Misconfigured, "%s", p.cfg.StateDirProblem)
	}
	return nil
}
