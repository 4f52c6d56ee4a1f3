package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/proposals/prflow"
)

func prPromoteCommand(a *commandLine) *cobra.Command {
	return &cobra.Command{
		Use: "promote ID", Short: "Open the pull request that a dry run has shown",
		Long: "promote opens what a dry run has shown. Every gate is asked again, and the proposal is a new one. The dry " +
			"run's id is\n" +
			"in the audit and on the dashboard.",
		Example: "  claudeops audit list --outcome dry_run\n  claudeops pr promote 01M81EQV51VWSKBPTDJXEVK0KR",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			result, err := askFor[prflow.CreateResult](cmd.Context(), a, prflow.OpPromote, prflow.PromoteRequest{ID: args[0]})
			if err != nil {
				return err
			}
			return a.print(result, func(w *strings.Builder) { describeCreated(w, result) })
		},
	}
}
