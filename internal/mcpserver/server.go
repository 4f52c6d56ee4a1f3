// Package mcpserver offers operations as MCP tools. It decodes, calls and encodes; the rules are the operations', the
// transport is stdio's.
package mcpserver

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/mcpio"
	"github.com/claudeops/claudeops/internal/mcpserver/stdio"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Options describe the server to clients.
type Options struct {
	Name    string // as clients see it; "" is claudeops
	Version string
	// ReadOnly leaves tools that do more than read out of tools/list; a call to one still reaches its operation, which
	// refuses and records it.
	ReadOnly func() bool // as it is now; nil: false
	// Versions are the protocol versions that are spoken, the preferred one first; none for all that the library knows.
	Versions []string
	// Ticks triggers checks for new or removed tools, where a toolset has dynamic ones; nil: only when a client asks.
	Ticks <-chan time.Time
	Turns mcpio.Turns // shared with other servers, see stdio.Options; nil: no bound
	Log   *slog.Logger
	NewID func() string // request ids for faults outside the operations
}

// Client is who a connection is served for. All fields are optional.
type Client struct {
	Gone <-chan struct{} // closed when the client has gone for good; nil: its streams say so
	// Calling is called when a call of a tool begins, and returns a function to call when it ends; nil for none.
	Calling func() (ended func())
	// Admitted checks again that the client may be connected; nil where the admission cannot be revoked. See
	// operation.Caller.
	Admitted func(ctx context.Context) error
	Actor    record.Actor // who is connected, but for what the client calls itself
}

type clientKey struct{}

// clientOf returns the client of the connection under way.
func clientOf(ctx context.Context) Client {
	c, _ := ctx.Value(clientKey{}).(Client)
	return c
}

// calling notes that a call of the client begins, and returns what notes its end.
func calling(ctx context.Context) (ended func()) {
	if begin := clientOf(ctx).Calling; begin != nil {
		return begin()
	}
	return func() {}
}

// Server holds the tools, and may serve many connections.
type Server struct {
	opts     Options
	mcp      *server.MCPServer
	toolsets []operation.Toolset
	shows    [sha256.Size]byte // see Shows
	changes  bool              // there are tools that come and go
	looking  sync.Mutex        // held while they are looked at and told
	mu       sync.Mutex
	known    map[string]announcedTool // by the tool's name
	watchers int                      // connections that want to be told of changes
	unwatch  func()                   // ends looking at ticks
}

// fixedFor is how long a client may cache a list that does not change while it is connected.
const fixedFor = 5 * time.Minute

// New builds the server. An error is a fault in an embedded schema.
func New(toolsets []operation.Toolset, o Options) (*Server, error) {
	s := &Server{opts: o, toolsets: toolsets, changes: changes(toolsets), known: map[string]announcedTool{}}
	var instructions, prompts []string
	descriptions := map[string]string{}
	for _, set := range toolsets {
		told := set.CurrentInstructions()
		instructions = append(instructions, told.Text)
		maps.Copy(descriptions, told.Descriptions)
	}
	name, title := "claudeops", "Claude Ops"
	if o.Name != "" {
		name, title = o.Name, o.Name
	}
	hooks := s.hooks()
	if o.Name == "" {
		showIcon(hooks, mcp.Implementation{Name: name, Version: o.Version, Title: title, Icons: icons()})
	}
	fixed := []mcp.MCPMethod{mcp.MethodPromptsList, mcp.MethodResourcesTemplatesList}
	if !s.changes {
		fixed = append(fixed, mcp.MethodToolsList)
	}
	settings := []server.ServerOption{
		server.WithTitle(title), server.WithToolCapabilities(s.changes), server.WithHooks(hooks),
		server.WithInstructions(strings.Join(instructions, " ")),
	}
	for _, list := range fixed {
		settings = append(settings, server.WithMethodCacheHints(list, fixedFor.Milliseconds(), mcp.CacheScopePrivate))
	}
	s.mcp = server.NewMCPServer(name, o.Version, settings...)
	for _, set := range toolsets {
		for _, o := range set.Operations {
			if o.Tool.Title == "" {
				continue
			}
			t, err := tool(set, o)
			if err != nil {
				return nil, err
			}
			if own, has := descriptions[o.Name]; has {
				t.Description = own
			}
			s.known[o.Name] = announcedTool{set: set, op: o, hidden: !s.isListed(set, o)}
			s.mcp.AddTool(t, s.handler(o.Name))
		}
	}
	s.addResources()
	prompts = s.addPrompts()
	s.shows = s.digest(instructions, descriptions, prompts)
	return s, nil
}

// Shows identifies what clients are shown: two servers of the same toolsets and the same options that show the same can
// stand in for each other.
func (s *Server) Shows() [sha256.Size]byte { return s.shows }

// digest is the identity of instructions, descriptions, prompts and of what tools/list leaves out.
func (s *Server) digest(instructions []string, descriptions map[string]string, prompts []string) [sha256.Size]byte {
	text := fmt.Appendf(nil, "%q %q %q", instructions, descriptions, prompts) // which has the keys of a map in order
	for _, name := range slices.Sorted(maps.Keys(s.known)) {
		text = fmt.Appendf(text, " %q %t", name, s.known[name].hidden)
	}
	return sha256.Sum256(text)
}

