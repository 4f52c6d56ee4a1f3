package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/base/content"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/records"
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
		about, err := records.AboutOf(ctx, p.Store.Pulls, p.Store.AgentSessions, part)
		if err != nil {
			return nil, err
		}
		for _, r := range part {
			entries = append(entries, about.Entry(r, func(text string) string { return shown(text, 100) }))
		}
	}
	return entries, nil
}

func describeAudit(w *strings.Builder, entries []record.AuditEntry) {
	rows := [][]string{{"SEQ", "TIME", "DOOR", "TIER", "OUTCOME", "CODE", "PULL", "WHAT HAPPENED"}}
	for _, e := range entries {
		rows = append(rows, []string{
			strconv.FormatInt(e.Seq, 10), e.Time.Format(time.RFC3339), e.Door, strconv.Itoa(e.Tier), e.Outcome,
			string(e.Code), e.PullState, e.Act,
		})
	}
	columns(w, rows)
}

// shown prepares text that others wrote for a terminal: no control characters, no line breaks, capped.
func shown(text string, runes int) string {
	return content.Clean(strings.Join(strings.Fields(text), " "), runes)
}

func auditShowCommand(a *commandLine) *cobra.Command {
	return &cobra.Command{
		Use: "show SEQ|REQUEST-ID", Short: "Show one attempt, gate by gate", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			p := a.program().Wire(app.Needs{Records: true})
			row, err := p.Store.Audit.Entry(cmd.Context(), args[0])
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
		{"  action", e.Action + ", " + e.Outcome + ", " + e.Time.Format(time.RFC3339Nano)},
		{"  request", e.RequestID},
		{"  caller", shown(e.Caller, 200) + " through " + e.Door + ", tier " + strconv.Itoa(e.Tier)},
		{"  duration", fmt.Sprintf("%.1f ms", e.DurationMS)},
	}
	if e.Repo != "" {
		rows = append(rows, []string{"  repository", shown(e.Provider+":"+e.Repo, 250) + ", base " + shown(e.Base, 200)})
	}
	if e.Title != "" {
		rows = append(rows, []string{"  title", shown(e.Title, 200)})
	}
	if e.Policy != "" {
		rows = append(rows, []string{"  policy", shown(e.Policy, 200)})
	}
	for _, p := range e.Paths {
		rows = append(rows, []string{"  path", shown(p, 200)})
	}
	if e.Code != "" {
		rows = append(rows, []string{"  code", string(e.Code)}, []string{"  message", shown(e.Message, 1000)})
	}
	if e.PRNumber > 0 {
		rows = append(rows, []string{"  pull request", "#" + strconv.Itoa(e.PRNumber) + " " + shown(e.PRURL, 500)})
		if e.PullState != "" {
			rows = append(rows, []string{"  last seen", e.PullState})
		}
	}
	columns(w, rows)
	for _, v := range e.Verdicts {
		fmt.Fprintf(w, "  gate %-10s  %-7s  %s\n", v.Gate, v.Ruling, shown(v.Detail, 200))
		for _, warning := range v.Warnings {
			fmt.Fprintf(w, "    %s\n", shown(warning, 1000))
		}
		for _, violation := range v.Violations {
			fmt.Fprintf(w, "    [%s] %s\n", violation.Code, shown(violation.Message, 500))
		}
	}
	fmt.Fprintf(w, "  row %d, hash %s\n  after      %s\n", e.Seq, e.Hash, e.PrevHash)
}
