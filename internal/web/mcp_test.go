package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/agents/gateway"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/mcpserver"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/testkit/must"
	"github.com/claudeops/claudeops/internal/web/mcphttp"
)

// mcpClient is an MCP client by its address.
type mcpClient struct {
	testing.TB
	at, token, session string
	http               *http.Client
}

// mcpAnswer is an HTTP answer to a message.
type mcpAnswer struct {
	*http.Response
	lines *bufio.Reader
}

// send posts a message. The body of the answer is open until the end of the test.
func (c *mcpClient) send(body string, edits ...edit) mcpAnswer {
	c.Helper()
	return c.request(context.Background(), http.MethodPost, body, edits...)
}

func (c *mcpClient) request(ctx context.Context, method, body string, edits ...edit) mcpAnswer {
	c.Helper()
	a, err := c.try(ctx, method, body, edits...)
	must.Do(c, err)
	return a
}

func (c *mcpClient) try(ctx context.Context, method, body string, edits ...edit) (mcpAnswer, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.at+mcphttp.Path, strings.NewReader(body))
	if err != nil {
		return mcpAnswer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
		req.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	}
	for _, e := range edits {
		e(req)
	}
	answer, err := c.http.Do(req)
	if err != nil {
		return mcpAnswer{}, err
	}
	c.Cleanup(func() { _ = answer.Body.Close() })
	return mcpAnswer{answer, bufio.NewReader(answer.Body)}, nil
}

// read is the next message of an answer, with the id of its event; io.EOF at the end.
func (a mcpAnswer) read() (m message, event string, err error) {
	if !strings.HasPrefix(a.Header.Get("Content-Type"), "text/event-stream") {
		err = json.NewDecoder(a.lines).Decode(&m)
		return m, "", err
	}
	for {
		line, err := a.lines.ReadString('\n')
		if err != nil {
			return m, event, err
		}
		if id, found := strings.CutPrefix(line, "id: "); found {
			event = strings.TrimSpace(id)
		}
		if data, found := strings.CutPrefix(line, "data: "); found && strings.TrimSpace(data) != "" {
			return m, event, json.Unmarshal([]byte(data), &m)
		}
	}
}

// answer is the answer behind notifications.
func (c *mcpClient) answer(a mcpAnswer) message {
	c.Helper()
	for {
		m, _, err := a.read()
		if err != nil {
			c.Fatalf("%s: %v", a.Status, err)
		}
		if m.Method == "" {
			return m
		}
	}
}

// opens fails the test unless the answer to create_pr is pull request #1. It returns the answer.
func (c *mcpClient) opens(a mcpAnswer) message {
	c.Helper()
	m := c.answer(a)
	if m.Result.IsError || m.Result.Structured["number"] != 1.0 {
		c.Errorf("got %+v", m)
	}
	return m
}

// status fails the test unless an answer has the status.
func (c *mcpClient) status(a mcpAnswer, want int) {
	c.Helper()
	if a.StatusCode != want {
		c.Errorf("%s: %s, want %d", a.Request.Method, a.Status, want)
	}
}

