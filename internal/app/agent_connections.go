package app

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/agents/door"
	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/mcpserver"
	"github.com/claudeops/claudeops/internal/system/files"
)

// connectorName is the program of the agent's side, which is installed beside this one.
const connectorName = "claudeops-connect"

// LookEvery is the interval at which a server checks for new or removed tools, where a toolset has dynamic ones.
const LookEvery = 2 * time.Second

// newDoorHost makes what serves agents that are connected from elsewhere.
func newDoorHost(a *App, p *Parts) *door.Host {
	return door.NewHost(door.Options{
		Serve: func(ctx context.Context, r door.Rights, c door.Client) error { return serveAgent(ctx, a, p, r, c) },
		Audit: p.Store.Ledger, Records: p.Store.Connections(), Log: p.Log, Now: p.Store.Now, NewID: NewID,
	})
}

// serveAgent serves one connection in this process, as mcp-server does in its own.
func serveAgent(ctx context.Context, a *App, p *Parts, r door.Rights, c door.Client) error {
	own := WithRights(a, p, r)
	server, err := mcpserver.New(own.EnabledToolsets(), mcpserver.Options{
		Version: Version(), ReadOnly: func() bool { return own.Parts.Rules.Now().ReadOnly.On },
		Ticks: time.Tick(LookEvery), Gone: c.Gone,
		Actor: c.Actor, Calling: c.Calling,
		Admitted: c.Admitted, Log: own.Parts.Log, NewID: NewID,
	})
	if err != nil {
		return err
	}
	if c.Messages != nil {
		return server.ServeExchanges(ctx, c.Messages, c.Out)
	}
	return server.Serve(ctx, c.In, c.Out)
}

// WithRights returns this App with the rights of a connection. Store, scanner, notifications, providers and the live
// rules are shared. Only the tier can be higher than that of this process (CLAUDEOPS_MAX_TIER); dry run and read-only
// hold for all.
func WithRights(a *App, p *Parts, r door.Rights) *App {
	options := a.Options()
	options.Lookup, options.Environment = p.Cfg.Sessions.Variable, p.Cfg.Sessions.Variable
	options.Only, options.Folder = "", r.Folder
	own := New(func() Options { return options })
	q := *p
	allowed := &q.Cfg.Permissions
	allowed.Tier, allowed.Toolsets = r.Tier, r.Toolsets
	allowed.AllowWrite = allowed.AllowWrite && r.AllowWrite
	q.Cfg.SessionID = r.Session
	q.Rules = p.Rules.lower(r.DryRun, r.ReadOnly, r.Repos)
	own.Parts = &q
	authorize(own, &q)
	return own
}

// sessionRights returns the rights of the MCP server of a session, without tier, session and dry run. The rules are
// read when they are needed.
func sessionRights(p *Parts) door.Rights {
	r := door.Rights{Toolsets: known(p.Cfg.Sessions.Toolsets)}
	if slices.Equal(r.Toolsets, []string{"pr"}) {
		return r
	}
	r.AllowWrite = p.Cfg.Permissions.AllowWrite
	if folder, err := os.Getwd(); err == nil {
		r.Folder = folder // not the agent's own, which is empty
	}
	return r
}

// sessionServer returns the MCP server of sessions: this process, and what their CLI starts to reach it. On Windows the
// CLI starts a server of its own.
func sessionServer(p *Parts, binary string) session.Server {
	c := p.Cfg.Sessions
	server := session.Server{Command: serverCommand(binary, c.Toolsets), Env: c.ServerEnv, Toolsets: known(c.Toolsets)}
	if runtime.GOOS != "windows" {
		server.Doors, server.Rights, server.Connector = p.Agents, sessionRights(p), ConnectorCommand(binary)
	}
	return server
}

// ConnectorCommand returns the small program beside this one, or this one in its place.
func ConnectorCommand(binary string) []string {
	if path := connectorBeside(binary); path != "" {
		return []string{path}
	}
	return []string{binary, "mcp-server"}
}

// connectorBeside returns the path of the small program; "" if it is not installed.
func connectorBeside(binary string) string {
	path := filepath.Join(filepath.Dir(binary), connectorName)
	if info, err := files.Stat(path); err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return ""
	}
	return path
}
