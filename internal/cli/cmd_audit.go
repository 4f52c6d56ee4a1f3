package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/auditsink"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/web/views"
)

func auditCommand(a *commandLine) *cobra.Command {
	return group("audit", "Read and verify the record of every attempt", auditListCommand(a), auditShowCommand(a),
		auditVerifyCommand(a))
}

func auditListCommand(a *commandLine) *cobra.Command {
	var q record.AuditQuery
	var outcome, code, pull string
	cmd := &cobra.Command{
		Use: "list", Short: "List attempts, newest first", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.Limit < 1 || q.Limit > record.MaxAuditLimit {
				return app.Usage(fmt.Errorf("--limit is 1 to %d", record.MaxAuditLimit))
			}
			if err := errors.Join(checkOutcome(outcome), checkCode(code), checkPull(pull)); err != nil {
				return err
			}
			q.Outcome, q.Code, q.Pull = record.Outcome(outcome), fault.Code(code), record.PullState(pull)
			p := a.program().Wire(app.Needs{Records: true})
			rows, err := p.Store.Audit.Page(cmd.Context(), q)
			if err != nil {
				return err
			}
			entries, err := entriesOf(cmd.Context(), p, rows)
			if err != nil {
				return err
			}
			page := listOf(entries)
			if len(rows) == q.Limit {
				page.NextCursor = strconv.FormatInt(rows[len(rows)-1].Seq, 10) // for --before
			}
			return a.print(page, func(w *strings.Builder) { describeAudit(w, entries) })
		},
	}
	f := cmd.Flags()
	f.IntVar(&q.Limit, "limit", record.DefaultAuditLimit, fmt.Sprintf("rows, at most %d", record.MaxAuditLimit))
	f.Int64Var(&q.Before, "before", 0, "rows with a smaller number only")
	f.StringVar(&q.Repo, "repo", "", "repository as owner/name")
	f.StringVar(&q.Caller, "caller", "", "who made the attempt: a token, a session or a user")
	f.StringVar(&outcome, "outcome", "", "opened, reused, dry_run, refused, failed or done")
	f.StringVar(&code, "code", "", "code of a refusal")
	f.StringVar(&pull, "pull", "",
		"open, merged, closed or gone: state of the pull request that the attempt opened, as last seen")
	return cmd
}

// entriesOf adds to rows of the audit the facts beside them.
func entriesOf(ctx context.Context, p *app.Parts, rows []record.RecordedAttempt) ([]record.AuditEntry, error) {
	entries := make([]record.AuditEntry, 0, len(rows))
	for part := range slices.Chunk(rows, record.MaxAttemptLimit) {
		about, err := views.AboutOf(ctx, p.Store.Pulls, p.Store.AgentSessions, part)
		if err != nil {
			return nil, err
		}
		for _, r := range part {
			entries = append(entries, about.Entry(r, func(text string) string { return cleanLine(text, 100) }))
		}
	}
	return entries, nil
}

func describeAudit(w *strings.Builder, entries []record.AuditEntry) {
	if len(entries) == 0 {
		w.WriteString("No attempts.\n")
		return
	}
	rows := [][]string{{"SEQ", "TIME", "WHO", "DOOR", "TIER", "OUTCOME", "CODE", "PULL", "WHAT HAPPENED"}}
	for _, e := range entries {
		rows = append(rows, []string{
			strconv.FormatInt(e.Seq, 10), operation.TimeCell(e.Time), cleanLine(record.ReadableCaller(e.Caller), 100),
			views.Door(record.Door(e.Door)),
			strconv.Itoa(e.Tier), views.Outcome(record.Outcome(e.Outcome)).Text, string(e.Code),
			wordFor(record.PullState(e.PullState)).Text, e.Act,
		})
	}
	listing(w, layout{text: []string{"WHO"}, goes: []string{"DOOR", "TIER", "CODE", "PULL"}, folds: true}, rows)
}

// cleanLine prepares text that others wrote for a terminal: no control characters, no line breaks, capped.
func cleanLine(text string, runes int) string {
	return textscan.Clean(strings.Join(strings.Fields(text), " "), runes)
}

