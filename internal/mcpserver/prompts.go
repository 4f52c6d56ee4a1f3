package mcpserver

import (
	"context"
	_ "embed"
	"encoding/base64"
	"fmt"
	"runtime/debug"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/mcpserver/stdio"
	"github.com/claudeops/claudeops/internal/operation"
)

//go:embed icon.svg
var icon []byte

// icons returns the icons that clients show beside the server's name. A model never reads them.
func icons() []mcp.Icon {
	const kind = "image/svg+xml"
	return []mcp.Icon{{Src: "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(icon), MIMEType: kind,
		Sizes: []string{"any"}}}
}

// showIcon has the greeting show who this is, with the icon. In the newer era of the protocol every answer names the
// server, so that an icon of the server's own would be in each.
func showIcon(hooks *server.Hooks, who mcp.Implementation) {
	hooks.AddAfterInitialize(func(_ context.Context, _ any, _ *mcp.InitializeRequest, result *mcp.InitializeResult) {
		result.ServerInfo.Icons = who.Icons
	})
	hooks.AddAfterDiscover(func(_ context.Context, _ any, _ *mcp.DiscoverRequest, result *mcp.DiscoverResult) {
		result.EnsureResultMeta().SetServerInfo(who)
	})
}

// addPrompts offers the prompts whose tool this server shows, and lets its client use.
func (s *Server) addPrompts() {
	for _, set := range s.toolsets {
		for _, p := range set.Prompts {
			tool, exists := s.known[p.Tool]
			if !exists || tool.hidden || p.Offered != nil && !p.Offered() {
				continue
			}
			prompt := mcp.NewPrompt(p.Name, mcp.WithPromptDescription(p.Description))
			prompt.Title = p.Title
			for _, a := range p.Arguments {
				prompt.Arguments = append(prompt.Arguments, mcp.PromptArgument{Name: a.Name, Description: a.Description,
					Required: a.Required})
			}
			s.mcp.AddPrompt(prompt, s.prompter(p))
		}
	}
}

// prompter answers with the text of a prompt, as a message of the person who picked it.
func (s *Server) prompter(p operation.Prompt) server.PromptHandlerFunc {
	return func(ctx context.Context, req mcp.GetPromptRequest) (result *mcp.GetPromptResult, err error) {
		if s.opts.Calling != nil {
			defer s.opts.Calling()()
		}
		defer func() {
			if reason := recover(); reason != nil {
				id := s.opts.NewID()
				s.opts.Log.Error("panic in a prompt", "prompt", p.Name, "request_id", id, "panic", reason, "stack",
					string(debug.Stack()))
				err = refused(ctx, fault.From(fmt.Errorf("panic: %v", reason)), id)
			}
		}()
		if err := p.Check(req.Params.Arguments); err != nil {
			return nil, badArguments(ctx, err)
		}
		text, err := p.Text(ctx, operation.Call{Caller: s.opts.caller(ctx), Ceiling: operation.Unlimited},
			req.Params.Arguments)
		if fault.CodeOf(err) == fault.InvalidArgument {
			return nil, badArguments(ctx, err)
		}
		if err != nil {
			return nil, refused(ctx, err, operation.RequestIDOf(err))
		}
		return mcp.NewGetPromptResult(p.Title,
			[]mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent(text))}), nil
	}
}

// badArguments refuses with the protocol's code for invalid arguments of prompts.
func badArguments(ctx context.Context, err error) error {
	wire := fault.From(err).Wire(operation.RequestIDOf(err))
	return stdio.Fail(ctx, mcp.INVALID_PARAMS, errorText(wire), map[string]any{"error": wire})
}
