package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/settings/config"
)

type doctorOptions struct {
	online bool
	repos  []string
}

func doctorCommand(a *commandLine) *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the configuration and say what would stop a pull request",
		Long: "doctor opens what is configured: records, policy, key, local repositories, the agents' CLI. It contacts no " +
			"server. With\n" +
			"--online it also asks the providers, looks up every repository that is named, and says what our tokens may do there:\n" +
			"enough to propose, and not so much that they could merge. It ends with exit code 3 if something would stop a pull\n" +
			"request: every one, or every one at a provider that is configured or to a repository that is named.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd.Context(), a, o) },
	}
	cmd.Flags().BoolVar(&o.online, "online", false, "ask the providers about our access")
	cmd.Flags().StringArrayVar(&o.repos, "repo", nil,
		"repository to ask about, as owner/name, beside those that CLAUDEOPS_REPOS and the policy name; may be repeated")
	return cmd
}

func runDoctor(ctx context.Context, a *commandLine, o doctorOptions) error {
	findings, err := findingsOf(ctx, a, o)
	if err != nil {
		return err
	}
	blocking := doctor.Blocking(findings)
	answer := map[string]any{"findings": findings, "can_open": len(blocking) == 0, "blocking": blocking}
	err = a.print(answer, func(w *strings.Builder) { describeFindings(w, findings, blocking) })
	if err == nil && len(blocking) > 0 {
		return silentExit(fault.ExitRefused)
	}
	return err
}

// findingsOf returns doctor's findings.
func findingsOf(ctx context.Context, a *commandLine, o doctorOptions) ([]doctor.Finding, error) {
	if len(o.repos) > 0 && !o.online {
		return nil, app.Usage(errors.New("--repo goes with --online"))
	}
	var repos []gitprovider.RepoRef
	for _, name := range o.repos {
		repo, err := parseRepo(name)
		if err != nil {
			return nil, err
		}
		repos = append(repos, repo)
	}
	d := app.NewDoctorOf(a.program().Wire(app.Needs{}))
	findings := append(d.Look(ctx), a.program().ToolsetFindings(ctx)...)
	if o.online {
		findings = append(findings, d.Online(ctx, repos)...)
	}
	return doctor.Merge(findings), nil
}

func describeFindings(w *strings.Builder, findings []doctor.Finding, blocking []string) {
	var rows [][]string
	for _, f := range findings {
		rows = append(rows, findingRows(f)...)
	}
	sentences(w, rows)
	if len(blocking) == 0 {
		w.WriteString("\nNothing here would stop a pull request.\n")
		return
	}
	fmt.Fprintf(w, "\nPull requests would be stopped by: %s.\n", strings.Join(blocking, ", "))
}

// findingRows returns the lines about a part: how it is, and below it what it stops and what to do.
func findingRows(f doctor.Finding) [][]string {
	detail := f.Detail
	if f.Title != "" {
		detail = f.Title + ": " + detail
	}
	rows := [][]string{{f.Status, f.Name, detail}}
	if f.Stops != "" && f.Status != doctor.OK {
		rows = append(rows, []string{"", "", "it stops " + f.Stops})
	}
	if f.Do != "" {
		rows = append(rows, []string{"", "", "to change that: " + f.Do})
	}
	return rows
}

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
	report, files, err := p.Store.Backup(ctx, folder, config.MarkKeyName, config.OperatorTokenFile)
	done()
	if err != nil {
		return err
	}
	answer := backupAnswer{Folder: folder, Files: append([]string{}, files...), Rows: report.Rows, Head: report.Head}
	return a.print(answer, func(w *strings.Builder) { describeBackup(p, w, answer) })
}

func describeBackup(p *app.Parts, w *strings.Builder, b backupAnswer) {
	if p.Cfg.Records.DatabaseURL == "" {
		fmt.Fprintf(w, "Backed up to %s: %s of the audit, head %s\n", b.Folder, fault.Count(int(b.Rows), "row", "rows"), b.Head)
	} else {
		fmt.Fprintf(w,
			"Copied the files of the state folder to %s. The records are in PostgreSQL: back them up with pg_dump.\n", b.Folder)
	}
	switch {
	case p.Cfg.Records.MarkKey != "":
		w.WriteString("The key of the marks is not in it: it is configured (CLAUDEOPS_MARK_KEY). Keep it elsewhere.\n")
	case slices.Contains(b.Files, config.MarkKeyName):
		w.WriteString("It holds the key of the marks: keep it like a password.\n")
	default:
		w.WriteString("There is no key of the marks yet.\n")
	}
}
