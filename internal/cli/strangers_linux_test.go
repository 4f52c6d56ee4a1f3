package cli_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
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
	s.began = time.Now()
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
		for range 300 {
			if status := s.status(http.MethodGet, address+"/oauth/authorize?"+s.wantsTokens(), "",
				http.Header{"Cookie": {viewer}}); status != http.StatusSeeOther {
				t.Fatalf("a viewer's wrong request: %d", status)
			}
		}
	})
	s.strangersRows()
}

// perMinute bounds what may have come since the test began, of what each minute has n of. The server's minutes begin
// with the first thing that is counted in them.
func (s *signedInWorld) perMinute(n int) int { return n * (1 + int(time.Since(s.began)/time.Minute)) }

// strangersRows holds what the audit has of strangers. Of each kind of refusal a minute has two rows: the first one,
// and the number of the others, which comes when the minute is over, whatever is asked by then.
func (s *signedInWorld) strangersRows() {
	s.Helper()
	rows := map[string]int{}
	for _, row := range s.rowsOf("") {
		if row["outcome"] == "refused" {
			rows[fmt.Sprintf("%v by %v", row["action"], row["caller"])]++
		}
	}
	delete(rows, "oauth.refuse by unknown client") // where the address may ask for something again
	for kind, each := range map[string]int{"connect by connector": 60, "sign-in by company": 2 * 2,
		"oauth.refuse by A program": 2, "oauth.refuse by company:bob": 2} {
		if got := rows[kind]; got == 0 || got > s.perMinute(each) {
			s.Errorf("%d rows of %s", got, kind)
		}
		delete(rows, kind)
	}
	if len(rows) > 0 {
		s.Errorf("the audit has %v as well", rows)
	}
	if rows := s.rowsOf(""); len(rows) > s.perMinute(150) {
		s.Errorf("the audit has %d rows", len(rows))
	}
}

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
	refused, last := 0, ""
	for range 60 {
		status, text := s.asked(from(2), http.MethodPost, "/sign-in/logged-out/company",
			url.Values{"logout_token": {s.provider.LogoutToken("ann", nil)}}.Encode(), formHeaders())
		if status == http.StatusTooManyRequests {
			refused, last = refused+1, text
		} else if status != http.StatusBadRequest {
			s.Errorf("a wrong logout: %d %s", status, text)
		}
	}
	if met := 60 - refused; met < 10 || met > s.perMinute(10) || !strings.Contains(last, "from this address") {
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
	refused, last := 0, ""
	for range 60 {
		status, text := s.asked(from(3), http.MethodGet, "/sign-in/callback/company?code=a&state=s", "",
			http.Header{"Cookie": {made}})
		if status == http.StatusTooManyRequests {
			refused, last = refused+1, text
		} else if status != http.StatusUnauthorized {
			s.Errorf("a made-up callback: %d %s", status, text)
		}
	}
	if met := 60 - refused; met < 10 || met > s.perMinute(10) || !strings.Contains(last, "from this address") {
		s.Errorf("%d callbacks had to wait: %s", refused, last)
	}
}

// strangersRefresh has eleven addresses send wrong requests to the token endpoint while ann's program refreshes, at its
// own address and at one of theirs.
func (s *signedInWorld) strangersRefresh() {
	s.Helper()
	const addresses = 11
	told := false
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
		told = told || strings.Contains(text, "from this address")
		if i%100 == 99 {
			if got := s.refreshing(); got != http.StatusOK {
				s.Fatalf("a good refresh after %d wrong ones: %d", i+1, got)
			}
		}
	}
	if !told {
		s.Error("no address had to wait")
	}
	status, text := s.asked(clients[0], http.MethodPost, "/oauth/token", tokenForm(s.client, s.refresh), formHeaders())
	if status != http.StatusOK {
		s.Fatalf("a good refresh at a stranger's address: %d %s", status, text)
	}
	s.refresh = decode[struct {
		Refresh string `json:"refresh_token"`
	}](s, text).Refresh
}

func (s *signedInWorld) strangersRegister() {
	s.Helper()
	register := func(last int) int {
		status, _ := s.asked(from(last), http.MethodPost, "/oauth/register", `{"redirect_uris":["https://a.example/"]}`,
			http.Header{"Content-Type": {"application/json"}})
		return status
	}
	made := len(s.rowsOf("oauth.register"))
	for i := range 90 {
		if register(2+i%9) == http.StatusCreated {
			made++
		}
	}
	if made > s.perMinute(60) {
		s.Errorf("%d programs registered", made)
	}
	if got := register(50); got != http.StatusCreated {
		s.Errorf("from elsewhere: %d", got)
	}
}

// strangersAtOtherDoors try wrong credentials where others have good ones.
func (s *signedInWorld) strangersAtOtherDoors() {
	s.Helper()
	wrong := s.bearer("cops_" + strings.Repeat("x", 43))
	for name, door := range map[string]struct {
		method, path, body string
		headers            http.Header
		good               func() bool
	}{
		"hooks": {http.MethodPost, "/hooks/run/alerts", "{}", wrong, func() bool { return s.hooks() == http.StatusOK }},
		"webhooks": {http.MethodPost, "/webhooks/gitea", "{}", http.Header{"Content-Type": {"application/json"},
			"X-Gitea-Delivery": {"1"}, "X-Gitea-Event": {"ping"}, "X-Gitea-Signature": {strings.Repeat("0", 64)}},
			func() bool { return s.delivers(s.address, "a-secret-of-the-webhooks") < http.StatusBadRequest }},
		"REST": {http.MethodPost, "/api/v1/prs", "{}", wrong,
			func() bool { return s.reads(s.address, s.seed().token) == http.StatusOK }},
		"MCP": {http.MethodPost, "/mcp", "{}", wrong, func() bool { return s.listsAs() == "" }},
		"revocation": {http.MethodPost, "/oauth/revoke", "token=x", formHeaders(),
			func() bool { return s.refreshing() == http.StatusOK }},
		"introspection, which there is not": {http.MethodPost, "/oauth/introspect", "token=x", formHeaders(),
			func() bool { return s.refreshing() == http.StatusOK }},
		"a program's document": {http.MethodGet, "/oauth/authorize?client_id=https%3A%2F%2Fa.example%2Fc.json", "",
			http.Header{}, func() bool { return s.consent() == http.StatusSeeOther }},
	} {
		for range 120 {
			if status, text := s.asked(from(4), door.method, door.path, door.body, door.headers.Clone()); status >= 500 {
				s.Fatalf("%s: %d %s", name, status, text)
			}
		}
		if !door.good() {
			s.Errorf("%s: who has a good credential is not let in", name)
		}
	}
}
