package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/people"
	"github.com/claudeops/claudeops/internal/prflow"
)

func (a *app) prResumeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "resume",
		Short: "Settle proposals that a killed process left unfinished",
		Long: "resume looks at the provider for each proposal that a process left behind: an open pull request is recorded, a branch\n" +
			"without one is removed if it is still ours. What another process is working on is left alone. It ends with exit\n" +
			"code 4 if something could not be settled. An mcp-server does the same before its first proposal.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p := a.wire()
			var settled []prflow.Settled
			err := p.people.Do(cmd.Context(), people.Act{Action: people.Resume, By: a.caller(p)}, func(people.Row) (err error) {
				settled, err = p.flow.Resume(cmd.Context())
				return err
			})
			if err != nil {
				return err
			}
			failures := 0
			for _, s := range settled {
				if s.Error != "" {
					failures++
				}
			}
			err = a.print(settled, func(w *strings.Builder) {
				if len(settled) == 0 {
					w.WriteString("Nothing was left unfinished.\n")
				}
				for _, s := range settled {
					switch {
					case s.Live:
						fmt.Fprintf(w, "%s  %s  is being worked on\n", s.RequestID, s.Repo)
					case s.Error != "":
						fmt.Fprintf(w, "%s  %s  not settled: %s\n", s.RequestID, s.Repo, s.Error)
					default:
						fmt.Fprintf(w, "%s  %s  settled\n", s.RequestID, s.Repo)
					}
				}
			})
			if err == nil && failures > 0 {
				return silentExit(fault.ExitProvider)
			}
			return err
		},
	}
}
