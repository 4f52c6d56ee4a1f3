package web_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/web/mcphttp"
)

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
			if _, err := io.ReadAll(a.lines); err == nil && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Logf("the stream ended with %v", err)
			}
			release()
			rest := c.request(context.Background(), http.MethodGet, "", carrying("Last-Event-ID", event))
			m, notes := c.answer(rest)
			if m.Result.IsError || m.Result.Structured["number"] != 1.0 || string(m.ID) != "1" {
				t.Errorf("asked for again: %+v after %d notes", m, notes)
			}
			if m, _ := c.answer(c.send(createPR(2))); m.Result.IsError || m.Result.Structured["number"] != 1.0 {
				t.Errorf("the identical call: %+v", m)
			}
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
		rest := drained(c.request(context.Background(), http.MethodGet, "", carrying("Last-Event-ID", id)))
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
	if general := c.request(ctx, http.MethodGet, ""); general.StatusCode != http.StatusOK {
		t.Errorf("GET: %s", general.Status)
	}
	entered, release := w.fake.Script.Block("Commit")
	defer release()
	body, headers := modernCreatePR(1)
	alone := dialed(t, server.URL, w.agentToken("desk", gitprovider.TierInvestigate))
	if a := alone.request(ctx, http.MethodPost, body, headers); a.StatusCode != http.StatusOK {
		t.Errorf("POST: %s", a.Status)
	}
	<-entered
}

func TestAServerThatEndsFinishesWhatWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.web.Agents.Limits.Stream = time.Millisecond })
	server := w.listening(nil)
	c := began(t, server.URL, w.agentToken("laptop", gitprovider.TierInvestigate))
	general := c.request(context.Background(), http.MethodGet, "")
	if general.StatusCode != http.StatusOK {
		t.Fatalf("GET: %s", general.Status)
	}
	if second := c.request(context.Background(), http.MethodGet, ""); second.StatusCode != http.StatusConflict {
		t.Errorf("a second GET: %s", second.Status)
	}
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
		w.web.Agents.Limits = mcphttp.Limits{Write: 20 * time.Millisecond, Stream: time.Millisecond,
			Heartbeat: time.Millisecond}
	})
	c := began(t, w.listening(nil).URL, w.agentToken("laptop", gitprovider.TierInvestigate))
	_ = c.request(context.Background(), http.MethodGet, "") // comments fill it, and it is not read
	for range 50 {
		if m, _ := c.answer(c.send(ping)); m.Error != nil {
			t.Fatalf("got %+v", m)
		}
	}
}
