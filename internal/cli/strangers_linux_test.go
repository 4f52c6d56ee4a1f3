package cli_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakeoidc"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// from is a client at an address of loopback of its own: Linux has all of 127.0.0.0/8.
func from(last int) *http.Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(last))}}
	return &http.Client{
		Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, address)
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// asked is what somebody who is nobody gets.
func (s *signedInWorld) asked(by *http.Client, method, path, body string, headers http.Header) (status int,
	text string) {
	s.Helper()
	head, text := exchange(s, by, method, s.address+path, body, headers)
	return head.StatusCode, text
}

// Whatever strangers ask a running server, its provider is asked nothing for them, who has a good credential is
// answered, also at their address, and the audit does not grow by what they do.
func TestStrangersCostARunningServerLittle(t *testing.T) {
	t.Parallel()
	s := newSignedInWorld(t)
	s.put("policy.yaml", rolesOfTest+hooksOfTest)
	began := time.Now()
	s.serving(func(address string) {
		s.address = address
		s.arrive()
		viewer := s.viewer()
		keys, tokens := s.provider.Requests("/keys"), s.provider.Requests("/token")
		s.strangersLogOut()
		s.strangersComeBack()
		if got := s.provider.Requests("/keys"); got > keys+1 {
			t.Errorf("the provider was asked for its keys %d times", got-keys)
		}
		if got := s.provider.Requests("/token"); got != tokens {
			t.Errorf("the provider was asked for tokens %d times", got-tokens)
		}
		s.strangersRefresh()
		s.strangersRegister()
		s.strangersAtOtherDoors()
		before, asking := len(s.rowsOf("oauth.refuse")), time.Now()
		for range 300 {
			if status := s.status(http.MethodGet, address+"/oauth/authorize?"+s.wantsTokens(), "",
				http.Header{"Cookie": {viewer}}); status != http.StatusSeeOther {
				t.Fatalf("a viewer's wrong request: %d", status)
			}
		}
		if got := len(s.rowsOf("oauth.refuse")) - before; got > perMinute(2, asking) {
			t.Errorf("a viewer's wrong requests have %d rows", got)
		}
	})
	if rows := s.rowsOf(""); len(rows) > perMinute(150, began) {
		t.Errorf("the audit has %d rows", len(rows))
	}
}

// perMinute is what may have come since then, of what each minute has n of.
func perMinute(n int, since time.Time) int { return n * (1 + int(time.Since(since)/time.Minute)) }

// wantsTokens is what a program asks for that is not given.
func (s *signedInWorld) wantsTokens() string {
	q := s.wanted()
	q.Set("response_type", "token")
	return q.Encode()
}

func (s *signedInWorld) strangersLogOut() {
	s.Helper()
	s.provider.Does(fakeoidc.Wrong{Key: true})
	defer s.provider.Does(fakeoidc.Wrong{})
	refused, last, began := 0, "", time.Now()
	for range 60 {
		status, text := s.asked(from(2), http.MethodPost, "/sign-in/logged-out/company",
			url.Values{"logout_token": {s.provider.LogoutToken("ann", nil)}}.Encode(), formHeaders())
		if status == http.StatusTooManyRequests {
			refused, last = refused+1, text
		} else if status != http.StatusBadRequest {
			s.Errorf("a wrong logout: %d %s", status, text)
		}
	}
	if met := 60 - refused; met < 10 || met > perMinute(10, began) || !strings.Contains(last, "from this address") {
		s.Errorf("%d logouts had to wait: %s", refused, last)
	}
	if s.reading() != http.StatusOK {
		s.Error("a wrong logout has ended ann's login")
	}
}

func (s *signedInWorld) strangersComeBack() {
	s.Helper()
	flow := must.Get(json.Marshal(map[string]any{"provider": "company", "next": "/",
		"until": time.Now().Add(time.Hour).Unix(),
		"flow":  map[string]string{"state": "s", "nonce": "n", "verifier": strings.Repeat("v", 43)}}))(s)
	made := "claudeops_sign_in=" + base64.RawURLEncoding.EncodeToString(flow)
	refused, last, began := 0, "", time.Now()
	for range 60 {
		status, text := s.asked(from(3), http.MethodGet, "/sign-in/callback/company?code=a&state=s", "",
			http.Header{"Cookie": {made}})
		if status == http.StatusTooManyRequests {
			refused, last = refused+1, text
		} else if status != http.StatusUnauthorized {
			s.Errorf("a made-up callback: %d %s", status, text)
		}
	}
	if met := 60 - refused; met < 10 || met > perMinute(10, began) || !strings.Contains(last, "from this address") {
		s.Errorf("%d callbacks had to wait: %s", refused, last)
	}
}

