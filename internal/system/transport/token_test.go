package transport_test

import (
	"context"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
)

func TestTheTokenGoesToItsOwnOriginOnly(t *testing.T) {
	other := newBed(t, hello)
	for scheme, want := range map[string]string{"": "Bearer " + token, "token": "token " + token} {
		b := newBed(t, hello, func(o *transport.Options) { o.Scheme = scheme })
		for _, to := range []*bed{b, other} {
			req, _ := http.NewRequestWithContext(t.Context(), "GET", to.srv.URL, nil)
			req.SetBasicAuth("somebody", "else")
			req.Host = "elsewhere.test"
			got := b.send(req)
			if got.status != 200 || strings.Contains(got.body, "elsewhere.test") {
				t.Fatalf("%v, %s", got.fault, got.body)
			}
			if req.Header.Get("Authorization") == "Bearer "+token {
				t.Error("the caller's request was changed")
			}
		}
		seen := b.Requests()[0]
		if got := seen.Header.Get("Authorization"); got != want || seen.Header.Get("User-Agent") != "claudeops-test" {
			t.Errorf("own origin got %q", seen.Header)
		}
	}
	for _, r := range other.Requests() {
		if got, ok := r.Header["Authorization"]; ok {
			t.Errorf("another origin got %q", got)
		}
	}
}

func TestAnOriginIsSchemeHostAndPort(t *testing.T) {
	b := newBed(t, hello)
	b.connect(t, "http://forge.test/git", func(o *transport.Options) {
		o.Network.AllowPlainHTTP = true
		o.Network.Proxy = http.ProxyURL(mustURL(t, b.srv.URL)) // stands for every host
	})
	for address, own := range map[string]bool{
		"http://forge.test/git/x": true, "http://forge.test/other": true, "http://forge.test:80/": true,
		"http://FORGE.test/": true, "http://joe@forge.test/": true,
		"http://forge.test:8080/": false, "http://forge.test:443/": false, "http://forge.test.evil.test/": false,
		"http://evil.test/forge.test": false, "http://forge.test@evil.test/": false, "http://xforge.test/": false,
	} {
		b.Forget()
		req, _ := http.NewRequestWithContext(t.Context(), "GET", address, nil)
		if got := b.send(req); got.status != 200 {
			t.Fatal(got.fault)
		}
		if _, got := b.Requests()[0].Header["Authorization"]; got != own {
			t.Errorf("%s: token sent: %v", address, got)
		}
	}
}

func TestAnAnonymousTransportSendsNoAuthorization(t *testing.T) {
	b := newBed(t, hello, func(o *transport.Options) { o.Token = "" })
	req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://joe:pass@"+b.srv.Listener.Addr().String(), nil)
	if got := b.send(req); got.status != 200 {
		t.Fatal(got.fault)
	}
	if got, ok := b.Requests()[0].Header["Authorization"]; ok {
		t.Errorf("sent %q", got)
	}
}

func TestAnAnswerDoesNotCarryTheTokenBack(t *testing.T) {
	b := newBed(t, hello)
	req, _ := http.NewRequestWithContext(t.Context(), "GET", b.srv.URL, nil)
	resp, err := b.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, ok := resp.Request.Header["Authorization"]; ok {
		t.Errorf("resp.Request holds %q", got)
	}
	first, _ := io.ReadAll(resp.Body)
	if _, err := resp.Body.(io.Seeker).Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if again, _ := io.ReadAll(resp.Body); len(first) == 0 || string(again) != string(first) {
		t.Errorf("read %q and then %q", first, again)
	}
}

func TestRedirects(t *testing.T) {
	other := newBed(t, hello)
	_, port, _ := net.SplitHostPort(other.srv.Listener.Addr().String())
	tests := []struct {
		name     string
		method   string
		status   int
		target   string // "" is the own origin
		want     int
		code     fault.Code
		message  string
		requests int
	}{
		{"a read follows within its origin", "GET", 301, "", 200, "", "", 2},
		{"a head follows within its origin", "HEAD", 302, "", 200, "", "", 2},
		{"a query follows a 307 within its origin", "query", 307, "", 200, "", "", 2},
		{"a query does not become a GET", "query", 302, "", 302, "", "", 1},
		{"a write is not repeated after 301", "POST", 301, "", 301, "", "", 1},
		{"a write is not repeated after 307", "POST", 307, "", 307, "", "", 1},
		{"a write is not repeated after 308 to another port", "PUT", 308, other.srv.URL, 308, "", "", 1},
		{"a delete is not repeated after 301", "DELETE", 301, "", 301, "", "", 1},
		{"a read does not follow to another port", "GET", 302, other.srv.URL, 0, fault.ProviderDisabled, other.srv.URL, 1},
		{"a query does not follow to another port", "query", 308, other.srv.URL, 0, fault.ProviderDisabled, other.srv.URL, 1},
		{
			"a read does not follow to another name", "GET", 302, "http://localhost:" + port, 0, fault.ProviderDisabled,
			"http://localhost:" + port, 1,
		},
		{
			"the token is not shown where it is asked for", "GET", 302, "http://x:" + url.QueryEscape(token) + "@localhost:" +
				port,
			0, fault.ProviderDisabled, "localhost:" + port, 1,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBed(t, hello)
			b.Plan(nil, httpfault.Fault{Kind: httpfault.Redirect, Status: tt.status, Target: tt.target})
			ctx, method := t.Context(), tt.method
			if method == "query" {
				ctx, method = transport.Safe(ctx), "POST"
			}
			got := b.do(ctx, method, "/repos/x?page=2")
			if got.status != tt.want || got.code() != tt.code || len(b.Requests()) != tt.requests {
				t.Errorf("got %d %v after %d requests", got.status, got.fault, len(b.Requests()))
			}
			if got.fault != nil {
				if !strings.Contains(got.fault.Message, tt.message) || !strings.Contains(got.fault.Message, "GITHUB_API_URL") {
					t.Errorf("message %q", got.fault.Message)
				}
				free(t, got.fault.Message)
			}
			for _, r := range b.Requests() {
				if r.Header.Get("Authorization") != "Bearer "+token {
					t.Errorf("own origin got %q", r.Header)
				}
			}
		})
	}
	if n := len(other.Requests()); n != 0 {
		t.Errorf("the other server was asked %d times", n)
	}
}

