package web_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

func TestWhoShowsNoAgentsTokenIsToldWhereToLook(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.web.Network.BasePath = "/ops" })
	at := w.listening(nil).URL + "/ops"
	person := w.token("ann", gitprovider.TierRemediate, "read", "operate", "propose")
	for name, token := range map[string]string{"nothing": "", "a wrong one": "cops_wrong", "a person's": person} {
		t.Run(name, func(t *testing.T) {
			c := dialed(t, at, token)
			for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
				a := c.request(context.Background(), method, greeting)
				challenge := a.Header.Get("WWW-Authenticate")
				if a.StatusCode != http.StatusUnauthorized ||
					!strings.Contains(challenge, `resource_metadata="`+at+`/.well-known/oauth-protected-resource/mcp"`) {
					t.Errorf("%s: %s %q", method, a.Status, challenge)
				}
			}
		})
	}
}

func TestWhatIsWrongWithARequestIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	at, token := w.listening(nil).URL, w.agentToken("laptop", gitprovider.TierInvestigate)
	other := w.agentToken("desk", gitprovider.TierInvestigate)
	c := began(t, at, token)
	none := drop("Mcp-Session-Id")
	call := func(arguments string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_pr","arguments":` + arguments + `}}`
	}
	for name, x := range map[string]struct {
		method, body string
		edits        []edit
		want         int
		said         string
	}{
		"no session":                {"POST", ping, []edit{none}, 400, "Mcp-Session-Id"},
		"no such session":           {"POST", ping, []edit{set("Mcp-Session-Id", "x")}, 404, "initialize"},
		"another token's session":   {"POST", ping, []edit{set("Authorization", "Bearer "+other)}, 404, "initialize"},
		"another's stream":          {"GET", "", []edit{set("Authorization", "Bearer "+other)}, 404, "initialize"},
		"another's end":             {"DELETE", "", []edit{set("Authorization", "Bearer "+other)}, 404, "initialize"},
		"a stream before a session": {"GET", "", []edit{none}, 405, "initialize"},
		"an empty body":             {"POST", "", nil, 400, "-32700"},
		"a blank body":              {"POST", " \n\t ", nil, 400, "-32700"},
		"an unknown address": {"POST",
			`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"claudeops://none"}}`, nil, 200, "-32602"},
		"an unknown version": {"POST", ping, []edit{set("Mcp-Protocol-Version", "1.0")}, 400, "2025-11-25"},
		"another kind":       {"POST", ping, []edit{set("Content-Type", "text/plain")}, 415, "application/json"},
		"compressed":         {"POST", ping, []edit{set("Content-Encoding", "gzip")}, 415, "compressed"},
		"takes nothing":      {"POST", ping, []edit{set("Accept", "text/html")}, 406, "Accept"},
		"no JSON":            {"POST", "{", nil, 400, "JSON"},
		"a batch":            {"POST", "[" + ping + "]", nil, 400, "Batches"},
		"two ids":            {"POST", `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, nil, 400, "twice"},
		"two titles":         {"POST", call(`{"title":"a","title":"b"}`), nil, 200, "title"},
		"too large": {"POST", call(`{"x":"` + strings.Repeat("x", 5<<20) + `"}`), nil, 413,
			"the limit is 4194304"},
		"another site": {"POST", ping, []edit{set("Origin", "https://evil.example.org")}, 403,
			"another site"},
		"another site's stream": {"GET", "", []edit{set("Origin", "https://evil.example.org")}, 403, "another site"},
		"another host":          {"POST", ping, []edit{host("evil.example.org")}, 403, "host"},
		"a stream long past":    {"GET", "", []edit{set("Last-Event-ID", "77.1")}, 400, "Last-Event-ID"},
		"a stream of elsewhere": {"GET", "", []edit{set("Last-Event-ID", "x")}, 400, "Last-Event-ID"},
		"this site":             {"POST", ping, []edit{set("Origin", at)}, 200, `"result":{}`},
		"put":                   {"PUT", ping, nil, 405, "POST"},
	} {
		t.Run(name, func(t *testing.T) {
			a := c.request(context.Background(), x.method, x.body, x.edits...)
			if text := drained(a); a.StatusCode != x.want || !strings.Contains(text, x.said) {
				t.Errorf("%s %.300s, want %d and %q", a.Status, text, x.want, x.said)
			}
		})
	}
	var large, twice, foreign bool
	for _, row := range w.attempts() {
		large = large || strings.Contains(row.Message, "the limit is 4194304")
		twice = twice || strings.Contains(row.Message, "title")
		foreign = foreign || strings.Contains(row.Message, "the session was begun with another token")
	}
	if !large || !twice || !foreign || w.fake.Script.Writes() > 0 {
		t.Errorf("recorded: too large %t, twice %t, another token's %t; %d writes", large, twice, foreign,
			w.fake.Script.Writes())
	}
}

func TestHeadersOfARequestThatStandsForItselfAgreeWithItsBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.web.Agents.Limits.Stream = time.Nanosecond }) // as on a busy machine
	c := dialed(t, w.listening(nil).URL, w.agentToken("laptop", gitprovider.TierInvestigate))
	listing, headers := modern(1, "tools/list", "{}")
	calling, named := modern(1, "tools/call", `{"name":"list_prs","arguments":{"repo_owner":"joe","repo_name":"infra"}}`)
	for name, x := range map[string]struct {
		body  string
		edits []edit
		want  int
		code  int
	}{
		"as it should be":      {listing, []edit{headers}, 200, 0},
		"with a name":          {calling, []edit{named}, 200, 0},
		"with an encoded name": {calling, []edit{named, set("Mcp-Name", "=?base64?bGlzdF9wcnM=?=")}, 200, 0},
		"without the version": {listing, []edit{headers, drop("Mcp-Protocol-Version")},
			400, -32020},
		"of another version": {listing, []edit{headers, set("Mcp-Protocol-Version", "2025-11-25")}, 400, -32020},
		"of a version to come": {strings.ReplaceAll(listing, "2026-07-28", "2099-01-01"),
			[]edit{headers, set("Mcp-Protocol-Version", "2099-01-01")}, 400, -32022},
		"without the method": {listing, []edit{headers, drop("Mcp-Method")}, 400,
			-32020},
		"of another method": {listing, []edit{headers, set("Mcp-Method", "tools/call")}, 400, -32020},
		"without the name":  {calling, []edit{named, drop("Mcp-Name")}, 400, -32020},
		"of another name":   {calling, []edit{named, set("Mcp-Name", "create_pr")}, 400, -32020},
		"with an event":     {listing, []edit{headers, set("Last-Event-ID", "1.1")}, 400, -32020},
		"without a body's": {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, []edit{headers}, 400,
			-32602},
		"of an unknown method": {strings.ReplaceAll(listing, "tools/list", "tools/none"),
			[]edit{headers, set("Mcp-Method", "tools/none")}, 404, -32601},
		"a notification without _meta": {`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
			[]edit{set("Mcp-Protocol-Version", "2026-07-28")}, 202, 0},
		"a notification of an unknown kind": {`{"jsonrpc":"2.0","method":"notifications/none"}`,
			[]edit{set("Mcp-Protocol-Version", "2026-07-28")}, 202, 0},
		"with a session's header": {listing, []edit{headers, set("Mcp-Session-Id", "x")}, 200, 0},
	} {
		t.Run(name, func(t *testing.T) {
			a := c.send(x.body, x.edits...)
			text := drained(a)
			if a.StatusCode != x.want || x.code != 0 && !strings.Contains(text, fmt.Sprintf(`"code":%d`, x.code)) ||
				a.Header.Get("Mcp-Session-Id") != "" {
				t.Errorf("%s %.300s, want %d, %d", a.Status, text, x.want, x.code)
			}
		})
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if a := c.request(context.Background(), method, "", headers); a.StatusCode != http.StatusMethodNotAllowed ||
			a.Header.Get("Allow") != "POST" {
			t.Errorf("%s: %s, allowed is %q", method, a.Status, a.Header.Get("Allow"))
		}
	}
}