// strangersRefresh has eleven addresses send wrong requests to the token endpoint while ann's program refreshes, at its
// own address and at one of theirs.
func (s *signedInWorld) strangersRefresh() {
	s.Helper()
	const addresses = 11
	rows, last, began := len(s.rowsOf("oauth.refuse")), "", time.Now()
	clients := make([]*http.Client, addresses)
	for i := range clients {
		clients[i] = from(2 + i)
	}
	for i := range 1320 {
		status, text := s.asked(clients[i%addresses], http.MethodPost, "/oauth/token", tokenForm(s.client, "x"),
			formHeaders())
		if status != http.StatusBadRequest && status != http.StatusTooManyRequests {
			s.Fatalf("%d %s", status, text)
		}
		last = text
		if i%100 == 99 {
			if got := s.refreshing(); got != http.StatusOK {
				s.Fatalf("a good refresh after %d wrong ones: %d", i+1, got)
			}
		}
	}
	if !strings.Contains(last, "from this address") {
		s.Errorf("the last one reads %s", last)
	}
	status, text := s.asked(clients[0], http.MethodPost, "/oauth/token", tokenForm(s.client, s.refresh), formHeaders())
	if status != http.StatusOK {
		s.Fatalf("a good refresh at a stranger's address: %d %s", status, text)
	}
	s.refresh = decode[struct {
		Refresh string `json:"refresh_token"`
	}](s, text).Refresh
	if got := len(s.rowsOf("oauth.refuse")) - rows; got > perMinute(2, began) {
		s.Errorf("%d rows", got)
	}
}

func (s *signedInWorld) strangersRegister() {
	s.Helper()
	register := func(last int) int {
		status, _ := s.asked(from(last), http.MethodPost, "/oauth/register", `{"redirect_uris":["https://a.example/"]}`,
			http.Header{"Content-Type": {"application/json"}})
		return status
	}
	made, began := 0, time.Now()
	for i := range 90 {
		if register(2+i%9) == http.StatusCreated {
			made++
		}
	}
	if made > perMinute(60, began) {
		s.Errorf("%d programs registered", made)
	}
	if got := register(50); got != http.StatusCreated {
		s.Errorf("from elsewhere: %d", got)
	}
}

// strangersAtOtherDoors try wrong credentials where others have good ones. What is recorded of connections is counted
// for all doors together, since it is written behind the answers.
func (s *signedInWorld) strangersAtOtherDoors() {
	s.Helper()
	began, connects := time.Now(), len(s.rowsOf("connect"))
	wrong := s.bearer("cops_" + strings.Repeat("x", 43))
	for name, door := range map[string]struct {
		method, path, body string
		headers            http.Header
		good               func() bool
		rows               int
	}{
		"hooks": {http.MethodPost, "/hooks/run/alerts", "{}", wrong, func() bool { return s.hooks() == http.StatusOK }, 0},
		"webhooks": {http.MethodPost, "/webhooks/gitea", "{}", http.Header{"Content-Type": {"application/json"},
			"X-Gitea-Delivery": {"1"}, "X-Gitea-Event": {"ping"}, "X-Gitea-Signature": {strings.Repeat("0", 64)}},
			func() bool { return s.delivers(s.address, "a-secret-of-the-webhooks") < http.StatusBadRequest }, 0},
		"REST": {http.MethodPost, "/api/v1/prs", "{}", wrong,
			func() bool { return s.reads(s.address, s.seed().token) == http.StatusOK }, 0},
		"MCP": {http.MethodPost, "/mcp", "{}", wrong, func() bool { return s.listsAs() == "" }, 0},
		"revocation": {http.MethodPost, "/oauth/revoke", "token=x", formHeaders(),
			func() bool { return s.refreshing() == http.StatusOK }, 2},
		"introspection, which there is not": {http.MethodPost, "/oauth/introspect", "token=x", formHeaders(),
			func() bool { return s.refreshing() == http.StatusOK }, 0},
		"a program's document": {http.MethodGet, "/oauth/authorize?client_id=https%3A%2F%2Fa.example%2Fc.json", "",
			http.Header{}, func() bool { return s.consent() == http.StatusSeeOther }, 0},
	} {
		before, asking := len(s.rowsOf(""))-len(s.rowsOf("connect")), time.Now()
		for range 120 {
			if status, text := s.asked(from(4), door.method, door.path, door.body, door.headers.Clone()); status >= 500 {
				s.Fatalf("%s: %d %s", name, status, text)
			}
		}
		if got := len(s.rowsOf("")) - len(s.rowsOf("connect")) - before; got > perMinute(door.rows, asking) {
			s.Errorf("%s: strangers have %d rows", name, got)
		}
		if !door.good() {
			s.Errorf("%s: who has a good credential is not let in", name)
		}
	}
	if got := len(s.rowsOf("connect")) - connects; got > perMinute(60, began) {
		s.Errorf("%d refused connections are recorded", got)
	}
}
