package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/connections"
	"github.com/claudeops/claudeops/internal/people"
	"github.com/claudeops/claudeops/internal/record"
)

// How long connections cut waits for the end of a connection, and how often it looks. Calls that write are finished first.
const (
	cutWait = 45 * time.Second
	cutLook = 200 * time.Millisecond
)

func newConnections(p *parts) *connections.Service {
	return &connections.Service{Store: p.store.Connections(), People: p.people, Now: time.Now}
}

func connectionsCommand(a *app) *cobra.Command {
	return group("connections", "Look at the agents that are connected now, and cut them off", connectionsListCommand(a), connectionsCutCommand(a))
}

func connectionsListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the agents that are connected now, the oldest connection first", Args: usageArgs(cobra.NoArgs),
		Long: "list shows the agents that speak MCP with a process of these records: those of sessions, whatever process runs them, and those\n" +
			"with an agent's token at claudeops serve. A server that a client started by itself, with claudeops mcp-server, is not listed.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			open, err := newConnections(a.wire(needs{records: true})).List(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(listOf(connections.EntriesOf(open)), func(w *strings.Builder) {
				if len(open) == 0 {
					w.WriteString("No agent is connected.\n")
					return
				}
				rows := [][]string{{"ID", "AGENT", "TIER", "RIGHTS", "PEER", "SINCE", "CALLS"}}
				for _, c := range open {
					rows = append(rows, []string{
						c.ID, agentOf(c), c.Tier.String(), rightsOf(c), c.Peer + " (" + c.Way + ")", c.Since.UTC().Format(time.RFC3339), strconv.Itoa(c.Calls),
					})
				}
				columns(w, rows)
			})
		},
	}
}

// agentOf names the session or the token of a connection.
func agentOf(c record.Connection) string {
	if c.Session != "" {
		return "session " + c.Session
	}
	return "token " + c.Credential
}

// rightsOf says what a connection may not, and whether it was cut off.
func rightsOf(c record.Connection) string {
	var words []string
	if c.DryRun {
		words = append(words, "dry run")
	}
	if c.ReadOnly {
		words = append(words, "read-only")
	}
	if !c.CutAt.IsZero() {
		words = append(words, "cut off by "+c.CutBy)
	}
	if len(words) == 0 {
		return "-"
	}
	return strings.Join(words, ", ")
}

func connectionsCutCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "cut ID", Short: "Cut a connected agent off, whatever process serves it", Args: usageArgs(cobra.ExactArgs(1)),
		Long: "cut ends the connection: calls that have written nothing end, others are finished and recorded. The process that serves it is told by\n" +
			"the record, at which that process looks every second. Other connections of the same session or token end as well. The agent of a\n" +
			"session cannot connect again; the session goes on without us, and session stop ends it. An agent's token lets nobody in for an hour, and token revoke keeps its holder out for good. The command\n" +
			"waits up to 45 seconds for the end.",
		RunE: func(cmd *cobra.Command, args []string) error {
			p := a.wire(needs{records: true})
			agents := newConnections(p)
			by := people.Operator{By: a.caller(p), RequestID: newID()}
			if err := agents.Cut(cmd.Context(), by, args[0]); err != nil {
				return err
			}
			over, err := isOver(cmd.Context(), agents, args[0])
			if err != nil {
				return err
			}
			return a.print(map[string]any{"id": args[0], "ended": over}, func(w *strings.Builder) {
				if !over {
					fmt.Fprintf(w, "Connection %s was told to end, and has not ended yet.\n", args[0])
					return
				}
				fmt.Fprintf(w, "Connection %s has ended.\n", args[0])
			})
		},
	}
}

// isOver reports whether a connection is over, or still is not after a while.
func isOver(ctx context.Context, agents *connections.Service, id string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, cutWait)
	defer cancel()
	for {
		open, err := agents.List(ctx)
		if ctx.Err() != nil {
			return false, nil //nolint:nilerr // its time is over
		}
		if err != nil || !slices.ContainsFunc(open, func(c record.Connection) bool { return c.ID == id }) {
			return err == nil, err
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-time.After(cutLook):
		}
	}
}