const greeting = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"tester","version":"9"}}}`

// dialed is a client that has begun no session.
func dialed(t testing.TB, address, token string) *mcpClient {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &mcpClient{TB: t, at: address, token: token, http: &http.Client{Transport: transport}}
}

// began is a client that has begun a session.
func began(t testing.TB, address, token string) *mcpClient {
	t.Helper()
	c := dialed(t, address, token)
	c.begin()
	return c
}

// begin begins a session.
func (c *mcpClient) begin() {
	c.Helper()
	a := c.send(greeting)
	c.session = a.Header.Get("Mcp-Session-Id")
	if m := c.answer(a); a.StatusCode != http.StatusOK || c.session == "" || m.Error != nil {
		c.Fatalf("initialize: %s %+v", a.Status, m)
	}
	c.status(c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), http.StatusAccepted)
}

// createPR is a call of create_pr.
func createPR(id int) string {
	return fmt.Sprintf(
		`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"create_pr","arguments":%s,"_meta":{"progressToken":"p"}}}`, id, strings.TrimSpace(request(nil)))
}

// modern is a request that stands for itself, and the headers that it has.
func modern(id int, method, params string) (string, edit) {
	var named struct{ Name, URI string }
	_ = json.Unmarshal([]byte(params), &named)
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"tester","version":"9"},"io.modelcontextprotocol/clientCapabilities":{}}`
	params = strings.TrimSuffix(params, "}")
	if params != "{" {
		params += ","
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s%s}}`, id, method, params, meta),
		func(r *http.Request) {
			r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
			r.Header.Set("Mcp-Method", method)
			if name := named.Name + named.URI; name != "" {
				r.Header.Set("Mcp-Name", name)
			}
		}
}

func modernCreatePR(id int) (string, edit) {
	return modern(id, "tools/call", fmt.Sprintf(`{"name":"create_pr","arguments":%s}`, strings.TrimSpace(request(nil))))
}

func drained(a mcpAnswer) string {
	text, _ := io.ReadAll(a.lines)
	return string(text)
}

func TestAnAgentProposesByTheAddressAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.web.Network.BasePath = "/ops" })
	at := newProxy(t, w.listening(nil).URL).URL + "/ops"
	c := began(t, at, w.agentToken("laptop", gitprovider.TierInvestigate))
	c.opens(c.send(createPR(1)))
	s := dialed(t, at, w.agentToken("desk", gitprovider.TierInvestigate))
	body, headers := modernCreatePR(1)
	if m := s.opens(s.send(body, headers)); m.Result.Structured["reused"] != true {
		t.Errorf("without a session: %+v", m)
	}
	rows := w.attempts()
	if len(rows) != 2 || rows[1].Caller != "laptop (tester 9)" || rows[1].Tier != gitprovider.TierInvestigate ||
		rows[0].Caller != "desk (tester 9)" {
		t.Errorf("rows %+v", rows)
	}
}

func TestTheTierOfAnAddressIsTheTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := began(t, w.listening(nil).URL, w.agentToken("laptop", gitprovider.TierObserve))
	if m := c.answer(c.send(createPR(1))); m.code() != string(fault.TierDenied) {
		t.Errorf("got %+v", m)
	}
	if n := w.fake.Script.Writes(); n != 0 {
		t.Errorf("%d writes", n)
	}
}

// The time that a server gives other requests does not hold for a call, and what says nothing is kept alive.
func TestACallByAddressMayTakeLongerThanOtherRequests(t *testing.T) {
	t.Parallel()
	const short = time.Second
	for name, accept := range map[string]string{"on a stream": "application/json, text/event-stream",
		"alone": "application/json"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(w *world) {
				w.web.Agents.Limits = mcphttp.Limits{Heartbeat: 10 * time.Millisecond, Stream: time.Millisecond}
			})
			// It begins where nothing is short: a busy machine may need longer for a greeting.
			c := began(t, w.listening(nil).URL, w.agentToken("laptop", gitprovider.TierInvestigate))
			server := w.listening(
				func(s *http.Server) { s.ReadTimeout, s.WriteTimeout, s.IdleTimeout = short, short, time.Millisecond })
			c.at = server.URL
			// A POST on a connection that the server is just closing fails, and clients may not send it again.
			c.http.Transport = &http.Transport{DisableKeepAlives: true}
			entered, release := w.fake.Script.Block("Commit")
			go func() {
				<-entered
				waitUntilCut(t, server.Listener.Addr().String()) // it began later than the call
				release()
			}()
			c.opens(c.send(createPR(1), set("Accept", accept)))
		})
	}
}

// waitUntilCut makes a request that never gets complete, and returns when the server has ended it.
func waitUntilCut(t testing.TB, addr string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\n")
	_, copyErr := io.Copy(io.Discard, conn)
	if err := errors.Join(err, copyErr); err != nil {
		t.Error(err)
	}
}

func TestProgressComesOnTheStreamOfItsCallAndCancellationEndsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.web.Agents.Limits.Stream = time.Millisecond })
	c := began(t, newProxy(t, w.listening(nil).URL).URL, w.agentToken("laptop", gitprovider.TierInvestigate))
	entered, release := w.fake.Script.Block("Snapshot")
	a := c.send(createPR(1))
	<-entered
	if m, _, err := a.read(); err != nil || m.Method != "notifications/progress" {
		t.Fatalf("first comes %+v, %v", m, err)
	}
	c.status(c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`), http.StatusAccepted)
	release()
	if rest := drained(a); strings.Contains(rest, `"result"`) {
		t.Errorf("what was cancelled is answered: %s", rest)
	}
	if w.pulls() != 0 || w.fake.Script.Writes() != 0 {
		t.Errorf("%d pull requests", w.pulls())
	}
}

