package web_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/agents/credentials"
	"github.com/claudeops/claudeops/internal/agents/gateway"
	"github.com/claudeops/claudeops/internal/agents/oauth"
	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/mcpserver"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/proposals/review"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
	"github.com/claudeops/claudeops/internal/testkit/must"
	"github.com/claudeops/claudeops/internal/web"
	"github.com/claudeops/claudeops/internal/web/api"
	"github.com/claudeops/claudeops/internal/web/dashboard"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/views"
)

// ownToken is a token of ours that no text may carry.
const ownToken = "own-token-value-0123456789"

// scanner is shared: its rules take long to load under the race detector.
var scanner = textscan.NewScanner([]string{ownToken})

// world is a server over the stateful fake and a real store, with a clock that the test moves.
type world struct {
	testing.TB
	fake    *forgetest.Fake
	store   *store.Store
	dir     string // of the store
	now     atomic.Int64
	flow    prflow.Options
	web     web.Options
	tokens  []string // of CLAUDEOPS_API_TOKENS
	handler http.Handler
	agents  *agents
	// serves agents that are connected; nil: with the tools of pull requests
	served func(context.Context, gateway.Rights, gateway.Client) error
	// token that requests carry unless they carry something else; "" for none
	person string
	// of what was asked of create_pr by the page of deployments
	asked []string

	limits    gateway.Limits // of agents that are connected
	strangers bool           // requests carry none until signedIn
	anonymous bool           // --anonymous-read
	documents *oauth.Documents
}

// signedIn makes every further request one of a person who may do everything.
func (w *world) signedIn() {
	w.Helper()
	w.person = w.token("ann", gitprovider.TierRemediate, access.AllScopes()...)
}

func (w *world) Now() time.Time          { return time.UnixMicro(w.now.Load()).UTC() }
func (w *world) advance(d time.Duration) { w.now.Add(d.Microseconds()) }

// newWorld makes a world; change alters it before the server is made.
func newWorld(t testing.TB, change func(*world)) *world {
	t.Helper()
	w := &world{TB: t, fake: forgetest.NewFake()}
	w.now.Store(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixMicro())
	w.fake.SetClock(w.Now)
	w.fake.AddRepo("joe", "infra", map[string]string{"checks/disk.md": "# Disk\n", "README.md": "# Infra\n"})
	dir := t.TempDir()
	s := openRecords(t, dir, store.Options{Now: w.Now, Readers: 1}) // a page takes no second connection
	w.store, w.dir = s, dir
	var ids atomic.Int64
	newID := func() string { return fmt.Sprintf("request-%04d", ids.Add(1)) }
	var exchanges atomic.Int64
	registry := gitprovider.NewRegistry([]gitprovider.Registration{
		{Name: "fake", Provider: w.fake, Hosts: []string{"git.example.org"}},
		{Name: "gitea", Disabled: "GITEA_TOKEN is not set", Hosts: []string{"gitea.example.org"}},
	}, nil, "", nil)
	log := slog.New(slog.DiscardHandler)
	w.flow = prflow.Options{
		Registry: registry, Ledger: s.Ledger, History: s.History, Secrets: scanner,
		Authority: prflow.Authority{Policy: policy.Default(), Tier: gitprovider.TierInvestigate}, Log: log, NewID: newID,
		Pauses: s.Pauses(),
		Clock:  prflow.Clock{Now: w.Now, Sleep: func(_ context.Context, d time.Duration) { w.advance(d) }},
		Proof: prflow.Proof{Key: func() ([]byte, error) { return []byte("a key for tests, of 32 bytes----"), nil },
			Head: s.Audit.Head},
	}
	w.web = web.Options{
		Settings: httpx.Settings{Version: "test"}, Callers: web.Callers{Network: httpx.Network{Loopback: true}},
		Records: views.Records{
			Attempts: attempts{s.History, s}, Audit: s.Audit, Replies: s.Replies, Summary: s.History, Pulls: s.Pulls,
			Sessions: s.AgentSessions, Notices: s.Outbox, Changes: s.Changes(), Pauses: s.Pauses(),
		},
		Providers: web.Providers{Providers: dashboard.Providers{Registry: registry}},
		Webhooks:  api.Webhooks{Senders: web.KnownWebhooks("")},
		Rules: web.Rules{Doctor: func(context.Context) []doctor.Finding {
			return []doctor.Finding{{Name: "tier",
				Status: "ok"}}
		}},
		Env: httpx.Env{
			Redact: scanner.Redact, Redaction: scanner.Redaction, Log: log, Now: w.Now,
			NewID: func() string { return fmt.Sprintf("exchange-%04d", exchanges.Add(1)) },
		},
	}
	w.agents = &agents{w: w, settings: session.Settings{MaxTier: gitprovider.TierInvestigate}}
	w.web.Sessions = w.agents
	kernel := w.kernel()
	w.web.Acts = credentials.ConnectionActs{
		Kernel: func() *operation.Kernel { return kernel },
		Store:  func() credentials.ConnectionStore { return s.Connections() },
		Now:    w.Now,
	}.Operations()
	w.web.Acts = append(w.web.Acts, credentials.LoginActs{
		Kernel: func() *operation.Kernel { return kernel }, Store: func() credentials.LoginStore { return s.Access },
		Now: w.Now,
	}.Operations()...)
	w.web.Acts = append(w.web.Acts, credentials.TokenActs{
		Kernel: func() *operation.Kernel { return kernel }, Store: func() credentials.TokenStore { return s.Access },
		Random: rand.Reader, Now: w.Now, NewID: newID,
	}.Operations()...)
	w.web.Acts = append(w.web.Acts, session.Acts{
		Kernel: func() *operation.Kernel { return kernel }, Audit: func() operation.Audit { return w.agents },
		Runs: func() (session.Runs, error) { return w.agents, nil },
	}.Operations()...)
	w.web.Providers.Reviewer = review.New(review.Options{Provider: "local", Disabled: "the test has none"})
	if change != nil {
		change(w)
	}
	if !w.strangers && !w.anonymous && len(w.tokens) == 0 {
		w.person = w.token("somebody", gitprovider.TierRemediate, access.Propose, access.Read)
	}
	return w
}

