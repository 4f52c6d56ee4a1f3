package cli

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
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

// newDoorHost makes what serves agents that are connected from elsewhere.
func newDoorHost(a *app, p *parts) *door.Host {
	return door.NewHost(door.Options{
		Serve: func(ctx context.Context, r door.Rights, c door.Client) error { return serveAgent(ctx, a, p, r, c) },
		Audit: p.store.Ledger, Records: p.store.Connections(), Log: p.log, Now: time.Now, NewID: newID,
	})
}

// serveAgent serves one connection in this process, as mcp-server does in its own.
func serveAgent(ctx context.Context, a *app, p *parts, r door.Rights, c door.Client) error {
	own := withRights(a, p, r)
	server, err := mcpserver.New(own.enabledToolsets(), mcpserver.Options{
		Version: version(), ReadOnly: own.parts.cfg.Permissions.ReadOnly, Ticks: time.Tick(lookEvery), Gone: c.Gone, Credential: c.Credential, Calling: c.Calling,
		Admitted: c.Admitted, Log: own.parts.log, NewID: newID,
	})
	if err != nil {
		return err
	}
	return server.Serve(ctx, c.In, c.Out)
}

// withRights is this run of the command line as a connection sees it. Store, scanner and notifications are shared, and the providers, too, unless
// the policy has been changed since this process began: it is read again for each connection, as mcp-server reads it at its start. Only the tier
// can be higher than that of this process (CLAUDEOPS_MAX_TIER); dry run and read-only hold for all.
func withRights(a *app, p *parts, r door.Rights) *app {
	own := &app{streams: a.streams, lookup: p.cfg.Sessions.Variable, more: a.more, folder: r.Folder}
	q := *p
	allowed := &q.cfg.Permissions
	allowed.Tier, allowed.Toolsets = r.Tier, r.Toolsets
	allowed.DryRun, allowed.ReadOnly = allowed.DryRun || r.DryRun, allowed.ReadOnly || r.ReadOnly
	allowed.AllowWrite = allowed.AllowWrite && r.AllowWrite
	q.cfg.SessionID = r.Session
	q.rules = readRules(q.cfg.Permissions)
	if !reflect.DeepEqual(q.rules.policy, p.rules.policy) {
		q.providers = newProviders(&q)
	}
	own.parts = &q
	authorize(own, &q)
	return own
}

// sessionRights are those of the MCP server of a session, but for tier, session and dry run.
func sessionRights(p *parts) door.Rights {
	r := door.Rights{ReadOnly: p.cfg.Permissions.ReadOnly, Toolsets: known(p.cfg.Sessions.Toolsets)}
	if slices.Equal(r.Toolsets, []string{"pr"}) {
		return r
	}
	r.AllowWrite = p.cfg.Permissions.AllowWrite
	if folder, err := os.Getwd(); err == nil {
		r.Folder = folder // not the agent's own, which is empty
	}
	return r
}

// sessionServer is the MCP server of sessions: this process, and what their CLI starts to reach it. On Windows the CLI starts a server of its own.
func sessionServer(p *parts, binary string) session.Server {
	c := p.cfg.Sessions
	server := session.Server{Command: serverCommand(binary, c.Toolsets), Env: c.ServerEnv, Toolsets: known(c.Toolsets)}
	if runtime.GOOS != "windows" {
		server.Doors, server.Rights, server.Connector = p.agents, sessionRights(p), connectorCommand(binary)
	}
	return server
}

// connectorCommand is the small program beside this one, or this one in its place.
func connectorCommand(binary string) []string {
	if path := connectorBeside(binary); path != "" {
		return []string{path}
	}
	return []string{binary, "mcp-server"}
}

// connectorBeside is the path of the small program; "" if it is not installed.
func connectorBeside(binary string) string {
	path := filepath.Join(filepath.Dir(binary), connectorName)
	if info, err := files.Stat(path); err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return ""
	}
	return path
}
