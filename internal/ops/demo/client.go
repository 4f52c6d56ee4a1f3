package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/processtree"
)

// connection is one spawned `claudeops mcp-server` and its client, as Claude Code would have it.
type connection struct{ client *client.Client }

// connect spawns the server at a tier and shakes hands.
func (b *sandbox) connect(ctx context.Context, tier string, dryRun bool) (*connection, error) {
	env := b.environment(tier, dryRun)
	spawn := func(ctx context.Context, command string, _ []string, args []string) (*exec.Cmd, error) {
		return processtree.Cmd(ctx, processtree.Command{Path: command, Args: append([]string{command}, args...), Env: env}),
			nil
	}
	c, err := client.NewStdioMCPClientWithOptions(b.Binary, env, []string{"mcp-server"}, transport.WithCommandFunc(spawn))
	if err != nil {
		return nil, err
	}
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = mcp.Implementation{Name: "claudeops-demo", Version: "1"}
	if _, err := c.Initialize(ctx, hello); err != nil {
		return nil, fmt.Errorf("the server did not answer: %w", err)
	}
	return &connection{c}, nil
}

func (c *connection) close() error { return c.client.Close() }

// reply is a tool's answer.
type reply struct {
	isError    bool
	text       string
	structured map[string]any
	err        fault.Wire // when isError
}

// call calls a tool and decodes its structured content.
func (c *connection) call(ctx context.Context, tool string, arguments map[string]any) (reply, error) {
	var req mcp.CallToolRequest
	req.Params.Name = tool
	req.Params.Arguments = arguments
	result, err := c.client.CallTool(ctx, req)
	if err != nil {
		return reply{}, err
	}
	out := reply{isError: result.IsError}
	for _, part := range result.Content {
		if text, ok := part.(mcp.TextContent); ok {
			out.text += text.Text
		}
	}
	raw, err := json.Marshal(result.StructuredContent)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(raw, &out.structured); err != nil {
		return out, fmt.Errorf("the answer has no structured content: %w", err)
	}
	var wrapped struct {
		Error fault.Wire `json:"error"`
	}
	if err := json.Unmarshal(raw, &wrapped); err != nil {
		return out, err
	}
	out.err = wrapped.Error
	return out, nil
}

// person runs a claudeops command as the person at the keyboard would, and returns what it prints.
func (s *story) person(ctx context.Context, args ...string) (string, error) {
	s.say("$ claudeops %s\n", shellWords(args))
	return s.command(ctx, "", s.environment("1", false), args)
}

// command runs claudeops in a folder, "" for the one that the demo was started in, and shows what it prints.
func (s *story) command(ctx context.Context, dir string, env, args []string) (string, error) {
	const most = 1 << 20 // bytes of its answer
	ran, err := processtree.Run(ctx, processtree.Spec{
		Command: processtree.Command{Path: s.Binary, Args: append([]string{s.Binary}, args...), Dir: dir, Env: env,
			Stderr: os.Stderr}, Output: most,
	})
	if err == nil && ran.Exit != (processtree.Exit{}) {
		err = errors.New(ran.Exit.Text)
	}
	out := string(ran.Stdout.Text)
	s.indent(out)
	return out, err
}

// shellWords quotes words for display.
func shellWords(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w
		if strings.ContainsAny(w, " '\"$#*") {
			out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}
