package app

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/agents/credentials"
	"github.com/claudeops/claudeops/internal/agents/gateway"
	"github.com/claudeops/claudeops/internal/agents/oauth"
	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/mcpio"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/mcpserver"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/mcpconfig"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// connectorName is the program of the agent's side, which is installed beside this one.
const connectorName = "claudeops-connect"

// LookEvery is the interval at which a server checks for new or removed tools, where a toolset has dynamic ones.
const LookEvery = 2 * time.Second

// atATime is how many messages of all agents are answered at a time, but for those that wait for other machines.
const atATime = 16

// newDoorHost makes what serves agents that are connected from elsewhere.
func newDoorHost(a *App, p *Parts) *gateway.Host {
	shared := &agentServers{program: a, parts: p, turns: mcpio.NewTurns(atATime)}
	return gateway.NewHost(gateway.Options{
		Serve: shared.serve,
		Audit: p.Store.Ledger, Records: p.Store.Connections(), Log: p.Log, Now: p.Store.Now, NewID: NewID,
	})
}

// agentServers serves connections in this process, as mcp-server does in its own. Connections of the same rights share
// their operations, and those that are shown the same share the server, so that each adds a few KiB.
type agentServers struct {
	program *App
	parts   *Parts
	turns   mcpio.Turns
	apps    sharing[string, *App]
	servers sharing[shownAt, *mcpserver.Server]
}

// shownAt identifies a server: whose rights it has, and what it shows to them.
type shownAt struct {
	rights string
	shows  [sha256.Size]byte
}

// serve serves one connection.
func (s *agentServers) serve(ctx context.Context, r gateway.Rights, c gateway.Client) error {
	server, left, err := s.newServer(r)
	if err != nil {
		return err
	}
	defer left()
	client := mcpserver.Client{Gone: c.Gone, Actor: c.Actor, Calling: c.Calling, Admitted: c.Admitted}
	if c.Messages != nil {
		return server.ServeExchanges(ctx, client, c.Messages, c.Out)
	}
	return server.Serve(ctx, client, c.In, c.Out)
}

// newServer returns the server for a connection with these rights, made on a stack that is given back.
func (s *agentServers) newServer(r gateway.Rights) (server *mcpserver.Server, left func(), err error) {
	s.turns.Do(func() {
		rights := fmt.Sprintf("%#v", r)
		own, leftApp := s.apps.get(rights, func() *App { return WithRights(s.program, s.parts, r) })
		var leftServer func()
		if server, leftServer, err = s.server(own, rights); err != nil {
			leftApp()
			return
		}
		left = func() {
			leftServer()
			leftApp()
		}
	})
	return server, left, err
}

// server returns the server of those rights that shows what the operator's rules let it show now.
func (s *agentServers) server(own *App, rights string) (server *mcpserver.Server, left func(), err error) {
	made, err := mcpserver.New(own.EnabledToolsets(), mcpserver.Options{
		Version: Version(), ReadOnly: func() bool { return own.Parts.Rules.Now().ReadOnly.On },
		Ticks: time.Tick(LookEvery), Turns: s.turns, Log: own.Parts.Log, NewID: NewID,
	})
	if err != nil {
		return nil, nil, err
	}
	server, left = s.servers.get(shownAt{rights, made.Shows()}, func() *mcpserver.Server { return made })
	return server, left, nil
}

// sharing holds values by their keys while somebody uses them. The zero value is ready; it is safe for concurrent use.
type sharing[K comparable, V any] struct {
	mu   sync.Mutex
	held map[K]*shared[V]
}

type shared[V any] struct {
	value V
	users int
}

// get returns the value of a key, which is made if nobody uses it; left gives it back.
func (s *sharing[K, V]) get(key K, make func() V) (value V, left func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held = map[K]*shared[V]{}
	}
	one := s.held[key]
	if one == nil {
		one = &shared[V]{value: make()}
		s.held[key] = one
	}
	one.users++
	return one.value, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(s.held, key)
		}
	}
}

