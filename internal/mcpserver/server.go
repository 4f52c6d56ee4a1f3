// Package mcpserver offers operations as MCP tools. It decodes, calls and encodes; the rules are the operations', the
// transport is stdio's.
package mcpserver

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/mcpserver/stdio"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/record"
)

// Options describe the server to clients.
type Options struct {
	Name    string // as clients see it; "" is claudeops
	Version string
	// ReadOnly leaves tools that do more than read out of tools/list; a call to one still reaches its operation, which
	// refuses and records it.
	ReadOnly bool
	Log      *slog.Logger
	NewID    func() string // request ids for faults outside the operations
}

// Server holds the tools.
type Server struct {
	opts     Options
	mcp      *server.MCPServer
	toolsets []operation.Toolset
	effects  map[string]operation.Effect // by the tool's name
	hidden   map[string]bool             // tools that tools/list does not show
}

// New builds the server. An error is a fault in an embedded schema.
func New(toolsets []operation.Toolset, o Options) (*Server, error) {
	s := &Server{opts: o, toolsets: toolsets, effects: map[string]operation.Effect{}, hidden: map[string]bool{}}
	hooks := &server.Hooks{}
	hooks.AddAfterListTools(s.hide)
	var instructions []string
	for _, set := range toolsets {
		instructions = append(instructions, set.Instructions)
	}
	name, title := "claudeops", "Claude Ops"
	if o.Name != "" {
		name, title = o.Name, o.Name
	}
	s.mcp = server.NewMCPServer(name, o.Version,
		server.WithTitle(title), server.WithToolCapabilities(false), server.WithHooks(hooks),
		server.WithInstructions(strings.Join(instructions, " ")),
	)
	for _, set := range toolsets {
		for _, o := range set.Operations {
			if o.Tool.Title == "" {
				continue
			}
			t, err := tool(set, o)
			if err != nil {
				return nil, err
			}
			s.effects[o.Name] = o.Effect
			s.hidden[o.Name] = !s.listed(set, o)
			s.mcp.AddTool(t, s.handler(set, o))
		}
	}
	return s, nil
}

// Serve speaks MCP on in and out until in ends or ctx is done; see stdio.Serve.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	return stdio.Serve(ctx, in, out, s.mcp, stdio.Options{Logger: s.opts.Log, OnReject: s.rejected})
}

// listed reports whether tools/list shows a tool.
func (s *Server) listed(set operation.Toolset, o operation.Operation) bool {
	if set.Listed != nil {
		return set.Listed(o)
	}
	return !s.opts.ReadOnly || o.Effect == operation.Read
}

func (s *Server) hide(_ context.Context, _ any, _ *mcp.ListToolsRequest, result *mcp.ListToolsResult) {
	if slices.ContainsFunc(result.Tools, func(t mcp.Tool) bool { return s.hidden[t.Name] }) {
		result.Tools = slices.DeleteFunc(slices.Clone(result.Tools), func(t mcp.Tool) bool { return s.hidden[t.Name] })
	}
}

// rejected records a message that may have asked for more than reading: a call of such a tool, or one of which too little
// could be read to know. Protocol errors and calls of tools that only read, or that do not exist, leave no attempt.
func (s *Server) rejected(ctx context.Context, r stdio.Rejection) {
	effect := s.effects[r.Tool]
	isCall := r.Method == "" || r.Method == string(mcp.MethodToolsCall)
	if !isCall || r.Tool != "" && (effect == operation.Read || effect == "") {
		return
	}
	code := fault.InvalidArgument
	switch r.Reason {
	case stdio.ReasonInternal:
		return // operations recover from their own panics and have the record
	case stdio.ReasonBusy, stdio.ReasonShutdown, stdio.ReasonCancelled:
		code = fault.Timeout
	}
	call := operation.Call{Caller: caller(ctx), Ceiling: operation.Unlimited}
	for _, set := range s.toolsets {
		named := func(o operation.Operation) bool { return o.Name == r.Tool }
		if set.Reject != nil && (r.Tool == "" || slices.ContainsFunc(set.Operations, named)) {
			set.Reject(ctx, call, r.Tool, fault.New(code, "%s (%s, %d bytes)", r.Message, r.Reason, r.Size))
			return
		}
	}
}

// caller is who the client says it is.
func caller(ctx context.Context) operation.Caller {
	who := operation.Caller{Door: record.DoorMCP, Name: "unknown"}
	if session, ok := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo); ok {
		if info := session.GetClientInfo(); info.Name != "" {
			who.Name = info.Name + " " + info.Version
		}
	}
	return who
}
