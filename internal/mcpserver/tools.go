package mcpserver

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/mcpserver/stdio"
	"github.com/claudeops/claudeops/internal/operation"
)

// tool returns an operation as tools/list has it. Every hint is explicit, since the library's defaults say otherwise.
func tool(set operation.Toolset, o operation.Operation) (mcp.Tool, error) {
	input, err := set.Schema(o, "input")
	if err != nil {
		return mcp.Tool{}, err
	}
	output, err := set.Schema(o, "output")
	if err != nil {
		return mcp.Tool{}, err
	}
	t := mcp.NewToolWithRawSchema(o.Name, o.Tool.Description, input)
	t.RawOutputSchema = output
	t.Title = o.Tool.Title
	openWorld, readOnly := true, o.Effect == operation.Read
	repeatable := readOnly || o.Tool.Repeatable
	t.Annotations = mcp.ToolAnnotation{
		ReadOnlyHint: &readOnly, DestructiveHint: &o.Tool.Destructive,
		IdempotentHint: &repeatable, OpenWorldHint: &openWorld,
	}
	return t, nil
}

// handler hands a call to the operation that has the name by then, and keeps a panic's text from the client.
func (s *Server) handler(name string) server.ToolHandlerFunc {
	return func(ctx context.Context, req mcp.CallToolRequest) (result *mcp.CallToolResult, err error) {
		k, _ := s.knownTool(name)
		if s.opts.Calling != nil {
			defer s.opts.Calling()()
		}
		defer func() {
			if p := recover(); p != nil {
				id := s.opts.NewID()
				s.opts.Log.Error("panic in a tool", "tool", name, "request_id", id, "panic", p, "stack", string(debug.Stack()))
				result, err = failed(k.set.Form, k.op, fault.From(fmt.Errorf("panic: %v", p)), id), nil
			}
		}()
		who := s.opts.caller(ctx)
		who.Progress = s.progress(ctx, req)
		out, err := k.op.Handle(ctx, operation.Call{Caller: who, Ceiling: operation.Unlimited,
			Arguments: stdio.Arguments(ctx)})
		if err != nil {
			return failed(k.set.Form, k.op, err, operation.RequestIDOf(err)), nil
		}
		return answer(k.set.Form, out), nil
	}
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