// hooks returns this server's additions to the library's handling.
func (s *Server) hooks() *server.Hooks {
	hooks := &server.Hooks{}
	hooks.AddAfterListTools(s.hide)
	hooks.AddAfterListResources(s.listResources)
	hooks.AddBeforeReadResource(escapeQuery)
	hooks.AddOnError(s.unknownResource)
	if s.changes {
		// Before the client counts as there, so that it is not told that its first list is another one.
		hooks.AddBeforeInitialize(func(ctx context.Context, _ any, _ *mcp.InitializeRequest) { s.refreshTools(ctx) })
		hooks.AddBeforeListTools(func(ctx context.Context, _ any, _ *mcp.ListToolsRequest) { s.refreshTools(ctx) })
		hooks.AddBeforeCallTool(func(ctx context.Context, _ any, _ *mcp.CallToolRequest) { s.refreshTools(ctx) })
	}
	if len(s.opts.Versions) > 0 {
		hooks.AddAfterInitialize(s.negotiate)
	}
	return hooks
}

// negotiate answers with the version that the client asked for, or with the preferred one.
func (s *Server) negotiate(ctx context.Context, _ any, request *mcp.InitializeRequest, result *mcp.InitializeResult) {
	result.ProtocolVersion = s.opts.Versions[0]
	if slices.Contains(s.opts.Versions, request.Params.ProtocolVersion) {
		result.ProtocolVersion = request.Params.ProtocolVersion
	}
	if versioned, ok := server.ClientSessionFromContext(ctx).(interface{ SetProtocolVersion(version string) }); ok {
		versioned.SetProtocolVersion(result.ProtocolVersion)
	}
}

// Serve speaks MCP with a client on in and out until in ends or ctx is done; see stdio.Serve.
func (s *Server) Serve(ctx context.Context, c Client, in io.Reader, out io.Writer) error {
	return s.serveTransport(ctx, c, func(ctx context.Context, o stdio.Options) error {
		return stdio.Serve(ctx, in, out,
			s.mcp, o)
	})
}

// ServeExchanges serves MCP for messages that each have their own reply writer, until messages is closed or ctx is
// done; see stdio.ServeExchanges.
func (s *Server) ServeExchanges(ctx context.Context, c Client, messages <-chan mcpio.Exchange,
	notes io.Writer) error {
	return s.serveTransport(ctx, c, func(ctx context.Context, o stdio.Options) error {
		return stdio.ServeExchanges(ctx, messages, notes, s.mcp, o)
	})
}

func (s *Server) serveTransport(ctx context.Context, c Client, speak func(context.Context, stdio.Options) error) error {
	ctx = context.WithValue(ctx, clientKey{}, c)
	if len(s.opts.Versions) > 0 {
		ctx = server.WithSupportedProtocolVersions(ctx, s.opts.Versions)
	}
	if s.changes && s.opts.Ticks != nil {
		defer s.watch(ctx)()
	}
	return speak(ctx, stdio.Options{Session: rand.Text(), Logger: s.opts.Log, Turns: s.opts.Turns, Gone: c.Gone,
		OnReject: s.rejected})
}

// isListed reports whether tools/list shows a tool.
func (s *Server) isListed(set operation.Toolset, o operation.Operation) bool {
	if set.Listed != nil {
		return set.Listed(o)
	}
	return o.Effect == operation.Read || s.opts.ReadOnly == nil || !s.opts.ReadOnly()
}

func (s *Server) hide(_ context.Context, _ any, _ *mcp.ListToolsRequest, result *mcp.ListToolsResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hidden := func(t mcp.Tool) bool { return s.known[t.Name].hidden }
	if slices.ContainsFunc(result.Tools, hidden) {
		result.Tools = slices.DeleteFunc(slices.Clone(result.Tools), hidden)
	}
}

// rejected records a message that may have asked for more than reading: a call of such a tool, or one of which too
// little could be read to know. Protocol errors and calls of tools that only read, or that do not exist, leave no
// attempt.
func (s *Server) rejected(ctx context.Context, r stdio.Rejection) {
	asked, exists := s.knownTool(r.Tool)
	isCall := r.Method == "" || r.Method == string(mcp.MethodToolsCall)
	if !isCall || r.Tool != "" && (!exists || asked.op.Effect == operation.Read) {
		return
	}
	code := fault.InvalidArgument
	switch r.Reason {
	case stdio.ReasonInternal:
		return // operations recover from their own panics and have the record
	case stdio.ReasonBusy, stdio.ReasonShutdown, stdio.ReasonCancelled:
		code = fault.Timeout
	}
	call := operation.Call{Caller: caller(ctx), Ceiling: operation.UncappedTier}
	for _, set := range s.toolsets {
		if set.Reject != nil && (r.Tool == "" || set.Name == asked.set.Name) {
			set.Reject(ctx, call, r.Tool, fault.New(code, "%s (%s, %d bytes)", r.Message, r.Reason, r.Size))
			return
		}
	}
}

// caller returns the caller with the name that the client gives itself.
func caller(ctx context.Context) operation.Caller {
	client := clientOf(ctx)
	who := operation.Caller{Actor: client.Actor.At(record.DoorMCP), Recheck: client.Admitted}
	if session, ok := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo); ok {
		if info := session.GetClientInfo(); info.Name != "" {
			who.Client = info.Name + " " + info.Version
		}
	}
	return who
}
