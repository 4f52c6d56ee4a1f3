package web_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/agents/door"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/mcpserver"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/web/mcphttp"
)

// A session hears of tools that come and go on its stream of GET, and a client without one on that of
// subscriptions/listen, with the id of its request; a client that asked for nothing does not.
func TestToolsThatComeAndGoAreToldByAddress(t *testing.T) {
	t.Parallel()
	var names atomic.Value
	names.Store([]string{"one"})
	w := newWorld(t, func(w *world) {
		w.web.Agents.Limits = mcphttp.Limits{Heartbeat: time.Hour, Stream: time.Millisecond}
		w.served = func(ctx context.Context, _ door.Rights, c door.Client) error { return serveFound(ctx, &names, c) }
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
		if err != nil {
			t.Fatal(err)
		}
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
func serveFound(ctx context.Context, names *atomic.Value, c door.Client) error {
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
		Version: "test", Log: slog.New(slog.DiscardHandler), NewID: func() string { return "id" }, Gone: c.Gone,
		Admitted: c.Admitted, Ticks: time.Tick(time.Millisecond),
	})
	if err != nil {
		return err
	}
	return server.ServeExchanges(ctx, c.Messages, c.Out)
}
