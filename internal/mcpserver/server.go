// Package mcpserver offers the use case of package prflow as three MCP tools. It decodes, calls and encodes; the rules
// are prflow's, the transport is stdio's.
package mcpserver

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/mcpserver/stdio"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/prflow"
	"github.com/claudeops/claudeops/internal/record"
)

// instructions are all that a client which searches for tools shows a model before it has loaded one.
const instructions = "Propose changes to operational procedures (checks, playbooks, skills, the manifest) as pull requests; " +
	"a person reviews and merges. Look at list_prs first, propose with create_pr (repo_owner, repo_name, title, body, " +
	"files), read the outcome with get_pr_status. A refusal names every broken rule and what to do: correct the call, or " +
	"stop and report."

// Flow is the use case that the tools call; *prflow.Service is one.
type Flow interface {
	Create(ctx context.Context, caller operation.Caller, raw []byte) (prflow.CreateResult, error)
	List(ctx context.Context, raw []byte) (prflow.ListResult, error)
	Status(ctx context.Context, raw []byte) (prflow.StatusResult, error)
	// Reject records a proposal that never became a call.
	Reject(ctx context.Context, caller operation.Caller, code fault.Code, message string)
}

// Options describe the server to clients.
type Options struct {
	Version string
	// HideCreate leaves create_pr out of tools/list; a call to it still reaches the flow, which refuses and records it.
	HideCreate bool
	Log        *slog.Logger
	NewID      func() string // request ids for faults outside the flow
}

// Server holds the tools.
type Server struct {
	flow Flow
	opts Options
	mcp  *server.MCPServer
}

// New builds the server. An error is a fault in an embedded schema.
func New(flow Flow, o Options) (*Server, error) {
	s := &Server{flow: flow, opts: o}
	hooks := &server.Hooks{}
	hooks.AddAfterListTools(s.hideCreate)
	s.mcp = server.NewMCPServer("claudeops", o.Version,
		server.WithTitle("Claude Ops"), server.WithToolCapabilities(false), server.WithHooks(hooks),
		server.WithInstructions(instructions),
	)
	handlers := map[string]server.ToolHandlerFunc{
		ToolCreatePR: s.createPR, ToolListPRs: s.listPRs, ToolGetPRStatus: s.prStatus,
	}
	for _, d := range definitions() {
		tool, err := d.tool()
		if err != nil {
			return nil, err
		}
		s.mcp.AddTool(tool, s.guarded(d.name, handlers[d.name]))
	}
	return s, nil
}

// Serve speaks MCP on in and out until in ends or ctx is done; see stdio.Serve.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	return stdio.Serve(ctx, in, out, s.mcp, stdio.Options{Logger: s.opts.Log, OnReject: s.onReject})
}

func (s *Server) hideCreate(_ context.Context, _ any, _ *mcp.ListToolsRequest, result *mcp.ListToolsResult) {
	if !s.opts.HideCreate {
		return
	}
	kept := result.Tools[:0:0]
	for _, t := range result.Tools {
		if t.Name != ToolCreatePR {
			kept = append(kept, t)
		}
	}
	result.Tools = kept
}

// onReject records a message that may have been a proposal: a call of create_pr, or one of which too little could be
// read to know. Read calls and protocol errors leave no attempt.
func (s *Server) onReject(ctx context.Context, r stdio.Rejection) {
	if r.Tool != ToolCreatePR && (r.Tool != "" || r.Method != "" && r.Method != string(mcp.MethodToolsCall)) {
		return
	}
	code := fault.InvalidArgument
	switch r.Reason {
	case stdio.ReasonInternal:
		return // the flow recovers from its own panics and has the record
	case stdio.ReasonBusy, stdio.ReasonShutdown, stdio.ReasonCancelled:
		code = fault.Timeout
	}
	s.flow.Reject(ctx, caller(ctx), code, fmt.Sprintf("%s (%s, %d bytes)", r.Message, r.Reason, r.Size))
}

// guarded keeps a panic's text from the client.
func (s *Server) guarded(tool string, next server.ToolHandlerFunc) server.ToolHandlerFunc {
	return func(ctx context.Context, req mcp.CallToolRequest) (result *mcp.CallToolResult, err error) {
		defer func() {
			if p := recover(); p != nil {
				id := s.opts.NewID()
				s.opts.Log.Error("panic in a tool", "tool", tool, "request_id", id, "panic", p, "stack", string(debug.Stack()))
				result, err = failed(fault.From(fmt.Errorf("panic: %v", p)), id), nil
			}
		}()
		return next(ctx, req)
	}
}

func (s *Server) createPR(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	who := caller(ctx)
	who.Progress = s.progress(ctx, req)
	result, err := s.flow.Create(ctx, who, stdio.Arguments(ctx))
	return answer(result, err), nil
}

func (s *Server) listPRs(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	result, err := s.flow.List(ctx, stdio.Arguments(ctx))
	return answer(result, err), nil
}

func (s *Server) prStatus(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	result, err := s.flow.Status(ctx, stdio.Arguments(ctx))
	return answer(result, err), nil
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

// progress sends a notification per phase, if the client asked for progress.
func (s *Server) progress(ctx context.Context, req mcp.CallToolRequest) func(string) {
	if req.Params.Meta == nil || req.Params.Meta.ProgressToken == nil {
		return nil
	}
	step := 0
	return func(phase string) {
		step++
		err := s.mcp.SendNotificationToClient(ctx, "notifications/progress", map[string]any{
			"progressToken": req.Params.Meta.ProgressToken, "progress": step, "message": phase,
		})
		if err != nil {
			s.opts.Log.Debug("progress not sent", "error", err)
		}
	}
}
