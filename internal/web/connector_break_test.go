package web_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/agents/connect"
	"github.com/claudeops/claudeops/internal/agents/door"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/web/connector"
)

// settled makes the identical call of a client whose first one was lost, and expects one pull request.
func settled(t *testing.T, w *world, a *agent, id int) {
	t.Helper()
	for ; ; id++ {
		a.call(id)
		m := a.answer(id)
		if m.code() == string(fault.UpstreamError) || m.code() == string(fault.Timeout) {
			continue // the connection was not whole yet
		}
		if m.Result.IsError || m.Result.Structured["number"] != 1.0 {
			t.Errorf("the identical call is answered with %+v", m)
		}
		break
	}
	if n, made := w.pulls(), w.fake.Script.Count("OpenPullRequest"); n != 1 || made != 1 {
		t.Errorf("%d pull requests, %d requests for one", n, made)
	}
}

func TestACallIsSettledWhoseConnectionWasCutWhileItRan(t *testing.T) {
	for _, method := range []string{"Snapshot", "Commit", "OpenPullRequest"} {
		t.Run(method, func(t *testing.T) {
			w := newWorld(t, nil)
			p := newProxy(t, w.listening(nil).URL)
			entered, release := w.fake.Script.Block(method)
			a := greeted(t, p.URL, w.agentToken("laptop", gitprovider.TierInvestigate), connect.Lower{})
			a.call(1)
			<-entered
			p.CloseClientConnections()
			if m := a.answer(1); m.code() != string(fault.UpstreamError) {
				t.Errorf("the client is told %+v", m)
			}
			release()
			settled(t, w, a, 2)
		})
	}
}

// cut ends a connection in the middle of what it is for.
func cut(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// broken answers as a proxy whose server is away.
func broken(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<h1>Bad Gateway</h1>", status) }
}

func TestARequestThatSendsIsMadeAgainAndTakenOnce(t *testing.T) {
	for name, fault := range map[string]func(p *proxy) http.HandlerFunc{
		"cut before it arrives": func(*proxy) http.HandlerFunc { return cut },
		"cut before it is answered": func(p *proxy) http.HandlerFunc {
			return func(_ http.ResponseWriter, r *http.Request) {
				p.pass.ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler)
			}
		},
		"answered with 502": func(*proxy) http.HandlerFunc { return broken(http.StatusBadGateway) },
		"answered with 503": func(*proxy) http.HandlerFunc { return broken(http.StatusServiceUnavailable) },
		"answered with 504 when it has arrived": func(p *proxy) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				p.pass.ServeHTTP(httptest.NewRecorder(), r)
				broken(http.StatusGatewayTimeout)(w, r)
			}
		},
		"answered with 429": func(*proxy) http.HandlerFunc { return broken(http.StatusTooManyRequests) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			p := newProxy(t, w.listening(nil).URL)
			a := greeted(t, p.URL, w.agentToken("laptop", gitprovider.TierInvestigate), connect.Lower{})
			var tries atomic.Int64
			p.faulty(func(r *http.Request) http.HandlerFunc {
				const times = 3
				if sends(r) && tries.Add(1) <= times {
					return fault(p)
				}
				return nil
			})
			a.call(1)
			if m := a.answer(1); m.Result.IsError {
				t.Errorf("got %+v", m)
			}
			a.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
			a.answer(2) // and no second answer to 1
			if rows := w.attempts(); len(rows) != 1 || w.pulls() != 1 {
				t.Errorf("%d attempts, %d pull requests", len(rows), w.pulls())
			}
		})
	}
}

func TestAProxyThatTakesSmallBodiesIsSentSmallOnes(t *testing.T) {
	for name, c := range map[string]struct {
		most int64
		lost bool
	}{"of 10 KiB": {10 << 10, false}, "of 4 KiB": {4 << 10, false}, "of 1 KiB": {1 << 10, true}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			p := newProxy(t, w.listening(nil).URL)
			a := greeted(t, p.URL, w.agentToken("laptop", gitprovider.TierInvestigate), connect.Lower{})
			p.faulty(func(r *http.Request) http.HandlerFunc {
				if sends(r) && r.ContentLength > c.most {
					return broken(http.StatusRequestEntityTooLarge)
				}
				return nil
			})
			a.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_prs","arguments":{"repo_owner":"` + strings.Repeat("x", 100<<10) + `"}}}`)
			if m := a.answer(1); (m.code() == string(fault.UpstreamError)) != c.lost || !m.Result.IsError {
				t.Errorf("got %+v", m)
			}
		})
	}
}

func TestAProxyThatIsAwayForATimeIsWaitedFor(t *testing.T) {
	w := newWorld(t, nil)
	p := newProxy(t, w.listening(nil).URL)
	var tries atomic.Int64
	p.faulty(func(*http.Request) http.HandlerFunc {
		switch n := tries.Add(1); {
		case n > 5:
			return nil
		case n%2 == 0:
			return broken(http.StatusNotFound)
		}
		return broken(http.StatusBadGateway)
	})
	a := greeted(t, p.URL, w.agentToken("laptop", gitprovider.TierInvestigate), connect.Lower{})
	settled(t, w, a, 1)
}

func TestAServerThatIsStartedAnewIsFoundAgain(t *testing.T) {
	w := newWorld(t, nil)
	first := w.listening(nil)
	p := newProxy(t, first.URL)
	entered, release := w.fake.Script.Block("Commit")
	a := greeted(t, p.URL, w.agentToken("laptop", gitprovider.TierInvestigate), connect.Lower{})
	a.call(1)
	<-entered
	ended := make(chan error, 1)
	go func() { ended <- first.Config.Shutdown(context.Background()) }() // which waits for the call, since it writes
	p.faulty(func(*http.Request) http.HandlerFunc { return broken(http.StatusBadGateway) })
	release()
	m := a.answer(1) // its own answer, or that nobody knows what became of it
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if m.Result.IsError && m.code() != string(fault.UpstreamError) {
		t.Errorf("got %+v", m)
	}
	if w.pulls() != 1 {
		t.Errorf("%d pull requests at the end of the server", w.pulls())
	}
	w.handler = nil
	p.leadTo(t, w.listening(nil).URL)
	p.faulty(func(*http.Request) http.HandlerFunc { return nil })
	settled(t, w, a, 2)
}

func TestAClientThatReadsSlowlyHearsEverything(t *testing.T) {
	w := newWorld(t, nil)
	p := newProxy(t, w.listening(nil).URL)
	a := greeted(t, p.URL, w.agentToken("laptop", gitprovider.TierInvestigate), connect.Lower{})
	const calls = 200
	go func() {
		for id := range calls {
			_, _ = fmt.Fprintf(a.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`+"\n", id+1) // it fails at the end of the test
		}
	}()
	for id := range calls { // its pipe has no room for more than it reads
		a.answer(id + 1)
	}
}

func TestAClientThatReadsNothingIsGivenUp(t *testing.T) {
	w := newWorld(t, func(w *world) { w.web.Agents.Limits = connector.Limits{Write: 20 * time.Millisecond} })
	ended := make(chan error)
	w.served = func(_ context.Context, _ door.Rights, c door.Client) error {
		line := append(bytes.Repeat([]byte("x"), 4<<20), '\n')
		for {
			if _, err := c.Out.Write(line); err != nil {
				ended <- err
				return nil
			}
		}
	}
	_ = opened(t, w.listening(nil), w.agentToken("laptop", gitprovider.TierInvestigate))
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("it ended with %v", err)
	}
}