func TestARevokedTokenIsOfNoUseByAddressAndEndsItsSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := began(t, w.listening(nil).URL, w.agentToken("laptop", gitprovider.TierInvestigate))
	ctx, stop := context.WithCancel(context.Background())
	kept := make(chan struct{})
	go func() { defer close(kept); w.web.Agents.Tokens.Keep(ctx) }()
	defer func() { stop(); <-kept }()
	entered, release := w.fake.Script.Block("Snapshot")
	answered := make(chan string, 1)
	go func() {
		a, err := c.try(context.Background(), http.MethodPost, createPR(1))
		if err != nil {
			answered <- err.Error()
			return
		}
		answered <- drained(a)
	}()
	<-entered
	w.revoke("id-laptop")
	release()
	if text := <-answered; strings.Contains(text, `"number":1`) || w.pulls() != 0 || w.fake.Script.Writes() != 0 {
		t.Errorf("revoked in the middle of a call: %.300s, %d pull requests", text, w.pulls())
	}
	c.status(c.send(ping), http.StatusUnauthorized)
	eventually(t, func() bool { return len(w.web.Agents.Tokens.Host().Connections()) == 0 })
}

func TestWhoIsCutOffByAddressHasNoSessionAnyMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := began(t, w.listening(nil).URL, w.agentToken("laptop", gitprovider.TierInvestigate))
	entered, release := w.fake.Script.Block("Snapshot")
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		if a, err := c.try(context.Background(), http.MethodPost, createPR(1)); err == nil {
			_ = drained(a)
		}
	}()
	<-entered
	list := w.web.Agents.Tokens.Host().Connections()
	if len(list) != 1 || list[0].Way != "https" || list[0].Credential != "laptop" || list[0].Peer != "127.0.0.1" {
		t.Fatalf("connected: %+v", list)
	}
	w.web.Agents.Tokens.Host().Cut(list[0].ID)
	release()
	<-answered
	if w.pulls() != 0 {
		t.Errorf("%d pull requests", w.pulls())
	}
	eventually(t, func() bool { return c.send(ping).StatusCode == http.StatusNotFound })
}

func TestATokenCanSendWhatItsBudgetHasByAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.limits.Messages = 5
	c := began(t, w.listening(nil).URL, w.agentToken("laptop", gitprovider.TierInvestigate)) // two messages
	for i := range 6 {
		a := c.send(ping)
		if (a.StatusCode == http.StatusTooManyRequests) != (i > 2) || i > 2 && a.Header.Get("Retry-After") == "" {
			t.Errorf("message %d: %s, again after %q", i, a.Status, a.Header.Get("Retry-After"))
		}
	}
	w.advance(time.Hour)
	c.status(c.send(ping), http.StatusOK)
	if rows := w.attempts(); len(rows) > 1 || len(rows) == 1 && rows[0].Code != fault.LimitReached {
		t.Errorf("rows %+v", rows)
	}
}