// Since 2026-07-28 a client takes a call back by going away; what has written nothing ends.
func TestACallWithoutASessionEndsWhenItsClientGoesAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.web.Agents.Limits.Stream = time.Millisecond })
	c := dialed(t, w.listening(nil).URL, w.agentToken("laptop", gitprovider.TierInvestigate))
	entered, release := w.fake.Script.Block("Snapshot")
	body, headers := modernCreatePR(1)
	ctx, leave := context.WithCancel(context.Background())
	_ = c.request(ctx, http.MethodPost, body, headers)
	<-entered
	leave()
	eventually(t, func() bool { return len(w.attempts()) > 0 })
	release()
	if rows := w.attempts(); len(rows) != 1 || w.pulls() != 0 || w.fake.Script.Writes() != 0 {
		t.Errorf("%d pull requests, rows %+v", w.pulls(), rows)
	}
}

func TestClientsOfOneTokenDoNotHearEachOtherByAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	at, token := w.listening(nil).URL, w.agentToken("laptop", gitprovider.TierInvestigate)
	atOnce(4, func(i int) {
		c := dialed(t, at, token)
		body, headers := modernCreatePR(1) // the same id
		if i < 2 {
			c = began(t, at, token)
			body, headers = createPR(1), func(*http.Request) {}
		}
		a, err := c.try(context.Background(), http.MethodPost, body, headers)
		if err != nil {
			t.Error(err)
			return
		}
		c.opens(a)
	})
	if n := w.pulls(); n != 1 {
		t.Errorf("%d pull requests", n)
	}
}

// Beyond the bound of requests under way one waits for another to end, and is answered in JSON-RPC if none does:
// clients cannot read another answer.
func TestOneOfTooManyRequestsWaitsForAnother(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]time.Duration{"long": time.Minute, "not": time.Nanosecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(w *world) { w.web.Agents.Limits.Wait, w.web.Agents.Limits.Stream = wait, time.Millisecond })
			c := began(t, w.listening(nil).URL, w.agentToken("laptop", gitprovider.TierInvestigate))
			var releases []func()
			for range 4 { // as many as run at a time
				_, release := w.fake.Script.Block("Status")
				releases = append(releases, release)
			}
			release := sync.OnceFunc(func() {
				for _, each := range releases {
					each()
				}
			})
			defer release()
			var calls []mcpAnswer
			for id := range 64 {
				calls = append(calls, c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":`+
					`"get_pr_status","arguments":{"repo_owner":"joe","repo_name":"infra","pr_number":1}}}`, id+1)))
			}
			answered := make(chan message, 1)
			go func() {
				a, err := c.try(context.Background(), http.MethodPost, strings.ReplaceAll(ping, `"id":1`, `"id":65`))
				if err != nil {
					t.Error(err)
				}
				m, _, _ := a.read()
				answered <- m
			}()
			if wait > time.Second {
				release()
			}
			m := <-answered
			release()
			if refused := strings.Contains(string(m.Error), "-32000"); refused != (wait < time.Second) {
				t.Errorf("the 65th: %+v", m)
			}
			for _, a := range calls {
				_ = drained(a)
			}
		})
	}
}

