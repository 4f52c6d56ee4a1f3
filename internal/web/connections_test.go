package web_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// connect records a connection, as the process that serves it does.
func (w *world) connect(c record.Connection) {
	w.Helper()
	if c.Since.IsZero() {
		c.Since = w.Now()
	}
	if c.Way == "" {
		c.Way, c.Peer = "unix", "pid 4711, uid 1000"
	}
	if err := w.store.Connections().OpenConnection(context.Background(), c); err != nil {
		w.Fatal(err)
	}
}

// cut returns who has cut a connection off; "" if it was not cut off.
func (w *world) cut(id string) string {
	w.Helper()
	open, err := w.store.Connections().Connections(context.Background())
	if err != nil {
		w.Fatal(err)
	}
	for _, c := range open {
		if c.ID == id {
			return c.CutBy
		}
	}
	return ""
}

func TestConnectedAgentsAreListedAndCutOffOverREST(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.strangers = true })
	boss, reader := bearer(w.token("boss", 2, "read", "operate")), bearer(w.token("reader", 2, "read"))
	if a := w.get("/api/v1/connections", reader); string(a.body) != `{"connections":[]}` {
		t.Errorf("nobody is connected: %s", a.body)
	}
	w.connect(record.Connection{ID: "conn-1", Session: "run-1", Tier: 1, DryRun: true})
	w.connect(record.Connection{ID: "conn-2", Credential: "laptop", Tier: 2, ReadOnly: true, Way: "https",
		Peer: "192.0.2.7"})
	a := w.get("/api/v1/connections", reader)
	w.want(a, 200, "")
	for _, want := range []string{`"session":"run-1"`, `"token":"laptop"`, `"tier":2`, `"dry_run":true`,
		`"read_only":true`, `"peer":"192.0.2.7"`} {
		if !strings.Contains(string(a.body), want) {
			t.Errorf("%s is not in %s", want, a.body)
		}
	}
	for name, c := range map[string]struct {
		target string
		with   edit
		status int
		code   fault.Code
	}{
		"without the scope":     {"/api/v1/connections/conn-1/cut", reader, 403, fault.Forbidden},
		"one that is not there": {"/api/v1/connections/none/cut", boss, 404, fault.NotFound},
	} {
		rows := len(w.attempts())
		w.want(w.do("POST", c.target, "", c.with), c.status, c.code)
		if got := w.attempts(); len(got) != rows+1 || got[0].Action != "connection.cut" || got[0].Code != c.code {
			t.Errorf("%s: rows %+v", name, got[:1])
		}
		if w.cut("conn-1")+w.cut("conn-2") != "" {
			t.Errorf("%s: it was refused, and somebody is cut off", name)
		}
	}
	w.want(w.do("POST", "/api/v1/connections/conn-2/cut", "", boss), 202, "")
	if got := w.attempts()[0]; got.Action != "connection.cut" || got.Caller != "boss" ||
		got.Outcome != record.OutcomeDone ||
		!strings.Contains(got.Message, "token laptop, which lets nobody in until 2026-11-20T13:00:00Z") {
		t.Errorf("%+v", got)
	}
	if w.cut("conn-1") != "" || w.cut("conn-2") != "boss" {
		t.Errorf("cut off: %q, %q", w.cut("conn-1"), w.cut("conn-2"))
	}
	if a := w.get("/api/v1/connections", reader); !strings.Contains(string(a.body), `"cut_by":"boss"`) {
		t.Errorf("%s", a.body)
	}
	w.want(w.get("/api/v1/connections"), 401, fault.Unauthenticated)
}

func TestThePageOfConnectedAgentsAsksBeforeOneIsCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.strangers = true })
	boss, reader := w.signIn(w.token("boss", 2, "read", "operate")), w.signIn(w.token("reader", 2, "read"))
	w.page("/connections", 200, with(boss)).has("No agent is connected now", "claudeops mcp-config --connect")
	w.connect(record.Connection{ID: "conn-1", Session: "run-1", Tier: 1, DryRun: true, Since: w.Now().Add(-time.Hour)})
	w.connect(record.Connection{ID: "conn-2", Credential: "laptop <b>", Tier: 2})
	d := w.page("/connections", 200, with(boss))
	d.has("Session run-1", "dry run", "Token laptop <b>", "pid 4711, uid 1000", "1 h")
	if forms := d.find("form"); len(forms) != 1 { // that for signing out
		t.Errorf("%d forms", len(forms))
	}
	w.page("/connections", 200, with(reader)).lacks("/connections/conn-1")
	w.page("/connections/conn-1", 403, with(reader))
	w.page("/connections/conn-1", 200, with(boss)).has("Cut it off", "cannot connect again", "Session run-1")
	w.page("/connections/conn-2", 200, with(boss)).has("lets nobody in for 1h", "revoke it")
	if a := w.submit("/connections/conn-1/cut", nil, with(boss),
		set("Sec-Fetch-Site", "cross-site")); a.StatusCode != 403 || w.cut("conn-1") != "" {
		t.Errorf("from another site: %d", a.StatusCode)
	}
	w.read(w.submit("/connections/conn-1/cut", nil, with(reader)), "/connections", 403).has("operate")
	if w.cut("conn-1") != "" {
		t.Error("it was refused, and the agent is cut off")
	}
	if a := w.submit("/connections/conn-1/cut", nil, with(boss)); a.StatusCode != 303 ||
		a.Header.Get("Location") != "/connections" || w.cut("conn-1") != "boss" {
		t.Errorf("%d %v, cut off by %q", a.StatusCode, a.Header, w.cut("conn-1"))
	}
	w.page("/connections", 200, with(boss)).has("by boss, and ending")
	w.page("/connections/conn-1", 200, with(boss)).has("is ending")
	if a := w.get("/connections/conn-9", with(boss), browser); a.StatusCode != 303 ||
		a.Header.Get("Location") != "/connections" {
		t.Errorf("one that has gone: %d", a.StatusCode)
	}
	w.read(w.submit("/connections/conn-9/cut", nil, with(boss)), "/connections", 404)
}