func auditShowCommand(a *commandLine) *cobra.Command {
	return &cobra.Command{
		Use: "show SEQ|REQUEST-ID", Short: "Show one attempt, gate by gate", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			p := a.program().Wire(app.Needs{Records: true})
			id, err := a.fullID(cmd.Context(), record.IDOfAttempt, args[0])
			if err != nil {
				return err
			}
			row, err := p.Store.Audit.Entry(cmd.Context(), id)
			if err != nil {
				return err
			}
			entries, err := entriesOf(cmd.Context(), p, []record.RecordedAttempt{row})
			if err != nil {
				return err
			}
			entry := entries[0]
			return a.print(entry, func(w *strings.Builder) { describeEntry(w, entry) })
		},
	}
}

func describeEntry(w *strings.Builder, e record.AuditEntry) {
	fmt.Fprintf(w, "%s\n", e.Act)
	rows := [][]string{
		{"  action", e.Action + ", " + views.Outcome(record.Outcome(e.Outcome)).Text + ", " +
			e.Time.Format(time.RFC3339Nano)},
		{"  request", e.RequestID},
		{"  caller", cleanLine(record.ReadableCaller(e.Caller), 200) + ", " + views.Door(record.Door(e.Door)) + ", tier " +
			strconv.Itoa(e.Tier)},
		{"  duration", fmt.Sprintf("%.1f ms", e.DurationMS)},
	}
	if e.Repo != "" {
		rows = append(rows, []string{"  repository", cleanLine(e.Provider+":"+e.Repo, 250) + ", base " + cleanLine(e.Base,
			200)})
	}
	if e.Title != "" {
		rows = append(rows, []string{"  title", cleanLine(e.Title, 200)})
	}
	if e.Policy != "" {
		rows = append(rows, []string{"  policy", cleanLine(e.Policy, 200)})
	}
	for _, p := range e.Paths {
		rows = append(rows, []string{"  path", cleanLine(p, 200)})
	}
	if e.Code != "" {
		rows = append(rows, []string{"  code", string(e.Code)}, []string{"  message", cleanLine(e.Message, 1000)})
	}
	if e.PRNumber > 0 {
		rows = append(rows, []string{"  pull request", "#" + strconv.Itoa(e.PRNumber) + " " + cleanLine(e.PRURL, 500)})
		if e.PullState != "" {
			rows = append(rows, []string{"  last seen", wordFor(record.PullState(e.PullState)).Text})
		}
	}
	sentences(w, rows)
	for _, v := range e.Verdicts {
		fmt.Fprintf(w, "  gate %-10s  %-7s  %s\n", v.Gate, v.Ruling, cleanLine(v.Detail, 200))
		for _, warning := range v.Warnings {
			fmt.Fprintf(w, "    %s\n", cleanLine(warning, 1000))
		}
		for _, violation := range v.Violations {
			fmt.Fprintf(w, "    [%s] %s\n", violation.Code, cleanLine(violation.Message, 500))
		}
	}
	fmt.Fprintf(w, "  row %d, hash %s\n  after      %s\n", e.Seq, e.Hash, e.PrevHash)
}

// auditVerification lists what a verification on the command line compares the chain with, beside the sinks.
type auditVerification struct {
	expectHead string
	files      []string // of heads
	pulls      bool
}

func auditVerifyCommand(a *commandLine) *cobra.Command {
	var v auditVerification
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Recompute the hash chain of the record, and compare it with heads that were kept elsewhere",
		Long: "verify recomputes the hash of every row, and checks the structure of an SQLite database. Anyone who can write " +
			"the records\n" +
			"can replace the chain by another one that is sound: so verify compares it with the heads in the files of " +
			"CLAUDEOPS_AUDIT_SINK,\n" +
			"and says which sinks it cannot read. --heads compares it with a file of heads: of a sink, of syslog, a log of " +
			"claudeops serve,\n" +
			"or what verify --json printed. --pulls compares it with the marks of pull requests at the providers, which costs " +
			"some requests\n" +
			"for each repository. It ends with exit code 3 if anything differs.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			done := working(a, "Verifying the audit")
			report, err := v.verifyAudit(cmd.Context(), a.program().Wire(app.Needs{Records: true}))
			done()
			if err != nil {
				return withoutOwnAdvice(err)
			}
			report = adviseNoVerify(report)
			answer := map[string]any{
				"ok": report.OK(), "rows": report.Rows, "head": report.Head, "head_seq": report.HeadSeq,
				"first_bad": report.FirstBad, "problem": report.Problem, "checks": append([]record.HeadCheck{}, report.Checks...),
			}
			err = a.print(answer, func(w *strings.Builder) { describeVerification(w, report) })
			if err == nil && !report.OK() {
				return silentExit(fault.ExitRefused)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&v.expectHead, "expect-head", "",
		"hash that an earlier verify printed; it must still be in the chain")
	cmd.Flags().StringArrayVar(&v.files, "heads", nil, "file of heads that were kept; may be repeated")
	cmd.Flags().BoolVar(&v.pulls, "pulls", false, "compare with the marks of pull requests at the providers")
	return cmd
}

