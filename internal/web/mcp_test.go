package web_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/agents/door"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/web/mcphttp"
)

func TestAnAgentProposesByTheAddressAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.web.Network.BasePath = "/ops" })
	at := newProxy(t, w.listening(nil).URL).URL + "/ops"
	c := began(t, at, w.agentToken("laptop", gitprovider.TierInvestigate))
	if m, _ := c.answer(c.send(createPR(1))); m.Result.IsError || m.Result.Structured["number"] != 1.0 {
		t.Errorf("got %+v", m)
	}
	s := dialed(t, at, w.agentToken("desk", gitprovider.TierInvestigate))
	body, headers := modernCreatePR(1)
	if m, _ := s.answer(s.send(body, headers)); m.Result.IsError || m.Result.Structured["reused"] != true {
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
	if m, _ := c.answer(c.send(createPR(1))); m.code() != string(fault.TierDenied) {
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
			server := w.listening(
				func(s *http.Server) { s.ReadTimeout, s.WriteTimeout, s.IdleTimeout = short, short, time.Millisecond })
			c := dialed(t, server.URL, w.agentToken("laptop", gitprovider.TierInvestigate))
			// A POST on a connection that the server is just closing fails, and clients may not send it again.
			c.http.Transport = &http.Transport{DisableKeepAlives: true}
			c.begin()
			entered, release := w.fake.Script.Block("Commit")
			go func() {
				<-entered
				waitUntilCut(t, server.Listener.Addr().String()) // it began later than the call
				release()
			}()
			a := c.send(createPR(1), carrying("Accept", accept))
			if m, _ := c.answer(a); m.Result.IsError || m.Result.Structured["number"] != 1.0 {
				t.Errorf("got %+v", m)
			}
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
	if b := c.send(
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`); b.StatusCode != http.StatusAccepted {
		t.Errorf("cancelled: %s", b.Status)
	}
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
	for deadline := time.Now().Add(time.Minute); len(w.attempts()) == 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	release()
	if rows := w.attempts(); len(rows) != 1 || w.pulls() != 0 || w.fake.Script.Writes() != 0 {
		t.Errorf("%d pull requests, rows %+v", w.pulls(), rows)
	}
}

func TestClientsOfOneTokenDoNotHearEachOtherByAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	at, token := w.listening(nil).URL, w.agentToken("laptop", gitprovider.TierInvestigate)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
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
			if m, _ := c.answer(a); m.Result.IsError || m.Result.Structured["number"] != 1.0 {
				t.Errorf("got %+v", m)
			}
		})
	}
	all.Wait()
	if n := w.pulls(); n != 1 {
		t.Errorf("%d pull requests", n)
	}
}

// Beyond the bound of requests under way one waits for another to end, and is answered in JSON-RPC if none does: clients
// cannot read another answer.
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
	if a := c.request(context.Background(), http.MethodDelete, ""); a.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE: %s", a.Status)
	}
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		if a := c.request(context.Background(), method,
			`{"jsonrpc":"2.0","id":1,"method":"ping"}`); a.StatusCode != http.StatusNotFound {
			t.Errorf("%s afterwards: %s", method, a.Status)
		}
	}
	for deadline := time.Now().Add(time.Minute); len(w.web.Agents.Tokens.Host().Connections()) > 0; {
		if time.Now().After(deadline) {
			t.Fatal("it is still connected")
		}
		time.Sleep(time.Millisecond)
	}
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
	if a := first.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`); a.StatusCode != http.StatusNotFound {
		t.Errorf("the first of nine: %s", a.Status)
	}
	if a := ninth.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`); a.StatusCode != http.StatusOK {
		t.Errorf("the ninth: %s", a.Status)
	}

	listing, headers := modern(1, "tools/list", "{}")
	modernly := dialed(t, at, token)
	for range 2 {
		if a := modernly.send(listing, headers); a.StatusCode != http.StatusOK {
			t.Errorf("a request that stands for itself beside eight idle sessions: %s", a.Status)
		}
	}
	var all sync.WaitGroup
	for range 8 { // as many at a time as there may be
		all.Go(func() {
			c := dialed(t, at, token)
			a, err := c.try(context.Background(), http.MethodPost, greeting)
			if err != nil || a.StatusCode != http.StatusOK {
				t.Errorf("one of eight that begin at once: %v, %v", a.Response, err)
			}
		})
	}
	all.Wait()

	w = newWorld(t, func(w *world) { w.web.Agents.Limits.Idle = 2 * time.Second })
	c := began(t, w.listening(nil).URL, w.agentToken("laptop", gitprovider.TierInvestigate))
	for deadline := time.Now().Add(time.Minute); len(w.web.Agents.Tokens.Host().Connections()) > 0; {
		if time.Now().After(deadline) {
			t.Fatal("an idle session does not end")
		}
		time.Sleep(time.Millisecond)
	}
	if a := c.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`); a.StatusCode != http.StatusNotFound {
		t.Errorf("a session that was idle: %s", a.Status)
	}
}

// The policy is read when a connection begins, so one that lasts would never hear of another one.
func TestTheConnectionOfRequestsThatStandForThemselvesIsRenewed(t *testing.T) {
	t.Parallel()
	for name, renew := range map[string]time.Duration{"old": time.Nanosecond, "young": time.Hour} {
		t.Run(name, func(t *testing.T) {
			var served atomic.Int64
			w := newWorld(t, func(w *world) { w.web.Agents.Limits.Renew = renew })
			server := w.listening(nil)
			w.served = func(ctx context.Context, r door.Rights, c door.Client) error {
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
