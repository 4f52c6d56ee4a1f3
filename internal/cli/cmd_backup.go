package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/base/plural"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/keyfile"
)

func backupCommand(a *commandLine) *cobra.Command {
	return &cobra.Command{
		Use:   "backup FOLDER",
		Short: "Copy the state folder to a new one, while servers go on working",
		Long: "backup makes a folder that only you can read, with a consistent copy of the records and the secrets of the " +
			"state folder: the\n" +
			"key of the marks and the operator's token. The copy is opened and its audit verified before the folder gets its name.\n" +
			"Keep it like a password, and keep the head that backup prints somewhere else.\n\n" +
			"The folder is a state folder. To restore it, end every claudeops, put it where the state folder was, or name it with\n" +
			"CLAUDEOPS_STATE_DIR, and run claudeops audit verify --expect-head HEAD. Records in PostgreSQL are backed up with pg_dump.",
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return runBackup(cmd.Context(), a, args[0]) },
	}
}

// backupAnswer describes a written backup, as JSON.
type backupAnswer struct {
	Folder string   `json:"folder"`
	Files  []string `json:"files"` // the database aside
	Rows   int64    `json:"rows"`  // of the audit; no row and no head with PostgreSQL
	Head   string   `json:"head,omitempty"`
}

func runBackup(ctx context.Context, a *commandLine, folder string) error {
	p := a.program().Wire(app.Needs{Records: true})
	if p.Cfg.Records.Dir == "" {
		return fault.New(fault.Misconfigured, "%s", p.Cfg.Records.Problem)
	}
	done := working(a, "Copying the records and verifying the copy")
	report, files, err := p.Store.Backup(ctx, folder, keyfile.Name, config.OperatorTokenFile)
	done()
	if err != nil {
		return err
	}
	answer := backupAnswer{Folder: folder, Files: append([]string{}, files...), Rows: report.Rows, Head: report.Head}
	return a.print(answer, func(w *strings.Builder) { describeBackup(p, w, answer) })
}

func describeBackup(p *app.Parts, w *strings.Builder, b backupAnswer) {
	if p.Cfg.Records.DatabaseURL == "" {
		fmt.Fprintf(w, "Backed up to %s: %s of the audit, head %s\n", b.Folder, plural.Of(int(b.Rows), "row", "rows"), b.Head)
	} else {
		fmt.Fprintf(w,
			"Copied the files of the state folder to %s. The records are in PostgreSQL: back them up with pg_dump.\n", b.Folder)
	}
	switch {
	case p.Cfg.Records.MarkKey != "":
		w.WriteString("The key of the marks is not in it: it is configured (CLAUDEOPS_MARK_KEY). Keep it elsewhere.\n")
	case slices.Contains(b.Files, keyfile.Name):
		w.WriteString("It holds the key of the marks: keep it like a password.\n")
	default:
		w.WriteString("There is no key of the marks yet.\n")
	}
}
