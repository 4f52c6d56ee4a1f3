package web_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/agents/connect"
	"github.com/claudeops/claudeops/internal/agents/connect/remote"
	"github.com/claudeops/claudeops/internal/agents/door"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/access"
)

// carrying sets a header.
func carrying(name, value string) edit { return func(r *http.Request) { r.Header.Set(name, value) } }

// showing shows a token in place of another one.
func showing(token string) edit { return carrying("Authorization", "Bearer "+token) }

func octets() edit { return carrying("Content-Type", remote.ChunkType) }

// answered is an answer whose body is open until the end of the test.
type answered struct {
	StatusCode int
	Status     string
	Header     http.Header
	Body       io.Reader
}

// posted makes a request over the network.
func posted(t testing.TB, address, body string, edits ...edit) answered {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", remote.HelloType)
	for _, e := range edits {
		e(req)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answered{answer.StatusCode, answer.Status, answer.Header, answer.Body}
}

// reading serves connections that answer nothing, and says what they read.
func (w *world) reading() <-chan string {
	said := make(chan string, 1000)
	w.served = func(_ context.Context, _ door.Rights, c door.Client) error {
		in := bufio.NewReader(c.In)
		for {
			line, err := in.ReadString('\n')
			if line != "" {
				said <- line
			}
			if err != nil {
				return nil //nolint:nilerr // the end
			}
		}
	}
	return said
}

// opened opens a connection by hand, and returns the address at which it is sent to.
func opened(t testing.TB, server *httptest.Server, token string) string {
	t.Helper()
	answer := posted(t, server.URL+remote.Path, `{"claudeops":1}`, showing(token))
	line, err := bufio.NewReader(answer.Body).ReadString('\n')
	id, found := strings.CutPrefix(strings.TrimSpace(line), `data: {"claudeops":1,"ok":true,"connection":"`)
	if err != nil || !found {
		t.Fatalf("%d: %q, %v", answer.StatusCode, line, err)
	}
	return server.URL + remote.Path + "/" + strings.TrimSuffix(id, `"}`)
}

func TestNothingButAnAgentsTokenOpensAConnection(t *testing.T) {
	w := newWorld(t, func(w *world) { w.anonymous = true })
	server := w.listening(nil)
	agent := w.agentToken("laptop", gitprovider.TierInvestigate)
	person := w.token("ann", gitprovider.TierRemediate, access.AllScopes()...)
	cookie := carrying("Cookie", "claudeops_session=x")
	for name, c := range map[string]struct {
		edits []edit
		want  fault.Code
	}{
		"nobody":                 {nil, fault.Unauthenticated},
		"a person's token":       {[]edit{showing(person)}, fault.Unauthenticated},
		"an unknown token":       {[]edit{showing("cops_unknown")}, fault.Unauthenticated},
		"no bearer":              {[]edit{carrying("Authorization", "Basic "+agent)}, fault.Unauthenticated},
		"a login":                {[]edit{cookie}, fault.Unauthenticated},
		"a page of this site":    {[]edit{showing(agent), carrying("Origin", server.URL)}, fault.Forbidden},
		"a page, without Origin": {[]edit{showing(agent), carrying("Sec-Fetch-Site", "same-origin")}, fault.Forbidden},
		"a page of another site": {[]edit{showing(agent), carrying("Origin", "https://example.org")}, fault.Forbidden},
		"a user of a proxy":      {[]edit{carrying("X-Forwarded-User", "ann")}, fault.Unauthenticated},
		"another host":           {[]edit{showing(agent), func(r *http.Request) { r.Host = "evil.example.org" }}, fault.Forbidden},
		"a token in the address": {[]edit{func(r *http.Request) { r.URL.RawQuery = "access_token=" + agent }}, fault.Unauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			w.advance(2 * time.Minute) // wrong tokens are counted by the minute
			for _, path := range []string{remote.Path, remote.Path + "/ABC?seq=1"} {
				answer := posted(t, server.URL+path, `{"claudeops":1}`, c.edits...)
				if answer.StatusCode != c.want.HTTPStatus() || answer.Header.Get("Content-Type") != "application/problem+json" {
					t.Errorf("%s: %s", path, answer.Status)
				}
			}
		})
	}
	recorded := 0
	for _, row := range w.attempts() {
		if row.Action != door.ActionConnect || !strings.Contains(row.Message, "a connection of 127.0.0.1 was refused") {
			t.Errorf("row %+v", row)
		}
		recorded++
	}
	if recorded < 10 || recorded > 20 { // those from other sites end before the door
		t.Errorf("%d rows", recorded)
	}
	if w.pulls() != 0 || w.fake.Script.Writes() != 0 {
		t.Error("something was written")
	}
	if answer := w.get("/api/v1/prs?repo_owner=joe&repo_name=infra", showing(agent)); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("an agent's token opens REST: %d", answer.StatusCode)
	}
}