func TestASessionEndsWithDelete(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	at := w.listening(nil).URL
	c := began(t, at, w.agentToken("laptop", gitprovider.TierInvestigate))
	c.status(c.request(context.Background(), http.MethodDelete, ""), http.StatusNoContent)
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		c.status(c.request(context.Background(), method, ping), http.StatusNotFound)
	}
	eventually(t, func() bool { return len(w.web.Agents.Tokens.Host().Connections()) == 0 })
}

func TestAnIdleSessionEndsAndAFullTokenLosesItsLongestIdleOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	at, token := w.listening(nil).URL, w.agentToken("laptop", gitprovider.TierInvestigate)
	first := began(t, at, token)
	for range 7 {
		began(t, at, token)
	}
	ninth := began(t, at, token)
	first.status(first.send(ping), http.StatusNotFound)
	ninth.status(ninth.send(ping), http.StatusOK)

	listing, headers := modern(1, "tools/list", "{}")
	modernly := dialed(t, at, token)
	for range 2 {
		modernly.status(modernly.send(listing, headers), http.StatusOK)
	}
	atOnce(8, func(int) { // as many at a time as there may be
		a, err := dialed(t, at, token).try(context.Background(), http.MethodPost, greeting)
		if err != nil || a.StatusCode != http.StatusOK {
			t.Errorf("one of eight that begin at once: %v, %v", a.Response, err)
		}
	})

	w = newWorld(t, func(w *world) { w.web.Agents.Limits.Idle = 2 * time.Second })
	c := dialed(t, w.listening(nil).URL, w.agentToken("laptop", gitprovider.TierInvestigate))
	greeted := c.send(greeting) // and nothing else: on a busy machine that might come too late
	if c.session = greeted.Header.Get("Mcp-Session-Id"); c.session == "" {
		t.Fatalf("initialize: %s", greeted.Status)
	}
	eventually(t, func() bool { return len(w.web.Agents.Tokens.Host().Connections()) == 0 })
	c.status(c.send(ping), http.StatusNotFound)
}

// The policy is read when a connection begins, so one that lasts would never notice another policy.
// The official SDK of Go keeps a stream of notifications open for as long as a session lasts.
func TestASessionThatOnlyListensCountsAsIdle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	at, token := w.listening(nil).URL, w.agentToken("laptop", gitprovider.TierInvestigate)
	for range 9 {
		c := began(t, at, token)
		c.status(c.request(context.Background(), http.MethodGet, ""), http.StatusOK)
	}
}

func TestTheConnectionOfRequestsThatStandForThemselvesIsRenewed(t *testing.T) {
	t.Parallel()
	for name, renew := range map[string]time.Duration{"old": time.Nanosecond, "young": time.Hour} {
		t.Run(name, func(t *testing.T) {
			var served atomic.Int64
			w := newWorld(t, func(w *world) { w.web.Agents.Limits.Renew = renew })
			server := w.listening(nil)
			w.served = func(ctx context.Context, r gateway.Rights, c gateway.Client) error {
				served.Add(1)
				return w.serveTools(ctx, r, c)
			}
			c := dialed(t, server.URL, w.agentToken("laptop", gitprovider.TierInvestigate))
			body, headers := modern(1, "tools/list", "{}")
			// An answer may arrive before its connection counts as idle, so an old one can serve the next request as well.
			want := map[string]int64{"old": 3, "young": 1}[name]
			asked := 0
			for end := time.Now().Add(time.Minute); (asked < 3 || served.Load() < want) && time.Now().Before(end); asked++ {
				a := c.send(body, headers)
				if a.StatusCode != http.StatusOK {
					t.Fatalf("%s", a.Status)
				}
				_ = drained(a)
			}
			if served.Load() != want {
				t.Errorf("%d connections for %d requests, want %d", served.Load(), asked, want)
			}
		})
	}
}

