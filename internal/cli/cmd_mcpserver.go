package cli

import (
	"context"
	"fmt"
	"io/fs"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/agents/stdioproxy"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/mcpserver"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/procedures/definitions"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
	"github.com/claudeops/claudeops/internal/procedures/packages"
	"github.com/claudeops/claudeops/internal/procedures/scripts"
	"github.com/claudeops/claudeops/internal/system/files"
)

type mcpServerOptions struct {
	as         string
	allowWrite bool
	folder     string // "" for the working folder
	connect    string // address of the door that serves instead of this process; "" for none
	ticket     string // file of its ticket; "" for the one beside the socket
}

func mcpServerCommand(a *commandLine) *cobra.Command {
	var o mcpServerOptions
	cmd := &cobra.Command{
		Use:   "mcp-server",
		Short: "Serve the tools over MCP on stdin and stdout",
		Long: "mcp-server speaks the Model Context Protocol on stdin and stdout; an MCP client such as Claude Code spawns it.\n" +
			"It ends when stdin ends or on SIGINT and SIGTERM. Logs go to stderr as JSON. It serves the toolsets of\n" +
			"CLAUDEOPS_TOOLSETS; with --as one of them alone, under the name that clients of the original know.\n\n" +
			"With --connect it serves nothing itself: it copies messages to a claudeops that runs already, as " +
			"claudeops-connect does, and\n" +
			"needs no tokens. The rights are the other side's; --tier, --dry-run and --read-only can only lower them. The " +
			"address is that of a\n" +
			"socket (unix:PATH). A claudeops serve on another machine needs no program here: claudeops mcp-config --url.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.connect != "" {
				return connectMCP(cmd.Context(), a, o)
			}
			return serveMCP(cmd.Context(), a, o)
		},
	}
	cmd.Flags().StringVar(&o.as, "as", "", "serve one toolset alone, as the server of this name: "+
		strings.Join(serverNames(), ", "))
	cmd.Flags().BoolVar(&o.allowWrite, "allow-write", false,
		"let tools of other toolsets than pr write (CLAUDEOPS_ALLOW_WRITE)")
	cmd.Flags().StringVar(&o.folder, "folder", "",
		"folder that other toolsets than pr look at; by default the working folder")
	cmd.Flags().StringVar(&o.connect, "connect", "",
		"connect to a running claudeops at this address instead, such as unix:/run/claudeops/mcp.sock")
	cmd.Flags().StringVar(&o.ticket, "ticket-file", "",
		"with --connect: file that holds the ticket or the agent's token; by default the file ticket beside the socket")
	return cmd
}

// standIn is a server that mcp-server can stand in for.
type standIn struct {
	name     string
	toolset  string
	versions []string                       // of the protocol, the preferred one first; none for all
	lists    func(operation.Operation) bool // nil for what the toolset lists
}

func standIns() []standIn {
	return []standIn{
		{name: definitions.ServerName, toolset: definitions.ToolsetName, lists: definitions.InContract},
		{name: packages.ServerName, toolset: packages.ToolsetName},
		{name: deploy.ServerName, toolset: deploy.ToolsetName, versions: deploy.ProtocolVersions()},
		{name: scripts.ServerName, toolset: scripts.ToolsetName},
	}
}

func serverNames() (names []string) {
	for _, s := range standIns() {
		names = append(names, s.name)
	}
	return names
}

func serveMCP(ctx context.Context, a *commandLine, o mcpServerOptions) error {
	signal.Ignore(syscall.SIGPIPE) // a client that goes away must not end a creation in the middle
	var stands standIn
	if o.as != "" {
		at := slices.Index(serverNames(), o.as)
		if at < 0 {
			return app.Usage(fmt.Errorf("--as %.50q is not a server that is known; there is %s", o.as,
				strings.Join(serverNames(), ", ")))
		}
		stands = standIns()[at]
		a.only = stands.toolset
	}
	if o.allowWrite {
		yes := "true"
		a.flags["CLAUDEOPS_ALLOW_WRITE"] = &yes
	}
	if o.folder != "" {
		var err error
		if a.folder, err = existingFolder(o.folder); err != nil {
			return app.Usage(fmt.Errorf("--folder: %w", err))
		}
	}
	p := a.program().Wire(app.Needs{Log: app.LogQueuedJSON})
	app.LogUnknownToolsets(ctx, a.program(), p)
	p.NoteRecords()
	sets := a.program().EnabledToolsets()
	for i := range sets {
		if stands.lists != nil {
			sets[i].Listed = stands.lists
		}
	}
	server, err := mcpserver.New(sets, mcpserver.Options{
		Name: stands.name, Versions: stands.versions, Version: app.Version(),
		ReadOnly: func() bool { return p.Rules.Now().ReadOnly.On },
		Ticks:    time.Tick(app.LookEvery), Log: p.Log, NewID: app.NewID,
	})
	if err != nil {
		return err
	}
	return server.Serve(ctx, mcpserver.Client{Actor: app.Agent(ctx, p)}, a.streams.In, a.streams.Out)
}

// existingFolder returns the absolute path of a folder that there is.
func existingFolder(path string) (string, error) {
	folder, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	info, err := files.Stat(folder)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	}
	return folder, nil
}

// connectMCP copies messages to the door at an address. It makes none of the parts: it needs neither store nor tokens.
func connectMCP(ctx context.Context, a *commandLine, o mcpServerOptions) error {
	signal.Ignore(syscall.SIGPIPE)
	arguments := stdioproxy.Arguments{Address: o.connect, TicketFile: o.ticket}
	if raw := *a.flags["CLAUDEOPS_TIER"]; raw != "" {
		tier, ok := gitprovider.ParseTier(raw)
		if !ok {
			return app.Usage(fmt.Errorf("--tier %.20q is not a tier; 1, 2 and 3 are", raw))
		}
		arguments.Lower.Tier = int(tier)
	}
	arguments.Lower.DryRun = givenUp(*a.flags["CLAUDEOPS_DRY_RUN"])
	arguments.Lower.ReadOnly = givenUp(*a.flags["CLAUDEOPS_READ_ONLY"])
	err := arguments.Run(ctx, a.streams.In, a.streams.Out, func(text string) { a.streams.printWarning("%s", text) })
	if err != nil {
		return plainFailure{err, stdioproxy.ExitCode(err)}
	}
	return nil
}

// givenUp reports whether a flag that takes a right away does: by any value but false, which is as without the flag.
func givenUp(value string) bool {
	yes, err := strconv.ParseBool(value)
	return value != "" && (err != nil || yes)
}
