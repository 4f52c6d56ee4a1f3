// Command sdks is a client of MCP over Streamable HTTP, as the SDKs of Go have it. It makes several sessions with one
// token, and in one of them a list, a call, a call that is taken back as soon as it is sent, more calls at a time than
// may be under way, and a read of an unknown address. The token is CLAUDEOPS_AGENT_TOKEN:
// sdks official|mcp-go legacy|modern ADDRESS
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptrace"
	"os"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	modern   = "2026-07-28"
	legacy   = "2025-11-25"
	sessions = 9  // one more than a token may have; the one that is idle longest ends
	atOnce   = 80 // calls; 64 requests may be under way
	unknown  = "claudeops://nowhere"
	tool     = "list_prs"
	invalid  = -32602 // invalid params
)

// session is a connection of one SDK.
type session interface {
	version() string
	list(ctx context.Context) (tools int, err error)
	call(ctx context.Context) error
	read(ctx context.Context, uri string) error
	code(err error) bool // it is an error of JSON-RPC about invalid params
	close() error
}

func main() {
	const patience = time.Minute
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := run(ctx, os.Args[1], os.Args[2], os.Args[3]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, sdk, era, address string) error {
	version := legacy
	if era == "modern" {
		version = modern
	}
	connect := connectOfficial
	if sdk == "mcp-go" {
		connect = connectMCPGo
	}
	var last session
	for range sessions {
		s, err := connect(ctx, address, version)
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		if s.version() != version {
			return fmt.Errorf("speaks %s, want %s", s.version(), version)
		}
		if _, err := s.list(ctx); err != nil {
			return fmt.Errorf("list: %w", err)
		}
		last = s
	}
	return errors.Join(use(ctx, last), last.close())
}

func use(ctx context.Context, s session) error {
	if tools, err := s.list(ctx); err != nil || tools == 0 {
		return fmt.Errorf("%d tools: %w", tools, err)
	}
	if err := s.call(ctx); err != nil {
		return fmt.Errorf("call: %w", err)
	}
	sent, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := s.call(context.WithValue(sent, takeBack{}, sync.OnceFunc(cancel))); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("the call that was taken back: %v", err)
	}
	if err := callOften(ctx, s); err != nil {
		return fmt.Errorf("calls at once, after one that was taken back: %w", err)
	}
	if err := s.read(ctx, unknown); !s.code(err) {
		return fmt.Errorf("reading an unknown address: %v", err)
	}
	if _, err := s.list(ctx); err != nil {
		return fmt.Errorf("the last list: %w", err)
	}
	return nil
}

// callOften makes more calls at a time than may be under way: those beyond wait for the others.
func callOften(ctx context.Context, s session) error {
	errs := make([]error, atOnce)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = s.call(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func arguments() map[string]any {
	return map[string]any{"repo_owner": "demo", "repo_name": "home-cluster"}
}

// takeBack is the key of what takes a call back as soon as its request is sent.
type takeBack struct{}

// bearer shows the token with each request, and drops the answer to one that was taken back.
type bearer struct{ token string }

func (b bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	cancel, taken := ctx.Value(takeBack{}).(func())
	taken = taken && ctx.Err() == nil
	if taken {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			WroteRequest: func(httptrace.WroteRequestInfo) { cancel() },
		})
	}
	req = req.Clone(ctx)
	req.Header.Set("Authorization", "Bearer "+b.token)
	answer, err := http.DefaultTransport.RoundTrip(req)
	if taken && err == nil { // it was faster than the cancelling
		return nil, errors.Join(context.Canceled, answer.Body.Close())
	}
	return answer, err
}

// authorized is a client of HTTP that shows the token.
func authorized() *http.Client {
	return &http.Client{Transport: bearer{os.Getenv("CLAUDEOPS_AGENT_TOKEN")}}
}

// official is a session of github.com/modelcontextprotocol/go-sdk.
type official struct{ *mcp.ClientSession }

func connectOfficial(ctx context.Context, address, version string) (session, error) {
	c := mcp.NewClient(&mcp.Implementation{Name: "official", Version: "1"}, nil)
	s, err := c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: address,
		HTTPClient: authorized()},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	return official{s}, err
}

func (o official) version() string { return o.InitializeResult().ProtocolVersion }

func (o official) list(ctx context.Context) (int, error) {
	tools, err := o.ListTools(ctx, nil)
	if err != nil {
		return 0, err
	}
	return len(tools.Tools), nil
}

func (o official) call(ctx context.Context) error {
	result, err := o.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments()})
	if err == nil && result.IsError {
		return fmt.Errorf("%s: %v", tool, result.StructuredContent)
	}
	return err
}

func (o official) read(ctx context.Context, uri string) error {
	_, err := o.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	return err
}

func (official) code(err error) bool {
	var wire *jsonrpc.Error
	return errors.As(err, &wire) && wire.Code == invalid
}

func (o official) close() error { return o.Close() }

// other is a session of github.com/mark3labs/mcp-go.
type other struct {
	*client.Client
	agreed string
}

func connectMCPGo(ctx context.Context, address, version string) (session, error) {
	c, err := client.NewStreamableHttpClient(address, transport.WithHTTPBasicClient(authorized()))
	if err != nil {
		return nil, err
	}
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	var hello mcpgo.InitializeRequest
	hello.Params.ProtocolVersion = version
	hello.Params.ClientInfo = mcpgo.Implementation{Name: "mcp-go", Version: "1"}
	result, err := c.Initialize(ctx, hello)
	if err != nil {
		return nil, err
	}
	return other{c, result.ProtocolVersion}, nil
}

func (o other) version() string { return o.agreed }

func (o other) list(ctx context.Context) (int, error) {
	tools, err := o.ListTools(ctx, mcpgo.ListToolsRequest{})
	if err != nil {
		return 0, err
	}
	return len(tools.Tools), nil
}

func (o other) call(ctx context.Context) error {
	var request mcpgo.CallToolRequest
	request.Params.Name, request.Params.Arguments = tool, arguments()
	result, err := o.CallTool(ctx, request)
	if err == nil && result.IsError {
		return fmt.Errorf("%s: %v", tool, result.StructuredContent)
	}
	return err
}

func (o other) read(ctx context.Context, uri string) error {
	var request mcpgo.ReadResourceRequest
	request.Params.URI = uri
	_, err := o.ReadResource(ctx, request)
	return err
}

func (other) code(err error) bool { return errors.Is(err, mcpgo.ErrInvalidParams) }

func (o other) close() error { return o.Close() }