// A call whose connection is cut goes on to its end, and its answer can be asked for.
func TestACallOfASessionGoesOnWhenItsConnectionIsCut(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"Snapshot", "Commit", "OpenPullRequest"} {
		t.Run(method, func(t *testing.T) {
			w := newWorld(t, func(w *world) { w.web.Agents.Limits.Stream = time.Millisecond })
			p := newProxy(t, w.listening(nil).URL)
			c := began(t, p.URL, w.agentToken("laptop", gitprovider.TierInvestigate))
			entered, release := w.fake.Script.Block(method)
			a := c.send(createPR(1))
			<-entered
			_, event, err := a.read() // progress
			if err != nil || event == "" {
				t.Fatalf("event %q, %v", event, err)
			}
			p.CloseClientConnections()
			_ = drained(a)
			release()
			m := c.opens(c.request(context.Background(), http.MethodGet, "", set("Last-Event-ID", event)))
			if string(m.ID) != "1" {
				t.Errorf("asked for again: %+v", m)
			}
			c.opens(c.send(createPR(2))) // the identical call
			if n, made := w.pulls(), w.fake.Script.Count("OpenPullRequest"); n != 1 || made != 1 {
				t.Errorf("%d pull requests, %d requests for one", n, made)
			}
			if rows := w.attempts(); len(rows) != 2 {
				t.Errorf("rows %+v", rows)
			}
		})
	}
}

// Nothing of a stream is lost or told twice, wherever it is taken up again.
func TestAStreamIsTakenUpAfterEachOfItsEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.web.Agents.Limits.Stream = time.Millisecond })
	c := began(t, w.listening(nil).URL, w.agentToken("laptop", gitprovider.TierInvestigate))
	entered, release := w.fake.Script.Block("Snapshot")
	a := c.send(createPR(1)) // returns when the stream has begun
	<-entered
	release()
	whole := drained(a)
	events := strings.Split(strings.TrimSuffix(whole, "\n\n"), "\n\n")
	if len(events) < 3 || !strings.HasPrefix(events[0], "id: ") || !strings.Contains(events[len(events)-1], `"result"`) {
		t.Fatalf("events %q", events)
	}
	for i, event := range events {
		id, _, _ := strings.Cut(strings.TrimPrefix(event, "id: "), "\n")
		rest := drained(c.request(context.Background(), http.MethodGet, "", set("Last-Event-ID", id)))
		if want := strings.Join(append(events[i+1:], ""), "\n\n"); rest != want {
			t.Errorf("after %s comes %q, want %q", id, rest, want)
		}
	}
}

func TestAStreamOnWhichNothingIsSaidYetBeginsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) {
		w.web.Agents.Limits.Stream, w.web.Agents.Limits.Heartbeat = time.Millisecond, time.Hour
	})
	server := w.listening(nil)
	c := began(t, server.URL, w.agentToken("laptop", gitprovider.TierInvestigate))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c.status(c.request(ctx, http.MethodGet, ""), http.StatusOK)
	entered, release := w.fake.Script.Block("Commit")
	defer release()
	body, headers := modernCreatePR(1)
	alone := dialed(t, server.URL, w.agentToken("desk", gitprovider.TierInvestigate))
	alone.status(alone.request(ctx, http.MethodPost, body, headers), http.StatusOK)
	<-entered
}

func TestAServerThatEndsFinishesWhatWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.web.Agents.Limits.Stream = time.Millisecond })
	server := w.listening(nil)
	c := began(t, server.URL, w.agentToken("laptop", gitprovider.TierInvestigate))
	general := c.request(context.Background(), http.MethodGet, "")
	c.status(general, http.StatusOK)
	c.status(c.request(context.Background(), http.MethodGet, ""), http.StatusConflict)
	entered, release := w.fake.Script.Block("Commit")
	a := c.send(createPR(1))
	<-entered
	ended := make(chan error, 1)
	go func() { ended <- server.Config.Shutdown(context.Background()) }()
	_ = drained(general) // it ends by itself
	release()
	if rest := drained(a); !strings.Contains(rest, `"number":1`) {
		t.Errorf("the call that wrote is answered with %s", rest)
	}
	if err := <-ended; err != nil || w.pulls() != 1 {
		t.Errorf("%v, %d pull requests", err, w.pulls())
	}
}