func TestWrongTokensAreBounded(t *testing.T) {
	w := newWorld(t, nil)
	server := w.listening(nil)
	agent := w.agentToken("laptop", gitprovider.TierInvestigate)
	last := 0
	for range 40 {
		last = posted(t, server.URL+remote.Path, `{"claudeops":1}`, showing("cops_wrong")).StatusCode
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("the last one got %d", last)
	}
	if n := len(w.attempts()); n != 20 {
		t.Errorf("%d rows", n)
	}
	_ = opened(t, server, agent) // the right one is let in from the same address
}

func TestHandshakesAreReadStrictly(t *testing.T) {
	w := newWorld(t, nil)
	server, agent := w.listening(nil), w.agentToken("laptop", gitprovider.TierInvestigate)
	for _, body := range []string{
		"", "{}", "null", "[]", `{"claudeops":2}`, `{"claudeops":1,"tier":"3"}`, `{"claudeops":1,"ticket":"x"}`, `{"claudeops":1,"session":"x"}`,
		`{"claudeops":1} {}`, `{"claudeops":1,"tier":2` + strings.Repeat(" ", connect.MaxHello) + `}`,
	} {
		if answer := posted(t, server.URL+remote.Path, body, showing(agent)); answer.StatusCode < 400 || answer.StatusCode >= 500 {
			t.Errorf("%.40q: %s", body, answer.Status)
		}
	}
	if answer := posted(t, server.URL+remote.Path, `{"claudeops":1}`, showing(agent), carrying("Content-Type", "text/plain")); answer.StatusCode != 415 {
		t.Errorf("text: %s", answer.Status)
	}
}

// TestWhatIsSentIsTakenOnceAndInOrder sends by hand what a connector sends, and what it does not.
func TestWhatIsSentIsTakenOnceAndInOrder(t *testing.T) {
	w := newWorld(t, nil)
	said := w.reading()
	server, token := w.listening(nil), w.agentToken("laptop", gitprovider.TierInvestigate)
	other := w.agentToken("desk", gitprovider.TierInvestigate)
	at := opened(t, server, token)
	for i, c := range []struct {
		query, body string
		edits       []edit
		want        int
	}{
		{"?seq=2", "b\n", nil, 409},
		{"", "a\n", nil, 400},
		{"?seq=0", "a\n", nil, 400},
		{"?seq=-1", "a\n", nil, 400},
		{"?seq=1x", "a\n", nil, 400},
		{"?seq=1&seq=2", "a\n", nil, 400},
		{"?seq=1&after=0", "a\n", nil, 400},
		{"?seq=99999999999999999999", "a\n", nil, 400},
		{"?seq=1", "a\n", []edit{carrying("Content-Type", "application/json")}, 415},
		{"?seq=1", "a\n", []edit{carrying("Content-Encoding", "gzip")}, 415},
		{"?seq=1", strings.Repeat("a", remote.MaxChunk+1), nil, 413},
		{"?seq=1", "a\n", []edit{showing(other)}, 404},
		{"?seq=1", "a\n", []edit{showing("cops_wrong")}, 401},
		{"x?seq=1", "a\n", nil, 404},
		{"?seq=1", "one\n", nil, 204},
		{"?seq=1", "again\n", nil, 204},
		{"?seq=3", "b\n", nil, 409},
		{"?seq=2", "tw", nil, 204},
		{"?seq=3", "o\nthr", nil, 204},
		{"?seq=2", "tw", nil, 204},
		{"?seq=4&last=true", "ee", nil, 204},
		{"?seq=5", "four\n", nil, 404}, // it is over
	} {
		answer := posted(t, at+c.query, c.body, append([]edit{showing(token), octets()}, c.edits...)...)
		if answer.StatusCode != c.want {
			text, _ := io.ReadAll(answer.Body)
			t.Errorf("%d, %s %.20q: %s %s", i, c.query, c.body, answer.Status, text)
		}
	}
	for _, want := range []string{"one\n", "two\n", "three"} {
		if got := <-said; got != want {
			t.Errorf("read %q, want %q", got, want)
		}
	}
	foreign := false
	for _, row := range w.attempts() {
		foreign = foreign || strings.Contains(row.Message, "the connection was opened with another token") && row.Code == fault.NotFound
	}
	if !foreign {
		t.Error("a foreign connection is not on the record")
	}
}

func TestARevokedTokenEndsItsConnection(t *testing.T) {
	w := newWorld(t, nil)
	server, token := w.listening(nil), w.agentToken("laptop", gitprovider.TierInvestigate)
	ctx, stop := context.WithCancel(context.Background())
	kept := make(chan struct{})
	go func() { defer close(kept); w.web.Agents.Tokens.Keep(ctx) }()
	defer func() { stop(); <-kept }()
	a := greeted(t, server.URL, token, connect.Lower{})
	if err := w.store.Access.RevokeToken(context.Background(), "id-laptop"); err != nil {
		t.Fatal(err)
	}
	var refused *connect.RefusedError
	if err := <-a.over(); !errors.As(err, &refused) || refused.Code != string(fault.Unauthenticated) {
		t.Errorf("the connector ended with %v", err)
	}
	a.in.Close() //nolint:errcheck,gosec // nobody reads
}

