package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
)

// planFirst has the command of deploy update ask after it has shown what it would do, and that of the tool rollback,
// without --yes, show what would change, and ask the person at the terminal; where there is none, the tool refuses the
// call, as it does for everybody who does not agree. Commands of other operations stay as they are.
func planFirst(a *commandLine, o operation.Operation, cmd *cobra.Command) *cobra.Command {
	do := cmd.RunE
	switch o.Name {
	case deploy.NameUpdate:
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			err := do(cmd, args)
			if flags := cmd.Flags(); err == nil && !flags.Changed("yes") && !flags.Changed("from") && !a.json &&
				agreed(a, "Write the lock file?") {
				if err = flags.Set("yes", "true"); err == nil {
					err = do(cmd, args)
				}
			}
			return err
		}
		return cmd
	case deploy.ToolRollback:
	default:
		return cmd
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		flags := cmd.Flags()
		to := flags.Lookup("to").Value.String()
		if flags.Changed("yes") || flags.Changed("from") || to == "" || a.json {
			return do(cmd, args)
		}
		p, err := a.program().Wire(app.Needs{}).Tools.Deploy().PlanRollback(cmd.Context(), to)
		if err != nil {
			return deploy.Failure(err)
		}
		err = a.print(nil, func(w *strings.Builder) { describeChanges(w, painter(a), p.Changes, p.Summary(), p.Warnings) })
		if err != nil {
			return err
		}
		if agreed(a, "Put the files of this snapshot back?") {
			if err := flags.Set("yes", "true"); err != nil {
				return err
			}
		}
		return do(cmd, args)
	}
	return cmd
}

// agreed asks the person at the terminal; false where there is none.
func agreed(a *commandLine, question string) bool {
	file, isFile := a.streams.In.(*os.File)
	return isFile && term.IsTerminal(int(file.Fd())) && answersYes(file, a.streams.Err, question)
}

// answersYes reads a line; only y and yes agree.
func answersYes(in io.Reader, out io.Writer, question string) bool {
	fmt.Fprintf(out, "%s [y/N] ", question)
	line, _ := bufio.NewReader(io.LimitReader(in, 16)).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true
	}
	return false
}
