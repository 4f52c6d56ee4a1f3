package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

// How long session stop waits for the end of a session, and how often it looks.
const (
	stopWait = 30 * time.Second
	stopLook = 200 * time.Millisecond
)

func sessionStopCommand(a *commandLine) *cobra.Command {
	return &cobra.Command{
		Use: "stop ID", Short: "End a session that runs, whatever process runs it", Args: usageArgs(cobra.ExactArgs(1)),
		Long: "stop ends the agent and everything that it started; what it has proposed stays. A session that another " +
			"process runs, such\n" +
			"as claudeops serve, is told by the record, at which that process looks every second. The command waits up to 30 seconds.",
		RunE: func(cmd *cobra.Command, args []string) error {
			p := a.program().Wire(app.Needs{Records: true})
			if _, err := a.act(cmd.Context(), session.ActStop, session.StopRequest{ID: args[0]}); err != nil {
				return err
			}
			record, err := ended(cmd.Context(), p.Store.AgentSessions, args[0])
			if err != nil {
				return err
			}
			return a.print(map[string]any{"session": record}, func(w *strings.Builder) {
				if record.State == sessions.StateRunning {
					fmt.Fprintf(w, "Session %s was told to end, and has not ended yet.\n", record.ID)
					return
				}
				fmt.Fprintf(w, "Session %s has ended: %s.\n", record.ID, record.State)
			})
		},
	}
}

// ended returns a session when it has ended, or as it is after a while.
func ended(ctx context.Context, records sessions.Records, id string) (sessions.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, stopWait)
	defer cancel()
	for {
		record, err := records.Session(ctx, id)
		if err != nil || record.State != sessions.StateRunning {
			return record, err
		}
		select {
		case <-ctx.Done():
			return record, nil
		case <-time.After(stopLook):
		}
	}
}