// kernel judges and records the acts of people.
func (w *world) kernel() *operation.Kernel {
	return operation.NewKernel(operation.KernelOptions{
		Authority: operation.Authority{Enabled: func(string) bool { return true }}, Audit: w.agents, Redact: scanner.Redact,
		Log: w.flow.Log, Now: w.Now, NewID: w.flow.NewID,
	})
}

// strangers and anonymousReads change a world: callers have no token, and need none for reading.
func strangers(w *world)      { w.strangers = true }
func anonymousReads(w *world) { w.anonymous = true }

func (w *world) build() {
	w.Helper()
	service := prflow.New(w.flow)
	w.web.Providers.Reader = service.Reader()
	w.web.Toolsets.Operations = []operation.Toolset{prflow.Toolset(func() *prflow.Service { return service })}
	w.web.Rules.Policy = func() (policy.Policy, error) { return w.flow.Authority.Policy, nil }
	w.web.Settings.Tier = w.flow.Authority.Tier
	w.web.Settings.Rules = func() httpx.Rules {
		return httpx.Rules{DryRun: w.flow.Authority.DryRun, ReadOnly: w.flow.Authority.ReadOnly}
	}
	w.web.Access = access.NewGatekeeper(access.Options{
		Tokens: w.store.Access, Logins: w.store.Access, Configured: func() []string { return w.tokens },
		AnonymousRead: w.anonymous, Now: w.Now,
		Random:    rand.Reader,
		Directory: w.directory(),
		Closed:    func() string { return w.flow.Authority.Unknown },
	})
	w.web.Agents.Tokens, w.web.Agents.Programs = w.agentTokens(), w.programs()
	server, err := web.New(w.web)
	must.Do(w, err)
	w.handler = server
}

// instead lets something else handle an operation.
func (w *world) instead(name string, handle operation.Handler) {
	w.Helper()
	for _, set := range w.web.Toolsets.Operations {
		for i, o := range set.Operations {
			if o.Name == name {
				set.Operations[i].Handle = handle
			}
		}
	}
	server, err := web.New(w.web)
	must.Do(w, err)
	w.handler = server
}

