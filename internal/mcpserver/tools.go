package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

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
		defer calling(ctx)()
		defer func() {
			if p := recover(); p != nil {
				id := s.opts.NewID()
				s.opts.Log.Error("panic in a tool", "tool", name, "request_id", id, "panic", p, "stack", string(debug.Stack()))
				result, err = errorResult(k.set.Form, k.op, fault.From(fmt.Errorf("panic: %v", p)), id), nil
			}
		}()
		who := caller(ctx)
		who.Progress = s.progress(ctx, req)
		out, err := k.op.Handle(ctx, operation.Call{Caller: who, Ceiling: operation.UncappedTier,
			Arguments: stdio.Arguments(ctx)})
		if err != nil {
			return errorResult(k.set.Form, k.op, err, operation.RequestIDOf(err)), nil
		}
		return toolResult(k.set.Form, out), nil
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

// announcedTool is a tool as clients were last told of it.
type announcedTool struct {
	set    operation.Toolset
	op     operation.Operation
	hidden bool // tools/list does not show it
	found  bool // it is one of Toolset.Found
	listed []byte
}

// changes reports whether there are tools that come and go.
func changes(toolsets []operation.Toolset) bool {
	return slices.ContainsFunc(toolsets, func(set operation.Toolset) bool { return set.Found != nil })
}

// refreshTools reads the dynamic tools of the toolsets, and notifies the client if the list has changed. A tool that is
// gone is no longer listed, but a client that knows it can still call it, and its operation answers why it is gone.
func (s *Server) refreshTools(ctx context.Context) {
	if !s.changes {
		return
	}
	s.looking.Lock()
	defer s.looking.Unlock()
	added, changed := s.updateTools(ctx)
	switch { // one notification for all; AddTools sends it by itself
	case len(added) > 0:
		s.mcp.AddTools(added...)
	case changed:
		s.mcp.SendNotificationToAllClients(mcp.MethodNotificationToolsListChanged, nil)
	}
}

// updateTools notes what there is now, and returns the tools that are new or have another schema, and whether others
// have come back or gone.
func (s *Server) updateTools(ctx context.Context) (added []server.ServerTool, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := map[string]bool{}
	for name, k := range s.known {
		gone[name] = k.found && !k.hidden
	}
	for _, set := range s.toolsets {
		if set.Found == nil {
			continue
		}
		for _, o := range set.Found(ctx) {
			before, has := s.known[o.Name]
			t, err := tool(set, o)
			listed, encodeErr := json.Marshal(t)
			if err != nil || encodeErr != nil || has && (!before.found || before.set.Name != set.Name) {
				s.opts.Log.Warn("a tool that was found is not offered: its schema is malformed, or another tool has its name",
					"tool", o.Name, "error", err)
				continue
			}
			now := announcedTool{set: set, op: o, hidden: !s.isListed(set, o), found: true, listed: listed}
			s.known[o.Name], gone[o.Name] = now, false
			switch {
			case !has || !bytes.Equal(before.listed, listed):
				added = append(added, server.ServerTool{Tool: t, Handler: s.handler(o.Name)})
			case before.hidden != now.hidden:
				changed = true
			}
		}
	}
	for name, isGone := range gone {
		if isGone {
			k := s.known[name]
			k.hidden, changed = true, true
			s.known[name] = k
		}
	}
	return added, changed
}

// watch looks again at each tick, so that clients are notified of a change without asking, until each connection that
// called it has called over.
func (s *Server) watch(ctx context.Context) (over func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watchers++; s.watchers == 1 {
		watching, stop := context.WithCancel(context.WithoutCancel(ctx)) // other connections may outlast this one
		var watcher sync.WaitGroup
		watcher.Go(func() { s.lookAtTicks(watching) })
		s.unwatch = func() {
			stop()
			watcher.Wait()
		}
	}
	return func() {
		s.mu.Lock()
		s.watchers--
		last, unwatch := s.watchers == 0, s.unwatch
		s.mu.Unlock()
		if last {
			unwatch()
		}
	}
}

func (s *Server) lookAtTicks(ctx context.Context) {
	for {
		select {
		case <-s.opts.Ticks:
			s.refreshTools(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// knownTool returns the known definition of a tool by its name.
func (s *Server) knownTool(name string) (announcedTool, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, has := s.known[name]
	return k, has
}

// toolResult renders what an operation returned: structured content, and the same as text for clients that read only
// that.
func toolResult(form *operation.Form, result any) *mcp.CallToolResult {
	text := plainJSON
	if form != nil && form.Text != nil {
		text = form.Text
	}
	return &mcp.CallToolResult{StructuredContent: result, Content: []mcp.Content{mcp.NewTextContent(text(result))}}
}

// errorResult renders a refusal or a failure: isError, and the error in the toolset's form; else (design §4) text
// beginning with the code, and the error object.
func errorResult(form *operation.Form, o operation.Operation, err error, requestID string) *mcp.CallToolResult {
	if form != nil {
		result := toolResult(form, form.Failure(o, err, requestID))
		result.IsError = !form.Answers
		return result
	}
	wire := fault.From(err).Wire(requestID)
	return &mcp.CallToolResult{
		IsError:           true,
		StructuredContent: map[string]any{"error": wire},
		Content:           []mcp.Content{mcp.NewTextContent(errorText(wire))},
	}
}

// errorText returns the message, then what to do about each violation. Violations that the message does not repeat are
// given in full.
func errorText(w fault.Wire) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s] %s", w.Code, w.Message)
	for _, v := range w.Violations {
		told := strings.Contains(w.Message, v.Message)
		switch {
		case told && v.Suggestion == "":
		case told && v.Path == "":
			fmt.Fprintf(&b, "\n- %s", v.Suggestion)
		case told:
			fmt.Fprintf(&b, "\n- %s: %s", v.Path, v.Suggestion)
		case v.Suggestion == "":
			fmt.Fprintf(&b, "\n- [%s] %s", v.Code, v.Message)
		default:
			fmt.Fprintf(&b, "\n- [%s] %s; %s", v.Code, v.Message, v.Suggestion)
		}
	}
	for _, v := range w.Violations {
		if v.Present != nil {
			b.WriteString(presentText(v.Path, *v.Present))
		}
	}
	for _, fact := range w.Facts() {
		b.WriteString("\n" + fact)
	}
	if w.RequestID != "" {
		fmt.Fprintf(&b, "\nrequest id: %s", w.RequestID)
	}
	return b.String()
}

// presentText shows a file to a model that reads the text alone. The lines around it have the file's own id, which no
// file can hold.
func presentText(path string, p fault.Present) string {
	out := fmt.Sprintf("\n%s now has the base_sha %s", path, p.BaseSHA)
	if p.Cut != "" {
		out += " (" + p.Cut + ")"
	}
	text := p.Text + p.Diff // one of them at most
	if text == "" {
		return out
	}
	return fmt.Sprintf("%s; %s\n--- begin %s\n%s\n--- end %s", out, p.Untrusted, p.BaseSHA,
		strings.TrimSuffix(text, "\n"), p.BaseSHA)
}

// plainJSON is JSON without HTML escapes: \u003c costs a model six characters for one.
func plainJSON(v any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil { // our result types always marshal
		return "{}"
	}
	return strings.TrimSuffix(b.String(), "\n")
}
