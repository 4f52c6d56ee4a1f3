package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

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
		if s.opts.Calling != nil {
			defer s.opts.Calling()()
		}
		defer func() {
			if p := recover(); p != nil {
				id := s.opts.NewID()
				s.opts.Log.Error("panic in a resource", "request_id", id, "panic", p, "stack", string(debug.Stack()))
				err = refused(ctx, fault.From(fmt.Errorf("panic: %v", p)), id)
			}
		}()
		uri := req.Params.URI
		content, err := from.Read(ctx, operation.Call{Caller: s.opts.caller(ctx), Ceiling: operation.Unlimited}, uri)
		if err != nil {
			return nil, refused(ctx, err, operation.RequestIDOf(err))
		}
		return []mcp.ResourceContents{
			mcp.TextResourceContents{URI: uri, MIMEType: "text/plain", Text: content.Note},
			mcp.TextResourceContents{URI: uri, MIMEType: content.Type, Text: content.Text, Meta: content.About},
		}, nil
	}
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

// refused returns the error of a resource: the text that a tool would have, and the error object as its data. Only what
// is not there has the code that the protocol has for that: the Claude CLI shows a model words of its own in place of
// such a message.
func refused(ctx context.Context, err error, requestID string) error {
	wire := fault.From(err).Wire(requestID)
	code := codeRefused
	switch {
	case wire.Code == fault.InvalidArgument, wire.Code == fault.NotFound && mcp.IsModernProtocol(server.RequestProtocolVersion(ctx)):
		code = mcp.INVALID_PARAMS
	case wire.Code == fault.NotFound:
		code = mcp.RESOURCE_NOT_FOUND
	case wire.Code == fault.Internal:
		code = mcp.INTERNAL_ERROR
	}
	return stdio.Fail(ctx, code, errorText(wire), map[string]any{"error": wire})
}