// token makes a person's token of the store.
func (w *world) token(name string, tier gitprovider.Tier, scopes ...access.Scope) string {
	w.Helper()
	return w.insert(access.Token{Name: name, MaxTier: tier, Scopes: scopes})
}

// agentToken makes a token for an agent.
func (w *world) agentToken(name string, tier gitprovider.Tier) string {
	w.Helper()
	return w.insert(access.Token{Name: name, MaxTier: tier, Agent: true})
}

// insert gives a token a secret, puts it into the store and returns the secret.
func (w *world) insert(t access.Token) string {
	w.Helper()
	secret, err := access.NewSecret(rand.Reader)
	must.Do(w, err)
	t.ID, t.Hash, t.CreatedAt = "id-"+t.Name, access.Hash(secret), w.Now()
	must.Do(w, w.store.Access.InsertToken(context.Background(), t))
	return secret
}

// reply is an answer of the server.
type reply struct {
	*http.Response
	body []byte
	json map[string]any // nil if the body is not a JSON object
}

func (r reply) code() string { s, _ := r.json["code"].(string); return s }

// edit changes a request before it is sent.
type edit func(*http.Request)

func header(name, value string) edit { return func(r *http.Request) { r.Header.Add(name, value) } }

// set replaces a header; drop leaves it out.
func set(name, value string) edit { return func(r *http.Request) { r.Header.Set(name, value) } }
func drop(name string) edit       { return func(r *http.Request) { r.Header.Del(name) } }

func bearer(token string) edit { return header("Authorization", "Bearer "+token) }

func (w *world) do(method, target, body string, edits ...edit) reply {
	w.Helper()
	if w.handler == nil {
		w.build()
	}
	r := httptest.NewRequest(method, "http://127.0.0.1:8080"+target, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:50000"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, e := range edits {
		e(r)
	}
	if w.person != "" && r.Header.Get("Authorization") == "" && r.Header.Get("Cookie") == "" {
		r.Header.Set("Authorization", "Bearer "+w.person)
	}
	out := httptest.NewRecorder()
	w.handler.ServeHTTP(out, r)
	a := reply{Response: out.Result(), body: out.Body.Bytes()}
	a.Request = r
	if strings.HasSuffix(a.Header.Get("Content-Type"), "json") && bytes.HasPrefix(a.body, []byte("{")) {
		if err := json.Unmarshal(a.body, &a.json); err != nil {
			w.Fatalf("%s %s: %v in %s", method, target, err, a.body)
		}
	}
	return a
}

// verify verifies the audit as the server does in the background.
func (w *world) verify() {
	w.Helper()
	if w.handler == nil {
		w.build()
	}
	w.handler.(*web.Server).VerifyOnce(context.Background())
}

func (w *world) get(target string, edits ...edit) reply {
	w.Helper()
	return w.do("GET", target, "", edits...)
}

// want fails the test unless the answer has the status, and the code if it is a problem.
func (w *world) want(a reply, status int, code fault.Code) {
	w.Helper()
	isProblem := a.Header.Get("Content-Type") == "application/problem+json"
	if a.StatusCode != status || a.code() != string(code) && isProblem || isProblem != (code != "") {
		w.Fatalf("got %d %s, want %d %q: %s", a.StatusCode, a.Header.Get("Content-Type"), status, code, a.body)
	}
	if isProblem && (a.json["request_id"] == "" || a.json["detail"] == "" || a.json["status"] != float64(status)) {
		w.Errorf("an incomplete problem: %s", a.body)
	}
}

// status fails the test unless the answer has the status. It returns the answer.
func (w *world) status(a reply, want int) reply {
	w.Helper()
	if a.StatusCode != want {
		w.Errorf("%s %s: %d, want %d: %s", a.Request.Method, a.Request.URL, a.StatusCode, want, a.body)
	}
	return a
}

// leads fails the test unless the answer leads the browser to an address.
func (w *world) leads(a reply, to string) {
	w.Helper()
	if got := a.Header.Get("Location"); a.StatusCode != http.StatusSeeOther || got != to {
		w.Errorf("%s %s: %d to %q, want %q: %s", a.Request.Method, a.Request.URL, a.StatusCode, got, to, a.body)
	}
}

