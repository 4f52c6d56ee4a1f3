package web_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/agents/connect"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/web/connector"
)

func TestAnAgentElsewhereProposesOverHTTP(t *testing.T) {
	w := newWorld(t, func(w *world) { w.web.Network.BasePath = "/ops" })
	token := w.agentToken("laptop", gitprovider.TierInvestigate)
	a := greeted(t, newProxy(t, w.listening(nil).URL).URL+"/ops", token, connect.Lower{})
	a.call(1)
	if m := a.answer(1); m.Result.IsError || m.Result.Structured["number"] != 1.0 {
		t.Errorf("got %+v", m)
	}
	if err := a.end(); err != nil {
		t.Error(err)
	}
	rows := w.attempts()
	if len(rows) != 1 || rows[0].Caller != "laptop (tester 9)" || rows[0].Tier != gitprovider.TierInvestigate {
		t.Errorf("rows %+v", rows)
	}
}

func TestRightsOverHTTPAreLoweredAndNeverRaised(t *testing.T) {
	w := newWorld(t, nil)
	address := w.listening(nil).URL
	token := w.agentToken("laptop", gitprovider.TierObserve)
	high := w.agentToken("desk", gitprovider.TierInvestigate)
	for name, c := range map[string]struct {
		token string
		lower connect.Lower
		want  fault.Code
	}{
		"raised":    {token, connect.Lower{Tier: 3}, fault.TierDenied},
		"lowered":   {high, connect.Lower{Tier: 1}, fault.TierDenied},
		"read only": {high, connect.Lower{ReadOnly: true}, fault.ReadOnly},
		"dry run":   {high, connect.Lower{DryRun: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := greeted(t, address, c.token, c.lower)
			a.call(1)
			if m := a.answer(1); m.code() != string(c.want) {
				t.Errorf("got %+v, want %q", m, c.want)
			}
		})
	}
	if n := w.fake.Script.Writes(); n != 0 || w.pulls() != 0 {
		t.Errorf("%d writes", n)
	}
}

// The time that a server gives other requests does not hold for a connection, and what says nothing is kept alive.
func TestACallMayTakeLongerThanOtherRequests(t *testing.T) {
	w := newWorld(t, func(w *world) { w.web.Agents.Limits = connector.Limits{Heartbeat: 10 * time.Millisecond} })
	const short = 500 * time.Millisecond
	server := w.listening(func(s *http.Server) { s.ReadTimeout, s.WriteTimeout, s.IdleTimeout = short, short, time.Millisecond })
	p := startProxy(t, server.URL, func(s *http.Server) { s.IdleTimeout = time.Millisecond }) // what is idle is dropped at once
	entered, release := w.fake.Script.Block("Commit")
	a := greeted(t, p.URL, w.agentToken("laptop", gitprovider.TierInvestigate), connect.Lower{})
	a.call(1)
	<-entered
	time.Sleep(3 * short) // beyond the time of other requests; a slower machine makes it longer
	release()
	if m := a.answer(1); m.Result.IsError {
		t.Errorf("got %+v", m)
	}
}

func TestProgressAndCancellationPassOverHTTP(t *testing.T) {
	w := newWorld(t, nil)
	a := greeted(t, newProxy(t, w.listening(nil).URL).URL, w.agentToken("laptop", gitprovider.TierInvestigate), connect.Lower{})
	entered, release := w.fake.Script.Block("Snapshot")
	a.call(1)
	<-entered
	a.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	a.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`) // answered behind it
	progress := 0
	for {
		m := a.next()
		if m.Method == "notifications/progress" {
			progress++
		}
		if m.Method == "" {
			if string(m.ID) != "2" {
				t.Errorf("what was cancelled is answered: %+v", m)
			}
			break
		}
	}
	release()
	a.say(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	a.answer(3)
	if progress == 0 || w.pulls() != 0 || w.fake.Script.Writes() != 0 {
		t.Errorf("progress %d, %d pull requests", progress, w.pulls())
	}
}

func TestTwoClientsOfOneTokenDoNotHearEachOther(t *testing.T) {
	w := newWorld(t, nil)
	address, token := newProxy(t, w.listening(nil).URL).URL, w.agentToken("laptop", gitprovider.TierInvestigate)
	first, second := greeted(t, address, token, connect.Lower{}), greeted(t, address, token, connect.Lower{})
	var both sync.WaitGroup
	for _, a := range []*agent{first, second} {
		both.Go(func() {
			a.call(1)
			if m := a.answer(1); m.Result.IsError {
				t.Errorf("got %+v", m)
			}
			a.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
			a.answer(2)
		})
	}
	both.Wait()
	if n := w.pulls(); n != 1 {
		t.Errorf("%d pull requests", n)
	}
}
