package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/content"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/prflow"
	"github.com/claudeops/claudeops/internal/store"
	"github.com/claudeops/claudeops/internal/web"
)

func (a *app) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "audit", Short: "Read and verify the record of every attempt", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.auditListCommand(), a.auditShowCommand(), a.auditVerifyCommand())
	return cmd
}

// entryOf is a row of the audit in answers, the same as over REST.
func entryOf(r store.AuditRow) web.AuditEntry { return web.EntryOf(recorded(r)) }

func (a *app) auditListCommand() *cobra.Command {
	var q store.AuditQuery
	var outcome, code string
	cmd := &cobra.Command{
		Use: "list", Short: "List attempts, newest first", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.Limit < 1 || q.Limit > store.MaxAuditLimit {
				return usageError{fmt.Errorf("--limit is 1 to %d", store.MaxAuditLimit)}
			}
			if err := errors.Join(checkOutcome(outcome), checkCode(code)); err != nil {
				return err
			}
			q.Outcome, q.Code = prflow.Outcome(outcome), fault.Code(code)
			rows, err := a.wire().store.Audit(cmd.Context(), q)
			if err != nil {
				return err
			}
			entries := make([]web.AuditEntry, 0, len(rows))
			for _, r := range rows {
				entries = append(entries, entryOf(r))
			}
			return a.print(entries, func(w *strings.Builder) { describeAudit(w, entries) })
		},
	}
	f := cmd.Flags()
	f.IntVar(&q.Limit, "limit", store.DefaultAuditLimit, fmt.Sprintf("rows, at most %d", store.MaxAuditLimit))
	f.Int64Var(&q.Before, "before", 0, "rows with a smaller number only")
	f.StringVar(&q.Repo, "repo", "", "repository as owner/name")
	f.StringVar(&q.Caller, "caller", "", "caller")
	f.StringVar(&outcome, "outcome", "", "opened, reused, dry_run, refused, failed or done")
	f.StringVar(&code, "code", "", "code of a refusal")
	return cmd
}

func describeAudit(w *strings.Builder, entries []web.AuditEntry) {
	rows := [][]string{{"SEQ", "TIME", "DOOR", "TIER", "ACTION", "REPO", "OUTCOME", "CODE", "PR", "TITLE"}}
	for _, e := range entries {
		pr := ""
		if e.PRNumber > 0 {
			pr = "#" + strconv.Itoa(e.PRNumber)
		}
		rows = append(rows, []string{
			strconv.FormatInt(e.Seq, 10), e.Time.Format(time.RFC3339), e.Door, strconv.Itoa(e.Tier), e.Action,
			shown(e.Repo, 40), e.Outcome, string(e.Code), pr, shown(e.Title, 72),
		})
	}
	columns(w, rows)
}

// shown prepares text that others wrote for a terminal: no control characters, no line breaks, capped.
func shown(text string, runes int) string {
	cleaned, _ := content.Clean(strings.Join(strings.Fields(text), " "), runes)
	return cleaned
}

func (a *app) auditShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show SEQ|REQUEST-ID", Short: "Show one attempt, gate by gate", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			row, err := a.wire().store.AuditEntry(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			entry := entryOf(row)
			return a.print(entry, func(w *strings.Builder) { describeEntry(w, entry) })
		},
	}
}

func describeEntry(w *strings.Builder, e web.AuditEntry) {
	fmt.Fprintf(w, "%s %s, %s\n", e.Action, e.Outcome, e.Time.Format(time.RFC3339Nano))
	rows := [][]string{
		{"  request", e.RequestID},
		{"  caller", shown(e.Caller, 200) + " through " + e.Door + ", tier " + strconv.Itoa(e.Tier)},
		{"  repository", shown(e.Provider+":"+e.Repo, 250) + ", base " + shown(e.Base, 200)},
		{"  title", shown(e.Title, 200)},
		{"  duration", fmt.Sprintf("%.1f ms", e.DurationMS)},
	}
	for _, p := range e.Paths {
		rows = append(rows, []string{"  path", shown(p, 200)})
	}
	if e.Code != "" {
		rows = append(rows, []string{"  code", string(e.Code)}, []string{"  message", shown(e.Message, 1000)})
	}
	if e.PRNumber > 0 {
		rows = append(rows, []string{"  pull request", "#" + strconv.Itoa(e.PRNumber) + " " + shown(e.PRURL, 500)})
	}
	columns(w, rows)
	for _, v := range e.Verdicts {
		fmt.Fprintf(w, "  gate %-10s  %-7s  %s\n", v.Gate, v.Ruling, shown(v.Detail, 200))
		for _, violation := range v.Violations {
			fmt.Fprintf(w, "    [%s] %s\n", violation.Code, shown(violation.Message, 500))
		}
	}
	fmt.Fprintf(w, "  row %d, hash %s\n  after      %s\n", e.Seq, e.Hash, e.PrevHash)
}

func (a *app) auditVerifyCommand() *cobra.Command {
	var head string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Recompute the hash chain of the record",
		Long: "verify recomputes the hash of every row. Rows that were cut off the end leave a whole, shorter chain: keep the head\n" +
			"that verify prints somewhere else, and give it with --expect-head the next time.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := a.wire().store.VerifyAudit(cmd.Context(), head)
			if err != nil {
				return err
			}
			answer := map[string]any{
				"ok": report.OK(), "rows": report.Rows, "head": report.Head, "head_seq": report.HeadSeq,
				"first_bad": report.FirstBad, "problem": report.Problem,
			}
			err = a.print(answer, func(w *strings.Builder) {
				fmt.Fprintf(w, "%d rows, head %s\n", report.Rows, report.Head)
				if report.OK() {
					w.WriteString("The chain is whole.\n")
				} else {
					fmt.Fprintf(w, "NOT WHOLE: %s\n", report.Problem)
				}
			})
			if err == nil && !report.OK() {
				return silentExit(fault.ExitRefused)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&head, "expect-head", "", "hash that an earlier verify printed; it must still be in the chain")
	return cmd
}