// trimOwnAdvice removes the advice to verify the audit from a message for people who have just done that, and leaves
// what remains to be done.
func trimOwnAdvice(message string) string {
	const verify = "`claudeops audit verify`"
	message = strings.ReplaceAll(message, "run "+verify+" and restore a backup", "restore a backup")
	return strings.NewReplacer(". Run "+verify, "", "; run "+verify, "").Replace(message)
}

func withoutOwnAdvice(err error) error {
	e := *fault.From(err)
	e.Message = trimOwnAdvice(e.Message)
	return &e
}

func adviseNoVerify(report record.AuditReport) record.AuditReport {
	report.Problem = trimOwnAdvice(report.Problem)
	report.Checks = slices.Clone(report.Checks)
	for i := range report.Checks {
		report.Checks[i].Detail = trimOwnAdvice(report.Checks[i].Detail)
	}
	return report
}

func (v auditVerification) verifyAudit(ctx context.Context, p *app.Parts) (record.AuditReport, error) {
	var kept [][]record.Head
	for _, file := range v.files { // before anything takes long
		heads, err := headsIn(file)
		if err != nil {
			return record.AuditReport{}, err
		}
		kept = append(kept, heads)
	}
	report, err := p.ComparedAudit().Verify(ctx, v.expectHead)
	if err != nil {
		return report, err
	}
	for i, heads := range kept {
		check, err := auditsink.Compare(ctx, p.Store.Audit, "file of heads "+v.files[i], heads)
		if err != nil {
			return report, err
		}
		report = report.Against(check)
	}
	if !v.pulls {
		return report, nil
	}
	checks, err := app.CompareWithPulls(ctx, p)
	return report.Against(checks...), err
}

func headsIn(path string) ([]record.Head, error) {
	f, err := files.OpenInput(path)
	if err != nil {
		var pathErr *fs.PathError
		if errors.As(err, &pathErr) {
			err = pathErr.Err
		}
		return nil, fault.Wrap(err, fault.InvalidArgument, "the file of heads %s cannot be read: %s", path, err)
	}
	defer func() { _ = f.Close() }()
	heads, err := auditsink.ReadHeads(f)
	if err != nil {
		return nil, fault.Wrap(err, fault.InvalidArgument, "the file of heads %s: %s", path, err)
	}
	return heads, nil
}

// afterVerifying says what to do about an audit that is not whole.
func afterVerifying(report record.AuditReport) string {
	if slices.ContainsFunc(report.Checks, func(c record.HeadCheck) bool { return report.Problem == c.Problem() }) {
		return "keep the records and what differs from them, find out which was altered, and name another sink to go on " +
			"(docs/explain/records.md)."
	}
	return "keep the state folder as it is, and restore the newest backup that is whole (docs/guides/operations.md)."
}

func describeVerification(w *strings.Builder, report record.AuditReport) {
	fmt.Fprintf(w, "%s, head %s\n", fault.Count(int(report.Rows), "row", "rows"), report.Head)
	if report.OK() {
		w.WriteString("The chain is whole.\n")
	} else {
		fmt.Fprintf(w, "NOT WHOLE: %s\nNext: %s\n", report.Problem, afterVerifying(report))
	}
	rows := [][]string{}
	for _, c := range report.Checks {
		detail := c.Detail
		if c.Result == record.HeadsAgree {
			detail = fmt.Sprintf("%d heads, the newest of row %s", c.Heads, strconv.FormatInt(c.LastSeq, 10))
		}
		rows = append(rows, []string{string(c.Result), c.Against, cleanLine(detail, 400)})
	}
	if len(rows) > 0 {
		w.WriteString("Compared with:\n")
		sentences(w, rows)
	} else {
		w.WriteString(
			"It was not compared with heads that are kept elsewhere: set CLAUDEOPS_AUDIT_SINK, or give --heads or --pulls.\n")
	}
}
