package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/base/plural"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/auditsink"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/files"
)

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
		Long: "verify recomputes the hash of every row. Anyone who can write the records can replace the chain by another one " +
			"that is sound: so\n" +
			"verify compares it with the heads in the files of CLAUDEOPS_AUDIT_SINK, and says which sinks it cannot read. " +
			"--heads compares it\n" +
			"with a file of heads: of a sink, of syslog, a log of claudeops serve, or what verify --json printed. --pulls " +
			"compares it with the marks of pull\n" +
			"requests at the providers, which costs some requests for each repository. It ends with exit code 3 if anything differs.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			done := working(a, "Verifying the audit")
			report, err := v.verify(cmd.Context(), a.program().Wire(app.Needs{Records: true}))
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

// ownAdvice shortens advice in messages about the audit for people who are already running the command, and leaves what
// remains to be done.
func ownAdvice() *strings.Replacer {
	return strings.NewReplacer("run `claudeops audit verify` and restore a backup", "restore a backup",
		". Run `claudeops audit verify`", "", "; run `claudeops audit verify`", "")
}

func withoutOwnAdvice(err error) error {
	e := *fault.From(err)
	e.Message = ownAdvice().Replace(e.Message)
	return &e
}

func adviseNoVerify(report record.AuditReport) record.AuditReport {
	advice := ownAdvice()
	report.Problem = advice.Replace(report.Problem)
	report.Checks = slices.Clone(report.Checks)
	for i := range report.Checks {
		report.Checks[i].Detail = advice.Replace(report.Checks[i].Detail)
	}
	return report
}

func (v auditVerification) verify(ctx context.Context, p *app.Parts) (record.AuditReport, error) {
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

func describeVerification(w *strings.Builder, report record.AuditReport) {
	fmt.Fprintf(w, "%s, head %s\n", plural.Of(int(report.Rows), "row", "rows"), report.Head)
	if report.OK() {
		w.WriteString("The chain is whole.\n")
	} else {
		fmt.Fprintf(w, "NOT WHOLE: %s\n", report.Problem)
	}
	rows := [][]string{}
	for _, c := range report.Checks {
		detail := c.Detail
		if c.Result == record.HeadsAgree {
			detail = fmt.Sprintf("%d heads, the newest of row %s", c.Heads, strconv.FormatInt(c.LastSeq, 10))
		}
		rows = append(rows, []string{string(c.Result), c.Against, shown(detail, 400)})
	}
	if len(rows) > 0 {
		w.WriteString("Compared with:\n")
		columns(w, rows)
	} else {
		w.WriteString(
			"It was compared with nothing that is kept elsewhere: set CLAUDEOPS_AUDIT_SINK, or give --heads or --pulls.\n")
	}
}
