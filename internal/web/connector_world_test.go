package web_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/agents/connect"
	"github.com/claudeops/claudeops/internal/agents/connect/remote"
	"github.com/claudeops/claudeops/internal/agents/door"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/mcpserver"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/web"
)

// agentTokens lets in who has an agent's token of the store, at its tier.
func (w *world) agentTokens() *door.Tokens {
	host := door.NewHost(door.Options{
		Serve: func(ctx context.Context, r door.Rights, c door.Client) error {
			if w.served != nil {
				return w.served(ctx, r, c)
			}
			flow := w.flow
			flow.Authority.Tier, flow.Authority.DryRun = r.Tier, r.DryRun
			if r.ReadOnly {
				flow.Authority.ReadOnly = "the connection is"
			}
			server, err := mcpserver.New([]operation.Toolset{prflow.Toolset(func() *prflow.Service { return prflow.New(flow) })}, mcpserver.Options{
				Version: "test", Log: slog.New(slog.DiscardHandler), NewID: w.flow.NewID, Gone: c.Gone, Credential: c.Credential, Admitted: c.Admitted,
			})
			if err != nil {
				return err
			}
			if c.Messages != nil {
				return server.ServeExchanges(ctx, c.Messages, c.Out)
			}
			return server.Serve(ctx, c.In, c.Out)
		},
		Audit: w.store.Ledger, Log: w.web.Env.Log, Now: w.Now, NewID: w.flow.NewID, Limits: w.limits,
	})
	return door.NewTokens(host, func(ctx context.Context, secret string) (door.Arrival, error) {
		t, err := w.web.Access.AgentToken(ctx, secret)
		return door.Arrival{Rights: door.Rights{Tier: t.MaxTier}, Credential: t.Name, Still: func(ctx context.Context) error {
			return w.web.Access.StillAgent(ctx, t)
		}}, err
	}, func(ctx context.Context, name string) (bool, error) {
		list, err := w.store.Access.Tokens(ctx)
		return slices.ContainsFunc(list, func(t access.Token) bool { return t.Agent && t.Name == name && t.Good(w.Now()) }), err
	})
}

// agentToken makes a token for an agent.
func (w *world) agentToken(name string, tier gitprovider.Tier) string {
	w.Helper()
	secret, err := access.NewSecret(rand.Reader)
	if err != nil {
		w.Fatal(err)
	}
	t := access.Token{ID: "id-" + name, Name: name, Hash: access.Hash(secret), MaxTier: tier, Agent: true, CreatedAt: w.Now()}
	if err := w.store.Access.InsertToken(context.Background(), t); err != nil {
		w.Fatal(err)
	}
	return secret
}

// listening serves a world over the network, as HTTPServer does. change alters that server.
func (w *world) listening(change func(*http.Server)) *httptest.Server {
	w.Helper()
	w.do("GET", "/healthz", "") // builds it
	server := httptest.NewUnstartedServer(nil)
	server.Config = w.handler.(*web.Server).HTTPServer() //nolint:forcetypeassert,errcheck // build made it
	if change != nil {
		change(server.Config)
	}
	server.Start()
	w.Cleanup(func() {
		_ = server.Config.Shutdown(context.Background()) // of connections, with the calls that are under way
		server.Close()
	})
	return server
}

// proxy is a reverse proxy in front of a server, as people put one there, whose faults a test chooses.
type proxy struct {
	*httptest.Server
	target atomic.Pointer[url.URL]
	// fault is asked for each request. It returns what to do with it; nil for nothing special.
	fault atomic.Pointer[func(r *http.Request) http.HandlerFunc]
	pass  *httputil.ReverseProxy
}

func newProxy(t testing.TB, to string) *proxy {
	t.Helper()
	return startProxy(t, to, func(*http.Server) {})
}

// startProxy is newProxy with changes to the server before it starts.
func startProxy(t testing.TB, to string, change func(*http.Server)) *proxy {
	t.Helper()
	p := &proxy{}
	p.leadTo(t, to)
	transport := &http.Transport{} // of its own: each httptest.Server that is closed closes connections of the default one
	p.pass = &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(p.target.Load())
			r.SetXForwarded()
		},
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo),
	}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fault := p.fault.Load(); fault != nil {
			if handle := (*fault)(r); handle != nil {
				handle(w, r)
				return
			}
		}
		p.pass.ServeHTTP(w, r)
	}))
	p.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	change(p.Config)
	p.Start()
	t.Cleanup(func() { p.Close(); transport.CloseIdleConnections() })
	return p
}

