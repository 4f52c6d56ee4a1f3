package mcpserver

import (
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"runtime/debug"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/mcpserver/stdio"
	"github.com/claudeops/claudeops/internal/operation"
)

// addResources offers what the toolsets have to read.
func (s *Server) addResources() {
	for _, set := range s.toolsets {
		if set.Resources == nil {
			continue
		}
		for _, r := range set.Resources.Templates {
			template := mcp.NewResourceTemplate(r.URI, r.Name, mcp.WithTemplateDescription(r.Description),
				mcp.WithTemplateMIMEType(r.Type))
			s.mcp.AddResourceTemplate(template, s.reader(set.Resources))
		}
	}
}

// listResources names what the toolsets know of.
func (s *Server) listResources(ctx context.Context, _ any, _ *mcp.ListResourcesRequest,
	result *mcp.ListResourcesResult) {
	for _, set := range s.toolsets {
		if set.Resources == nil || set.Resources.List == nil {
			continue
		}
		for _, r := range set.Resources.List(ctx) {
			result.Resources = append(result.Resources, mcp.NewResource(r.URI, r.Name,
				mcp.WithResourceDescription(r.Description), mcp.WithMIMEType(r.Type)))
		}
	}
}

// reader reads a resource. What is to be known of it comes twice: as metadata, and as a text of its own before that of
// the resource, since a client may show a model nothing but texts.
func (s *Server) reader(from *operation.Resources) server.ResourceTemplateHandlerFunc {
	return func(ctx context.Context, req mcp.ReadResourceRequest) (contents []mcp.ResourceContents, err error) {
		defer calling(ctx)()
		defer func() {
			if p := recover(); p != nil {
				id := s.opts.NewID()
				s.opts.Log.Error("panic in a resource", "request_id", id, "panic", p, "stack", string(debug.Stack()))
				err = resourceError(ctx, fault.From(fmt.Errorf("panic: %v", p)), id)
			}
		}()
		uri := req.Params.URI
		content, err := from.Read(ctx, operation.Call{Caller: caller(ctx), Ceiling: operation.UncappedTier}, uri)
		if err != nil {
			return nil, resourceError(ctx, err, operation.RequestIDOf(err))
		}
		return []mcp.ResourceContents{
			mcp.TextResourceContents{URI: uri, MIMEType: "text/plain", Text: content.Note},
			mcp.TextResourceContents{URI: uri, MIMEType: content.Type, Text: content.Text, Meta: content.About},
		}, nil
	}
}

// escapeQuery escapes what a client wrote plainly into the query of an address, as models do (?glob=checks/**):
// templates fit escaped values alone. What cannot be unescaped stays as it is.
func escapeQuery(_ context.Context, _ any, req *mcp.ReadResourceRequest) {
	address, query, found := strings.Cut(req.Params.URI, "?")
	if !found {
		return
	}
	fields := strings.Split(query, "&")
	for i, field := range fields {
		name, value, _ := strings.Cut(field, "=")
		plain, err := url.PathUnescape(value)
		if err != nil {
			return
		}
		fields[i] = name + "=" + strings.ReplaceAll(url.QueryEscape(plain), "+", "%20")
	}
	req.Params.URI = address + "?" + strings.Join(fields, "&")
}

// unknownResource answers about an address that fits no template as its toolset does, which says what addresses there
// are.
func (s *Server) unknownResource(ctx context.Context, _ any, method mcp.MCPMethod, message any, err error) {
	req, ok := message.(*mcp.ReadResourceRequest)
	if !ok || method != mcp.MethodResourcesRead || !errors.Is(err, server.ErrResourceNotFound) {
		return
	}
	for _, set := range s.toolsets {
		if set.Resources != nil {
			_, _ = s.reader(set.Resources)(ctx, *req) // the error is on its way
			return
		}
	}
}

// codeRefused is of the codes that JSON-RPC leaves to servers.
const codeRefused = -32000

// resourceError returns the error of a resource: the text that a tool would have, and the error object as its data. An
// address that cannot be read and a resource that does not exist have the codes that the protocol has for them. No
// other refusal has: the Claude CLI shows a model words of its own in place of such a message.
func resourceError(ctx context.Context, err error, requestID string) error {
	wire := fault.From(err).Wire(requestID)
	code := codeRefused
	switch {
	case wire.Code == fault.InvalidArgument,
		wire.Code == fault.NotFound && mcp.IsModernProtocol(server.RequestProtocolVersion(ctx)):
		code = mcp.INVALID_PARAMS
	case wire.Code == fault.NotFound:
		code = mcp.RESOURCE_NOT_FOUND
	case wire.Code == fault.Internal:
		code = mcp.INTERNAL_ERROR
	}
	return stdio.Fail(ctx, code, errorText(wire), map[string]any{"error": wire})
}

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

// addPrompts offers the prompts whose tool this server shows, and lets its client use. It returns their names.
func (s *Server) addPrompts() (offered []string) {
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
			offered = append(offered, p.Name)
		}
	}
	return offered
}

// prompter answers with the text of a prompt, as a message of the person who picked it.
func (s *Server) prompter(p operation.Prompt) server.PromptHandlerFunc {
	return func(ctx context.Context, req mcp.GetPromptRequest) (result *mcp.GetPromptResult, err error) {
		defer calling(ctx)()
		defer func() {
			if reason := recover(); reason != nil {
				id := s.opts.NewID()
				s.opts.Log.Error("panic in a prompt", "prompt", p.Name, "request_id", id, "panic", reason, "stack",
					string(debug.Stack()))
				err = resourceError(ctx, fault.From(fmt.Errorf("panic: %v", reason)), id)
			}
		}()
		if err := p.Check(req.Params.Arguments); err != nil {
			return nil, badArguments(ctx, err)
		}
		text, err := p.Text(ctx, operation.Call{Caller: caller(ctx), Ceiling: operation.UncappedTier},
			req.Params.Arguments)
		if fault.CodeOf(err) == fault.InvalidArgument {
			return nil, badArguments(ctx, err)
		}
		if err != nil {
			return nil, resourceError(ctx, err, operation.RequestIDOf(err))
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
