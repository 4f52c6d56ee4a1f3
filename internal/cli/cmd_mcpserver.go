package cli

import (
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/mcpserver"
)

func mcpServerCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "mcp-server",
		Short: "Serve the tools over MCP on stdin and stdout",
		Long: "mcp-server speaks the Model Context Protocol on stdin and stdout; an MCP client such as Claude Code spawns it.\n" +
			"It ends when stdin ends or on SIGINT and SIGTERM. Logs go to stderr as JSON.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			signal.Ignore(syscall.SIGPIPE) // a client that goes away must not end a creation in the middle
			p := a.wire(needs{log: logQueuedJSON})
			server, err := mcpserver.New(a.toolsets(), mcpserver.Options{
				Version: version(), ReadOnly: p.cfg.Permissions.ReadOnly, Log: p.log, NewID: newID,
			})
			if err != nil {
				return err
			}
			if len(p.cfg.Permissions.Toolsets) > 0 && !slices.Equal(p.cfg.Permissions.Toolsets, []string{"pr"}) {
				p.log.Warn("CLAUDEOPS_TOOLSETS knows only pr; the rest is ignored", "value", p.cfg.Permissions.Toolsets)
			}
			return server.Serve(cmd.Context(), a.streams.In, a.streams.Out)
		},
	}
}
