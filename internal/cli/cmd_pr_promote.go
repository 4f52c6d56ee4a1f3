package cli

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
)

func prPromoteCommand(a *commandLine) *cobra.Command {
	return &cobra.Command{
		Use: "promote SEQ|REQUEST-ID", Short: "Open the pull request that a dry run has shown",
		Long: "promote opens what a dry run has shown. Every gate is asked again, and the proposal is a new one. SEQ is the\n" +
			"number of the dry run in `claudeops audit list`.",
		Example: "  claudeops audit list --outcome dry_run\n  claudeops pr promote 17",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := args[0]
			if _, err := strconv.ParseInt(id, 10, 64); err == nil { // a row of the audit
				row, err := a.program().Wire(app.Needs{Records: true}).Store.Audit.Entry(cmd.Context(), id)
				if err != nil {
					return err
				}
				id = row.RequestID
			}
			result, err := askFor[prflow.CreateResult](cmd.Context(), a, prflow.OpPromote, prflow.PromoteRequest{ID: id})
			if err != nil {
				return err
			}
			return a.print(result, func(w *strings.Builder) { describeCreated(w, result) })
		},
	}
}