func TestRedirectsInACircleEnd(t *testing.T) {
	b := newBed(t, hello)
	b.PlanFrom(1, httpfault.Fault{Kind: httpfault.Redirect})
	if got := b.do(t.Context(), "GET", "/"); got.code() != fault.UpstreamError || len(b.Requests()) != 6 {
		t.Errorf("got %v after %d requests", got.fault, len(b.Requests()))
	}
}

// tlsBed is a bed that speaks TLS by a certificate of its own authority; trust says whether the transport knows it.
func tlsBed(t *testing.T, trust bool, change ...func(*transport.Options)) *bed {
	t.Helper()
	b := &bed{Handler: httpfault.New(http.HandlerFunc(hello)), log: &buffer{}}
	b.srv = httptest.NewUnstartedServer(b.Handler)
	b.srv.EnableHTTP2 = true
	b.srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	b.srv.StartTLS()
	t.Cleanup(b.srv.Close)
	pool := x509.NewCertPool()
	if trust {
		pool.AddCert(b.srv.Certificate())
	}
	b.connect(t, b.srv.URL, append(change, func(o *transport.Options) { o.Network.RootCAs = pool })...)
	return b
}

func TestACertificateIsTrustedByItsAuthorityOnly(t *testing.T) {
	known := tlsBed(t, true)
	if got := known.do(t.Context(), "POST", "/"); got.status != 200 || got.proto != 2 {
		t.Fatalf("HTTP/%d, %v", got.proto, got.fault)
	}
	unknown := tlsBed(t, false)
	got := unknown.do(t.Context(), "GET", "/")
	if got.code() != fault.UpstreamError || !strings.Contains(got.fault.Message, "certificate") ||
		len(unknown.slept) != 0 {
		t.Errorf("got %v after %d waits", got.fault, len(unknown.slept))
	}
	if n := len(unknown.Requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestFaultsOfHTTP2AreSeenToo(t *testing.T) {
	b := tlsBed(t, true)
	for _, kind := range []httpfault.Kind{httpfault.ResetBefore, httpfault.Truncated} {
		b.Plan(nil, httpfault.Fault{Kind: kind})
		if got := b.do(t.Context(), "GET", "/"); got.status != 200 {
			t.Error(got.fault)
		}
		b.Forget()
		b.Plan(nil, httpfault.Fault{Kind: kind})
		if got := b.do(t.Context(), "POST", "/"); got.code() != fault.UpstreamError || len(b.Requests()) != 1 {
			t.Errorf("got %d %v after %d requests", got.status, got.fault, len(b.Requests()))
		}
	}
}

func TestNoFallToPlainHTTP(t *testing.T) {
	plain := newBed(t, hello)
	b := tlsBed(t, true)
	b.Plan(nil, httpfault.Fault{Kind: httpfault.Redirect, Target: plain.srv.URL})
	if got := b.do(t.Context(), "GET", "/"); got.code() != fault.ProviderDisabled || len(plain.Requests()) != 0 {
		t.Errorf("got %v, %d requests in the clear", got.fault, len(plain.Requests()))
	}
	b.connect(t, strings.Replace(plain.srv.URL, "http:", "https:", 1))
	req, _ := http.NewRequestWithContext(t.Context(), "GET", strings.Replace(plain.srv.URL, "http:", "https:", 1), nil)
	got := b.send(req)
	if got.code() != fault.UpstreamError || !strings.Contains(got.fault.Message, "does not speak https") {
		t.Errorf("got %v", got.fault)
	}
}

// vault is a credential that a test controls.
type vault struct {
	mu      sync.Mutex
	tokens  []string // the one in use, and those after it
	err     error
	uses    []transport.Use
	refused []string
}

func (v *vault) Token(_ context.Context, use transport.Use) (string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.uses = append(v.uses, use)
	return v.tokens[0], v.err
}

func (v *vault) Refused(_ transport.Use, token string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.refused = append(v.refused, token)
	if len(v.tokens) > 1 {
		v.tokens = v.tokens[1:]
		return true
	}
	return false
}

func withVault(v *vault) func(*transport.Options) {
	return func(o *transport.Options) { o.Token, o.Credential = "", v }
}

// guarded answers those alone that carry the token.
func guarded(good string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+good {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		hello(w, r)
	}
}

func TestARefusedTokenIsReplacedOnceAlsoForWrites(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		for name, tt := range map[string]struct {
			tokens   []string
			requests int
			status   int
		}{
			"a good one":             {[]string{"good-token-1"}, 1, 200},
			"then a good one":        {[]string{"old-token-1", "good-token-1"}, 2, 200},
			"then another bad one":   {[]string{"old-token-1", "old-token-2", "good-token-1"}, 2, 401},
			"and there is no other":  {[]string{"old-token-1"}, 1, 401},
			"also without any retry": {[]string{"old-token-1", "good-token-1"}, 2, 200},
		} {
			v := &vault{tokens: tt.tokens}
			b := newBed(t, guarded("good-token-1"), withVault(v), func(o *transport.Options) { o.Limits.Retries = -1 })
			got := b.do(t.Context(), method, "/x")
			if got.status != tt.status || len(b.Requests()) != tt.requests {
				t.Errorf("%s, %s: status %d after %d requests: %v", method, name, got.status, len(b.Requests()), got.fault)
			}
			for _, token := range tt.tokens[:min(2, len(tt.tokens))] {
				if strings.Contains(b.Scrub("the token "+token), token) && tt.requests == 2 {
					t.Errorf("%s, %s: a token that was used is not redacted", method, name)
				}
			}
		}
	}
}

func TestACredentialIsToldWhatARequestIsFor(t *testing.T) {
	v := &vault{tokens: []string{"good-token-1"}}
	b := newBed(t, hello, withVault(v))
	use := transport.Use{Owner: "octo", Repo: "cluster"}
	b.do(transport.For(t.Context(), use), "GET", "/")
	b.do(transport.ForWrite(transport.For(t.Context(), use)), "POST", "/")
	b.do(t.Context(), "GET", "/")
	write := use
	write.Write = true
	if len(v.uses) != 3 || v.uses[0] != use || v.uses[1] != write || v.uses[2] != (transport.Use{}) {
		t.Errorf("it was told %+v", v.uses)
	}
}

func TestAnotherOriginIsNoneOfTheCredentialsBusiness(t *testing.T) {
	v := &vault{tokens: []string{"good-token-1", "good-token-2"}}
	other := newBed(t, guarded("nobody's"))
	b := newBed(t, hello, withVault(v))
	req, _ := http.NewRequestWithContext(t.Context(), "GET", other.srv.URL, nil)
	if got := b.send(req); got.status != 401 || len(v.uses) != 0 || len(v.refused) != 0 || len(other.Requests()) != 1 {
		t.Errorf("status %d; it was asked %d times and told of %v", got.status, len(v.uses), v.refused)
	}
}

func TestWithoutATokenNothingIsSent(t *testing.T) {
	v := &vault{tokens: []string{""}, err: fault.New(fault.NotFound, "nobody gives one")}
	b := newBed(t, hello, withVault(v))
	if got := b.do(t.Context(), "GET", "/"); got.code() != fault.NotFound || len(b.Requests()) != 0 {
		t.Errorf("got %v after %d requests", got.fault, len(b.Requests()))
	}
	v.err, v.tokens = nil, []string{"two\nlines"}
	if got := b.do(t.Context(), "GET", "/"); got.code() != fault.ProviderDisabled || len(b.Requests()) != 0 {
		t.Errorf("got %v after %d requests", got.fault, len(b.Requests()))
	}
}

// changing is a source whose value a test replaces without a trace, as a file may be.
type changing struct{ value, next string }

func (c *changing) Value() string { return c.value }

func (c *changing) Reread() string {
	c.value = c.next
	return c.value
}

func TestATokenFromASourceIsReadAgainWhenItIsRefused(t *testing.T) {
	source := &changing{"old-token-1", "old-token-1"}
	b := newBed(t, guarded("good-token-1"),
		func(o *transport.Options) { o.Token, o.Credential = "", transport.Replaceable(source) })
	if got := b.do(t.Context(), "POST", "/"); got.status != 401 || len(b.Requests()) != 1 {
		t.Errorf("unchanged: status %d after %d requests", got.status, len(b.Requests()))
	}
	source.next = "good-token-1"
	if got := b.do(t.Context(), "POST", "/"); got.status != 200 {
		t.Errorf("changed: status %d", got.status)
	}
}