// WithRights returns this App with the rights of a connection. Store, scanner, notifications, providers and the live
// rules are shared. Only the tier can be higher than that of this process (CLAUDEOPS_MAX_TIER); dry run and read-only
// hold for all.
func WithRights(a *App, p *Parts, r gateway.Rights) *App {
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
func sessionRights(p *Parts) gateway.Rights {
	r := gateway.Rights{Toolsets: existingToolsets(p.Cfg.Sessions.Toolsets)}
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
	server := session.Server{Command: serverCommand(binary, c.Toolsets), Env: c.ServerEnv,
		Toolsets: existingToolsets(c.Toolsets)}
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

// AgentTokens admits agents that the operator has given a token each.
func AgentTokens(p *Parts) *gateway.Tokens {
	rights := sessionRights(p) // which is too much work for each request
	return gateway.NewTokens(p.Agents,
		func(ctx context.Context, secret string) (gateway.AuthenticatedConn, error) {
			return admitAgent(ctx, p, rights, secret)
		},
		func(ctx context.Context, names []string) ([]string, error) {
			return credentials.Gone(ctx, p.Store.Connections(), p.Store.Access.Tokens, names, p.Store.Now())
		})
}

// newPrograms makes the service that admits agents by people's consent in a browser.
func newPrograms(p *Parts) *oauth.Service {
	return oauth.New(oauth.Options{
		Kernel:     func() *operation.Kernel { return p.kernel },
		Store:      func() oauth.Store { return p.Store.Access },
		Gatekeeper: func() oauth.Gatekeeper { return p.access },
		Record:     func(ctx context.Context, a record.Attempt) error { return p.Store.Ledger.Record(ctx, a, nil) },
		MaxTier:    func() gitprovider.Tier { return p.Cfg.Sessions.MaxTier },
		Providers:  identityNames(p),
		Documents:  newDocuments(p),
		Random:     rand.Reader,
		Now:        p.Store.Now,
		NewID:      NewID,
	})
}

// newDocuments makes what reads the documents of programs; nil where the operator wants none, or has a proxy for all
// hosts: it would look the names up, and nothing here could keep it from private addresses.
func newDocuments(p *Parts) *oauth.Documents {
	anywhere := &http.Request{URL: &url.URL{Scheme: "https", Host: "client.invalid"}}
	if via, err := http.ProxyFromEnvironment(anywhere); !p.Cfg.Web.Documents || err != nil || via != nil {
		return nil
	}
	return oauth.NewDocuments(transport.NewPool(nil), p.Store.Now)
}

// listenForTokens makes the socket for agents that have tokens, if there is to be one, and returns what serves it until
// its context ends.
func listenForTokens(ctx context.Context, p *Parts, tokens *gateway.Tokens) (serve func(context.Context), err error) {
	path := p.Cfg.Web.DoorSocket
	if path == "" {
		return func(context.Context) {}, nil
	}
	d := gateway.TokenDoor{Tokens: tokens, Path: path}
	listener, err := d.Listen(ctx)
	if err != nil {
		return nil, fault.Wrap(err, fault.Misconfigured, "agents cannot be let in at CLAUDEOPS_DOOR_SOCKET (%s): %s", path,
			err)
	}
	p.Log.Info("agents with tokens are let in", "socket", path)
	return func(ctx context.Context) { d.Serve(ctx, listener) }, nil
}

// AdmitAgent finds what the holder of a token may do: no more than an agent of a session, and no more than the token
// says.
func AdmitAgent(ctx context.Context, p *Parts, secret string) (gateway.AuthenticatedConn, error) {
	return admitAgent(ctx, p, sessionRights(p), secret)
}

// admitAgent is AdmitAgent; rights are the rights of an agent of a session.
func admitAgent(ctx context.Context, p *Parts, rights gateway.Rights, secret string) (gateway.AuthenticatedConn,
	error) {
	t, err := p.access.AgentToken(ctx, secret)
	if err != nil {
		return gateway.AuthenticatedConn{}, err
	}
	if err := credentials.AdmitConnection(ctx, p.Store.Connections(), t.Name, t.CreatedAt, p.Store.Now()); err != nil {
		return gateway.AuthenticatedConn{}, err
	}
	rights.Tier = max(min(t.MaxTier, p.Cfg.Sessions.MaxTier), gitprovider.TierObserve)
	rights.DryRun, rights.ReadOnly = t.DryRun, t.ReadOnly
	rights.Repos = t.Repos
	return gateway.AuthenticatedConn{
		Rights:     rights,
		Actor:      t.Actor(),
		Credential: t.Name,
		Holder:     t.ID,
		Still: func(ctx context.Context) error {
			if err := p.access.StillAgent(ctx, t); err != nil {
				return err
			}
			return credentials.AdmitConnection(ctx, p.Store.Connections(), t.Name, t.CreatedAt, p.Store.Now())
		},
	}, nil
}

// McpServerConfig is our entry of a client's configuration file.
type McpServerConfig struct {
	Type    string            `json:"type"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	// AlwaysLoad has Claude Code show the tools to the model from the first request on; else the model has to search for
	// them.
	AlwaysLoad bool `json:"alwaysLoad"`
}

// OurName is the name of our server in every client.
const OurName = "claudeops"

// MergedMCP returns the configuration of the agent's MCP client: our own entry, which gets the arguments and the
// environment, and what the mounted repositories may add. An error says that the path of this program is unknown.
func MergedMCP(cfg config.Config, offers config.Offers, arguments []string,
	env map[string]string) (mcpconfig.Result, error) {
	binary, err := os.Executable()
	if err != nil {
		return mcpconfig.Result{}, err
	}
	binary = files.Resolve(binary)
	var entry bytes.Buffer
	encoder := json.NewEncoder(&entry)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(McpServerConfig{Type: "stdio", Command: binary, Args: arguments, Env: env,
		AlwaysLoad: true}); err != nil {
		return mcpconfig.Result{}, err
	}
	blank := config.AgentSecrets()
	for _, v := range config.ServerVariables(forges.All()) {
		blank = append(blank, v.Name)
	}
	system := []mcpconfig.System{{Name: "claudeops", JSON: bytes.TrimSpace(entry.Bytes())}}
	return mcpconfig.Merge(system, offers.Contributions(), mcpconfig.Rules{
		Mode: cfg.Mounted.MCP, Env: cfg.Mounted.Env, Blank: blank, Forges: forge.Prefixes(forges.All()), Binary: binary,
	}), nil
}