// says fails the test unless the answer has each of the texts, or lacks it if it stands behind "!".
func (w *world) says(a reply, texts ...string) {
	w.Helper()
	for _, text := range texts {
		text, absent := strings.CutPrefix(text, "!")
		if strings.Contains(string(a.body), text) == absent {
			w.Errorf("%s %s: %d, and %q is in the answer: %t: %s", a.Request.Method, a.Request.URL, a.StatusCode, text, absent,
				a.body)
		}
	}
}

// attempts are the rows of the audit, newest first.
func (w *world) attempts() []record.RecordedAttempt {
	w.Helper()
	rows, err := w.store.Audit.Page(context.Background(), record.AuditQuery{Limit: 1000})
	must.Do(w, err)
	return rows
}

// record puts a row into the audit.
func (w *world) record(a record.Attempt) {
	w.Helper()
	must.Do(w, w.store.Ledger.Record(context.Background(), a, nil))
}

// opened has somebody open a pull request, and returns the id of the proposal.
func (w *world) opened(change map[string]any) (id string) {
	w.Helper()
	w.want(w.do("POST", "/api/v1/prs", request(change)), 201, "")
	return w.attempts()[0].RequestID
}

func request(change map[string]any) string {
	r := map[string]any{
		"repo_owner": "joe", "repo_name": "infra", "title": "Check inodes, too", "body": "Disks fill up with small files.\n",
		"files": []any{map[string]any{"path": "checks/inodes.md", "action": "create", "content": "# Inodes\n"}},
	}
	for name, value := range change {
		r[name] = value
		if value == nil {
			delete(r, name)
		}
	}
	raw, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// attempts is the store's history, as the server's readiness sees it.
type attempts struct {
	*store.History
	store *store.Store
}

func (a attempts) Ping(ctx context.Context) error { return a.store.Ping(ctx) }

// agentTokens lets in who has an agent's token of the store, at its tier.
func (w *world) agentTokens() *gateway.Tokens {
	host := gateway.NewHost(gateway.Options{
		Serve: func(ctx context.Context, r gateway.Rights, c gateway.Client) error {
			if w.served != nil {
				return w.served(ctx, r, c)
			}
			return w.serveTools(ctx, r, c)
		},
		Audit: w.store.Ledger, Log: w.web.Env.Log, Now: w.Now, NewID: w.flow.NewID, Limits: w.limits,
	})
	return gateway.NewTokens(host, func(ctx context.Context, secret string) (gateway.AuthenticatedConn, error) {
		t, err := w.web.Access.AgentToken(ctx, secret)
		return gateway.AuthenticatedConn{
			Rights:     gateway.Rights{Tier: t.MaxTier},
			Actor:      t.Actor(),
			Credential: t.Name,
			Holder:     t.ID,
			Still: func(ctx context.Context) error {
				return w.web.Access.StillAgent(ctx, t)
			},
		}, err
	}, func(ctx context.Context, names []string) ([]string, error) {
		return credentials.Gone(ctx, w.store.Connections(), w.store.Access.Tokens, names, w.Now())
	})
}

// serveTools serves an agent with the tools of pull requests, at its rights.
func (w *world) serveTools(ctx context.Context, r gateway.Rights, c gateway.Client) error {
	flow := w.flow
	flow.Authority.Tier, flow.Authority.DryRun = r.Tier, r.DryRun
	if r.ReadOnly {
		flow.Authority.ReadOnly = "the connection is"
	}
	server, err := mcpserver.New([]operation.Toolset{prflow.Toolset(func() *prflow.Service { return prflow.New(flow) })},
		mcpserver.Options{
			Version: "test", Log: slog.New(slog.DiscardHandler), NewID: w.flow.NewID,
		})
	if err != nil {
		return err
	}
	client := mcpserver.Client{Gone: c.Gone, Actor: c.Actor, Admitted: c.Admitted}
	return server.ServeExchanges(ctx, client, c.Messages, c.Out)
}

// listening serves a world over the network, as HTTPServer does. change alters that server.
func (w *world) listening(change func(*http.Server)) *httptest.Server {
	w.Helper()
	if w.handler == nil {
		w.build()
	}
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
	must.Do(t, err)
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
	must.Do(w, err)
	return len(open)
}