// over is how the connector ended by itself.
func (a *agent) over() <-chan error {
	go func() { _, _ = io.Copy(io.Discard, a.lines) }()
	return a.ended
}

func TestConnectionsOfATokenAreCounted(t *testing.T) {
	w := newWorld(t, nil)
	w.reading()
	server, token := w.listening(nil), w.agentToken("laptop", gitprovider.TierInvestigate)
	var ways []string
	for range 8 {
		ways = append(ways, opened(t, server, token))
	}
	if answer := posted(t, server.URL+remote.Path, `{"claudeops":1}`, showing(token)); answer.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a ninth one: %s", answer.Status)
	}
	deadline := time.Now().Add(time.Minute)
	for len(w.web.Agents.Tokens.Host().Connections()) < 8 && time.Now().Before(deadline) { // they are listed a moment later
		time.Sleep(5 * time.Millisecond)
	}
	if list := w.web.Agents.Tokens.Host().Connections(); len(list) != 8 || list[0].Way != "https" || list[0].Peer != "127.0.0.1" || list[0].Credential != "laptop" {
		t.Errorf("connections %+v", list)
	}
	_ = posted(t, ways[0]+"?seq=1&last=true", "", showing(token), octets())
	deadline = time.Now().Add(time.Minute)
	for len(w.web.Agents.Tokens.Host().Connections()) > 7 && time.Now().Before(deadline) {
		time.Sleep(5 * time.Millisecond)
	}
	for time.Now().Before(deadline) { // its place is free a moment later
		answer := posted(t, server.URL+remote.Path, `{"claudeops":1}`, showing(token))
		if answer.StatusCode == http.StatusOK {
			return
		}
	}
	t.Error("a place that is free is not given again")
}

// TestATokenThatConnectsAgainAndAgainIsRefused connects and leaves: beyond the bound nothing is recorded any more, but for one row.
func TestATokenThatConnectsAgainAndAgainIsRefused(t *testing.T) {
	const bound = 3
	w := newWorld(t, nil)
	w.limits.Messages = bound
	server, token := w.listening(nil), w.agentToken("laptop", gitprovider.TierInvestigate)
	for range bound {
		_ = posted(t, opened(t, server, token)+"?seq=1&last=true", "", showing(token), octets())
	}
	for range 20 {
		answer := posted(t, server.URL+remote.Path, `{"claudeops":1}`, showing(token))
		if answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") == "" {
			t.Fatalf("got %s, to be made again after %q", answer.Status, answer.Header.Get("Retry-After"))
		}
	}
	rows := w.attempts()
	if len(rows) != 1 || rows[0].Code != fault.LimitReached || !strings.Contains(rows[0].Message, "laptop: this token has connected 3 times") {
		t.Errorf("recorded: %+v", rows)
	}
	if other := w.agentToken("desk", gitprovider.TierObserve); opened(t, server, other) == "" {
		t.Error("another token is refused too")
	}
}

// FuzzSend sends anything to a connection: what is read is what was taken, and nothing is a failure of the server.
func FuzzSend(f *testing.F) {
	f.Add("seq=1", "application/octet-stream", "a\n")
	f.Add("seq=1&last=true", "application/octet-stream", "")
	f.Add("seq=%31;last", "application/octet-stream; charset=x", "\x00\xff")
	f.Add("seq=1e0", "", "{}")
	w := newWorld(f, nil)
	w.limits.Messages = 1 << 40 // every input is a connection
	var read strings.Builder
	done := make(chan string)
	w.served = func(_ context.Context, _ door.Rights, c door.Client) error {
		read.Reset()
		_, err := io.Copy(&read, c.In)
		done <- read.String()
		return err
	}
	server, token := w.listening(nil), w.agentToken("laptop", gitprovider.TierInvestigate)
	f.Fuzz(func(t *testing.T, query, kind, body string) {
		at := opened(t, server, token)
		req := httptest.NewRequest(http.MethodPost, at, strings.NewReader(body))
		req.URL.RawQuery = query
		req.Header["Content-Type"] = []string{kind}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Host = "localhost"
		answer := httptest.NewRecorder()
		w.handler.ServeHTTP(answer, req)
		want := ""
		if answer.Code == http.StatusNoContent {
			want = body
		} else if answer.Code >= 500 || answer.Code < 400 {
			t.Errorf("%q %q: %d %s", query, kind, answer.Code, answer.Body)
		}
		for seq := range 2 { // whichever comes next
			_ = posted(t, fmt.Sprintf("%s?seq=%d&last=true", at, seq+1), "", showing(token), octets())
		}
		if got := <-done; got != want {
			t.Errorf("read %q, want %q", got, want)
		}
	})
}