func (p *proxy) leadTo(t testing.TB, address string) {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	p.target.Store(to)
}

func (p *proxy) faulty(fault func(r *http.Request) http.HandlerFunc) { p.fault.Store(&fault) }

// sends reports whether a request sends something, rather than open a connection.
func sends(r *http.Request) bool { return r.URL.Path != remote.Path }

// agent is an MCP client behind a connector.
type agent struct {
	testing.TB
	in    *io.PipeWriter
	lines *bufio.Reader
	ended chan error
	heard map[string]int // answers, by id
}

func patientLimits() remote.Limits {
	return remote.Limits{Handshake: time.Minute, Request: time.Minute, Send: time.Minute} // a busy machine may stand still for seconds
}

// connected starts a connector.
func connected(t testing.TB, address, token string, lower connect.Lower) *agent {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, stop := context.WithCancel(context.Background())
	a := &agent{TB: t, in: inW, lines: bufio.NewReader(outR), ended: make(chan error, 1), heard: map[string]int{}}
	over := make(chan struct{})
	go func() {
		defer close(over)
		err := connect.Run(ctx, inR, outW, connect.Options{
			Address: address, Hello: connect.Hello{Ticket: token, Lower: lower}, Transports: remote.Transports(patientLimits()),
		})
		_ = outW.CloseWithError(io.EOF)
		a.ended <- err
	}()
	t.Cleanup(func() { _ = inW.Close(); _ = outR.Close(); stop(); <-over })
	return a
}

// greeted is one that has initialized, too.
func greeted(t testing.TB, address, token string, lower connect.Lower) *agent {
	t.Helper()
	a := connected(t, address, token, lower)
	a.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"tester","version":"9"}}}`)
	a.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	a.answer(0)
	return a
}

func (a *agent) say(line string) {
	a.Helper()
	if _, err := io.WriteString(a.in, line+"\n"); err != nil {
		a.Fatal(err)
	}
}

// message is one of the server's.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result struct {
		IsError    bool           `json:"isError"`
		Structured map[string]any `json:"structuredContent"`
	} `json:"result"`
	Error json.RawMessage `json:"error"`
}

func (m message) code() string {
	failure, _ := m.Result.Structured["error"].(map[string]any)
	code, _ := failure["code"].(string)
	return code
}

// next is the next message.
func (a *agent) next() message {
	a.Helper()
	line, err := a.lines.ReadBytes('\n')
	if err != nil {
		a.Fatalf("%q: %v", line, err)
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		a.Fatalf("%q: %v", line, err)
	}
	if m.Method == "" {
		if a.heard[string(m.ID)]++; a.heard[string(m.ID)] > 1 {
			a.Errorf("a second answer to %s: %s", m.ID, line)
		}
	}
	return m
}

// answer is the answer to a request, behind notifications.
func (a *agent) answer(id int) message {
	a.Helper()
	for {
		if m := a.next(); m.Method == "" {
			if string(m.ID) != fmt.Sprint(id) {
				a.Fatalf("the answer is to %s, not to %d", m.ID, id)
			}
			return m
		}
	}
}

// call calls create_pr.
func (a *agent) call(id int) {
	a.Helper()
	a.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"create_pr","arguments":%s,"_meta":{"progressToken":"p"}}}`, id,
		strings.TrimSpace(request(nil))))
}

// end says that there is nothing more, and returns when the connector has ended.
func (a *agent) end() error {
	a.Helper()
	_ = a.in.Close()
	for {
		if _, err := a.lines.ReadBytes('\n'); errors.Is(err, io.EOF) {
			return <-a.ended
		} else if err != nil {
			a.Fatal(err)
		}
	}
}

// pulls is how many pull requests there are at the provider.
func (w *world) pulls() int {
	w.Helper()
	open, err := w.fake.ListOpen(context.Background(), gitprovider.RepoRef{Owner: "joe", Name: "infra"}, "")
	if err != nil {
		w.Fatal(err)
	}
	return len(open)
}