func TestAClientByAddressThatReadsNothingHoldsUpNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) {
		w.web.Agents.Limits = mcphttp.Limits{Write: time.Minute, Stream: time.Millisecond,
			Heartbeat: time.Millisecond}
	})
	c := began(t, w.listening(nil).URL, w.agentToken("laptop", gitprovider.TierInvestigate))
	_ = c.request(context.Background(), http.MethodGet, "") // comments fill it, and it is not read
	for range 50 {
		if m := c.answer(c.send(ping)); m.Error != nil {
			t.Fatalf("got %+v", m)
		}
	}
}

// A session is told about tools that come and go on its stream of GET, and a client without one on that of
// subscriptions/listen, with the id of its request; a client that asked for nothing does not.
func TestToolsThatComeAndGoAreToldByAddress(t *testing.T) {
	t.Parallel()
	var names atomic.Value
	names.Store([]string{"one"})
	w := newWorld(t, func(w *world) {
		w.web.Agents.Limits = mcphttp.Limits{Heartbeat: time.Hour, Stream: time.Millisecond}
		w.served = func(ctx context.Context, _ gateway.Rights, c gateway.Client) error { return serveFound(ctx, &names, c) }
	})
	at, token := w.listening(nil).URL, w.agentToken("laptop", gitprovider.TierObserve)
	old, deaf, alone := began(t, at, token), began(t, at, token), dialed(t, at, token)
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	general := old.request(ctx, http.MethodGet, "") // which is answered before anything is said
	asked := func(id int, filter string) mcpAnswer {
		body, headers := modern(id, "subscriptions/listen", `{"notifications":`+filter+`}`)
		return alone.request(ctx, http.MethodPost, body, headers)
	}
	changes := asked(7, `{"toolsListChanged":true}`)
	if m, _, err := changes.read(); err != nil || m.Method != "notifications/subscriptions/acknowledged" {
		t.Fatalf("%+v, %v", m, err)
	}
	if none := drained(asked(8, `{}`)); strings.Contains(none, "list_changed") {
		t.Errorf("who asked for nothing hears %s", none)
	}
	names.Store([]string{"one", "two"})
	if m, event, err := general.read(); err != nil || m.Method != "notifications/tools/list_changed" || event == "" {
		t.Errorf("the session hears %+v (%q), %v", m, event, err)
	}
	for {
		line, err := changes.lines.ReadString('\n')
		must.Do(t, err)
		if strings.Contains(line, "notifications/tools/list_changed") {
			if !strings.Contains(line, `"io.modelcontextprotocol/subscriptionId":7`) {
				t.Errorf("without a session: %s", line)
			}
			break
		}
	}
	list := `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`
	if got := drained(deaf.send(list)); strings.Contains(got, "list_changed") || !strings.Contains(got, `"name":"two"`) {
		t.Errorf("a session without a stream hears %s", got)
	}
	if got := drained(old.send(list)); !strings.Contains(got, `"name":"two"`) {
		t.Errorf("the list is %s", got)
	}
}

// serveFound serves tools that are found again and again, by their names.
func serveFound(ctx context.Context, names *atomic.Value, c gateway.Client) error {
	object := json.RawMessage(`{"type":"object"}`)
	set := operation.Toolset{Name: "found", Instructions: "Run."}
	set.Found = func(context.Context) (all []operation.Operation) {
		for _, name := range names.Load().([]string) { //nolint:errcheck // nothing else is stored
			all = append(all, operationtest.Plain(operation.Operation{
				Name: name, Effect: operation.Exec, Tool: operation.Tool{Title: name, Description: name},
				Schemas: operation.Schemas{Input: object, Output: object},
			}, true, func(context.Context, operation.Call, struct{}) (struct{}, error) { return struct{}{}, nil }))
		}
		return all
	}
	server, err := mcpserver.New([]operation.Toolset{set}, mcpserver.Options{
		Version: "test", Log: slog.New(slog.DiscardHandler), NewID: func() string { return "id" },
		Ticks: time.Tick(time.Millisecond),
	})
	if err != nil {
		return err
	}
	return server.ServeExchanges(ctx, mcpserver.Client{Gone: c.Gone, Admitted: c.Admitted}, c.Messages, c.Out)
}
