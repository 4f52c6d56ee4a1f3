package web_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"testing"

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
			return w.serveTools(ctx, r, c)
		},
		Audit: w.store.Ledger, Log: w.web.Env.Log, Now: w.Now, NewID: w.flow.NewID, Limits: w.limits,
	})
	return door.NewTokens(host, func(ctx context.Context, secret string) (door.Arrival, error) {
		t, err := w.web.Access.AgentToken(ctx, secret)
		return door.Arrival{
			Rights:     door.Rights{Tier: t.MaxTier},
			Actor:      t.Actor(),
			Credential: t.Name,
			Holder:     t.ID,
			Still: func(ctx context.Context) error {
				return w.web.Access.StillAgent(ctx, t)
			},
		}, err
	}, func(ctx context.Context, name string) (bool, error) {
		list, err := w.store.Access.Tokens(ctx)
		return slices.ContainsFunc(list, func(t access.Token) bool { return t.Agent && t.Name == name && t.Good(w.Now()) }),
			err
	})
}

// serveTools serves an agent with the tools of pull requests, at its rights.
func (w *world) serveTools(ctx context.Context, r door.Rights, c door.Client) error {
	flow := w.flow
	flow.Authority.Tier, flow.Authority.DryRun = r.Tier, r.DryRun
	if r.ReadOnly {
		flow.Authority.ReadOnly = "the connection is"
	}
	server, err := mcpserver.New([]operation.Toolset{prflow.Toolset(func() *prflow.Service { return prflow.New(flow) })},
		mcpserver.Options{
			Version: "test", Log: slog.New(slog.DiscardHandler), NewID: w.flow.NewID, Gone: c.Gone, Actor: c.Actor,
			Admitted: c.Admitted,
		})
	if err != nil {
		return err
	}
	return server.ServeExchanges(ctx, c.Messages, c.Out)
}

// agentToken makes a token for an agent.
func (w *world) agentToken(name string, tier gitprovider.Tier) string {
	w.Helper()
	secret, err := access.NewSecret(rand.Reader)
	if err != nil {
		w.Fatal(err)
	}
	t := access.Token{ID: "id-" + name, Name: name, Hash: access.Hash(secret), MaxTier: tier, Agent: true,
		CreatedAt: w.Now()}
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

// newProxy is a reverse proxy in front of a server, as people put one there.
func newProxy(t testing.TB, to string) *httptest.Server {
	t.Helper()
	at, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{} // of its own: each httptest.Server that is closed closes connections of the default one
	p := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(at)
			r.SetXForwarded()
		},
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo),
	})
	p.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	p.Start()
	t.Cleanup(func() { p.Close(); transport.CloseIdleConnections() })
	return p
}

// carrying sets a header.
func carrying(name, value string) edit { return func(r *http.Request) { r.Header.Set(name, value) } }

// showing shows a token in place of another one.
func showing(token string) edit { return carrying("Authorization", "Bearer "+token) }

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

// pulls returns the number of pull requests at the provider.
func (w *world) pulls() int {
	w.Helper()
	open, err := w.fake.ListOpen(context.Background(), gitprovider.RepoRef{Owner: "joe", Name: "infra"}, "")
	if err != nil {
		w.Fatal(err)
	}
	return len(open)
}
