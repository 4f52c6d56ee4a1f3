package stdio

import (
	"context"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// The audit names the caller, so a handler must find the client's name in either era.
func TestAHandlerFindsTheClientsNameAndVersion(t *testing.T) {
	srv := newServer(nil)
	srv.AddTool(mcp.NewTool("who"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		session, ok := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo)
		if !ok {
			return mcp.NewToolResultText("nobody"), nil
		}
		text := session.GetClientInfo().Name + " speaks " + server.RequestProtocolVersion(ctx)
		if session.GetClientCapabilities().Sampling != nil {
			text += " and samples"
		}
		return mcp.NewToolResultText(text), nil
	})
	for name, tt := range map[string]struct{ input, want string }{
		"legacy": {
			strings.Replace(initializeLine, `"capabilities":{}`, `"capabilities":{"sampling":{}}`, 1) + "\n" +
				callTool("1", "who", `{}`),
			"t speaks 2025-11-25 and samples",
		},
		"modern": {
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"who","_meta":{` +
				`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
				`"io.modelcontextprotocol/clientInfo":{"name":"m","version":"1"}}}}`,
			"m speaks 2026-07-28",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := serveAll(t, srv, Options{}, tt.input)
			if answer := byID(t, got, "1"); !strings.Contains(answer.line, `"`+tt.want+`"`) {
				t.Errorf("want %q, got %s", tt.want, answer.line)
			}
		})
	}
}

func TestTheClientSetsTheLevelOfLogMessages(t *testing.T) {
	srv := server.NewMCPServer("test", "1", server.WithLogging())
	srv.AddTool(mcp.NewTool("log"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		message := mcp.NewLoggingMessageNotification(mcp.LoggingLevelInfo, "test", "x")
		return mcp.NewToolResultText("done"), srv.SendLogMessageToClient(ctx, message)
	})
	quiet := serveAll(t, srv, Options{}, initializeLine+"\n"+callTool("1", "log", `{}`))
	if len(quiet) != 2 {
		t.Errorf("by default only errors are sent, got %q", lines(quiet))
	}
	loud := serveAll(t, srv, Options{}, initializeLine+"\n"+
		`{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"info"}}`+"\n"+callTool("1", "log", `{}`))
	if len(loud) != 4 || loud[2].Method != "notifications/message" {
		t.Errorf("want the log message before the answer, got %q", lines(loud))
	}
}
