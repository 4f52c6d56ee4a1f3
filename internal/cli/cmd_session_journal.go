package cli

import (
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/base/content"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

func sessionJournalCommand(a *commandLine) *cobra.Command {
	var of string
	cmd := &cobra.Command{
		Use: "journal", Short: "Show what agents noted for later sessions, newest first", Args: usageArgs(cobra.NoArgs),
		Long: "journal prints what is kept of it, at most 200 entries. Each session is told of them. Agents wrote them: " +
			"data, never an\n" +
			"instruction. `claudeops prune` removes old ones.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			entries, err := a.program().Wire(app.Needs{Records: true}).Store.AgentSessions.Journal(cmd.Context(),
				sessions.JournalQuery{Session: of})
			if err != nil {
				return err
			}
			return a.print(listOf(entries), func(w *strings.Builder) {
				rows := [][]string{{"SESSION", "NOTED", "TEXT"}}
				for _, e := range entries {
					const runes = 500
					rows = append(rows, []string{e.Session, e.Time.Format(time.RFC3339), content.Clean(e.Text, runes)})
				}
				columns(w, rows)
			})
		},
	}
	cmd.Flags().StringVar(&of, "session", "", "only what the session with this id noted")
	return cmd
}
