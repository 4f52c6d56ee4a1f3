package cli

import (
	"context"
	"fmt"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/definitions"
	"github.com/claudeops/claudeops/internal/mcpserver"
)

type mcpServerOptions struct {
	as         string
	allowWrite bool
}

func mcpServerCommand(a *app) *cobra.Command {
	var o mcpServerOptions
	cmd := &cobra.Command{
		Use:   "mcp-server",
		Short: "Serve the tools over MCP on stdin and stdout",
		Long: "mcp-server speaks the Model Context Protocol on stdin and stdout; an MCP client such as Claude Code spawns it.\n" +
			"It ends when stdin ends or on SIGINT and SIGTERM. Logs go to stderr as JSON. It serves the toolsets of\n" +
			"CLAUDEOPS_TOOLSETS; with --as one of them alone, under the name that clients of the original know.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return serveMCP(cmd.Context(), a, o) },
	}
	cmd.Flags().StringVar(&o.as, "as", "", "serve one toolset alone, as the server of this name: "+strings.Join(serverNames(), ", "))
	cmd.Flags().BoolVar(&o.allowWrite, "allow-write", false, "let tools of other toolsets than pr write (CLAUDEOPS_ALLOW_WRITE)")
	return cmd
}

// serverNames are the names of servers that mcp-server can stand in for.
func serverNames() []string { return []string{definitions.ServerName} }

func serveMCP(ctx context.Context, a *app, o mcpServerOptions) error {
	signal.Ignore(syscall.SIGPIPE) // a client that goes away must not end a creation in the middle
	switch o.as {
	case "":
	case definitions.ServerName:
		a.only = definitions.ToolsetName
	default:
		return usageError{fmt.Errorf("--as %.50q is no server that is known; there is %s", o.as, strings.Join(serverNames(), ", "))}
	}
	if o.allowWrite {
		yes := "true"
		a.flags["CLAUDEOPS_ALLOW_WRITE"] = &yes
	}
	p := a.wire(needs{log: logQueuedJSON})
	if problem := a.unknownToolsets(); problem != "" {
		p.log.Error(problem)
	}
	server, err := mcpserver.New(a.enabledToolsets(), mcpserver.Options{
		Name: o.as, Version: version(), ReadOnly: p.cfg.Permissions.ReadOnly, Log: p.log, NewID: newID,
	})
	if err != nil {
		return err
	}
	return server.Serve(ctx, a.streams.In, a.streams.Out)
}
