package transport_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/trust"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// wire carries requests nowhere: it notes each with its credentials, and answers by what is there for its address.
type wire struct {
	mu        sync.Mutex
	seen      []string
	redirects map[string]string
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, strings.TrimSpace(r.URL.Redacted()+" "+r.Header.Get("Authorization")+r.Header.Get("X-Api-Key")+
		r.Header.Get("Referer")))
	rec := httptest.NewRecorder()
	if to := w.redirects[r.URL.Redacted()]; to != "" {
		rec.Header().Set("Location", to)
		rec.WriteHeader(http.StatusFound)
	}
	_, _ = rec.WriteString("body")
	return rec.Result(), nil
}

// hosts are those of these tests: own.example has a credential, other.example none.
func hosts(header string) func(*url.URL) trust.Operator[transport.Host] {
	return func(u *url.URL) trust.Operator[transport.Host] {
		switch u.Hostname() {
		case "own.example", "127.0.0.1":
			return trust.Said(transport.Host{Header: header, Credential: "s3cret", Private: true})
		case "other.example":
			return trust.Said(transport.Host{})
		}
		return trust.Operator[transport.Host]{}
	}
}

func TestAClientAsksNamedHostsAlone(t *testing.T) {
	for _, header := range []string{"Authorization", "X-Api-Key"} {
		for _, c := range []struct {
			name, at  string
			redirects map[string]string
			seen      string
			why       transport.Why
		}{
			{"its own host", "https://own.example/a", nil, "https://own.example/a s3cret", 0},
			{"a host without a credential", "https://other.example/a", nil, "https://other.example/a", 0},
			{"a host that nobody named", "https://evil.example/a", nil, "", transport.NotNamed},
			{"a credential by plain http", "http://own.example/a", nil, "", transport.PlainCredential},
			{"a password by plain http", "http://a:b@other.example/a", nil, "", transport.PlainCredential},
			{"a credential to this machine", "http://127.0.0.1:1/a", nil, "http://127.0.0.1:1/a s3cret", 0},
			{"a redirect within the host", "https://own.example/a?token=1",
				map[string]string{"https://own.example/a?token=1": "/b"},
				"https://own.example/a?token=1 s3cret, https://own.example/b s3cret", 0},
			{"a redirect to another named host", "https://own.example/a",
				map[string]string{"https://own.example/a": "https://other.example/b"},
				"https://own.example/a s3cret, https://other.example/b", 0},
			{"a redirect away and back", "https://own.example/a",
				map[string]string{"https://own.example/a": "https://other.example/b",
					"https://other.example/b": "https://own.example/c"},
				"https://own.example/a s3cret, https://other.example/b, https://own.example/c", 0},
			{"a redirect to another port", "https://own.example/a",
				map[string]string{"https://own.example/a": "https://own.example:8443/b"},
				"https://own.example/a s3cret, https://own.example:8443/b", 0},
			{"a redirect to a host that nobody named", "https://own.example/a",
				map[string]string{"https://own.example/a": "https://evil.example/b"},
				"https://own.example/a s3cret", transport.NotNamed},
			{"a redirect with a password", "https://own.example/a",
				map[string]string{"https://own.example/a": "https://a:b@own.example/b"},
				"https://own.example/a s3cret", transport.NotNamed},
			{"a redirect to plain http", "https://own.example/a",
				map[string]string{"https://own.example/a": "http://own.example/b"},
				"https://own.example/a s3cret", transport.LeavesHTTPS},
			{"redirects in a circle", "https://other.example/a", map[string]string{"https://other.example/a": "/a"},
				strings.Repeat("https://other.example/a, ", 2) + "https://other.example/a", transport.TooManyRedirects},
		} {
			over := &wire{redirects: c.redirects}
			client := transport.NewClient(transport.ClientOptions{Over: over, Host: hosts(header), Redirects: 2, MaxBody: 100})
			answer, err := client.Do(t.Context(), transport.Request{Method: http.MethodGet, URL: mustURL(t, c.at)})
			var refused *transport.RefusedError
			if got := strings.Join(over.seen, ", "); got != c.seen || (c.why == 0) != (err == nil) || c.why != 0 &&
				(!errors.As(err, &refused) || refused.Why != c.why) {
				t.Errorf("%s, %s: asked %s; %v; want %s", header, c.name, got, err, c.seen)
			}
			if c.why == 0 && string(answer.Body) != "body" {
				t.Errorf("%s, %s: %q", header, c.name, answer.Body)
			}
		}
	}
}

func TestAClientWithoutRedirectsAnswersWithThem(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		for _, redirects := range []int{0, 5} {
			over := &wire{redirects: map[string]string{"https://own.example/a": "https://own.example/b"}}
			client := transport.NewClient(transport.ClientOptions{Over: over, Host: hosts("X-Api-Key"), Redirects: redirects})
			answer, err := client.Do(t.Context(), transport.Request{Method: method, URL: mustURL(t, "https://own.example/a"),
				Body: []byte("x")})
			if follows := method == http.MethodGet && redirects > 0; err != nil ||
				(answer.Status == http.StatusFound) == follows || answer.Body != nil {
				t.Errorf("%s, %d: %v, %v", method, redirects, answer, err)
			}
		}
	}
}

func TestAnswersAreBounded(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/large":
			_, _ = w.Write(make([]byte, 11))
		case "/fits":
			_, _ = w.Write(make([]byte, 10))
		case "/missing":
			http.Error(w, strings.Repeat("no ", 10), http.StatusNotFound)
		default:
			<-r.Context().Done()
		}
	}))
	defer srv.Close()
	ask := func(path string, limit time.Duration) (*transport.Answer, error) {
		client := transport.NewClient(transport.ClientOptions{MaxBody: 10, Timeout: limit,
			Host: transport.Only(mustURL(t, srv.URL), trust.Said(transport.Host{Private: true}))})
		return client.Do(t.Context(), transport.Request{Method: http.MethodGet, URL: mustURL(t, srv.URL+path+"?s3cret")})
	}
	if _, err := ask("/large", 0); !errors.Is(err, transport.ErrBodyTooLarge) {
		t.Errorf("a large answer: %v", err)
	}
	if answer, err := ask("/fits", 0); err != nil || len(answer.Body) != 10 {
		t.Errorf("an answer that fits: %v, %v", answer, err)
	}
	if answer, err := ask("/missing", 0); err != nil || answer.Status != http.StatusNotFound || answer.Body != nil {
		t.Errorf("a refusal: %v, %v", answer, err)
	}
	_, err := ask("/hangs", 50*time.Millisecond)
	var timeout interface{ Timeout() bool }
	if !errors.As(err, &timeout) || !timeout.Timeout() || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("no answer: %v", err)
	}
}

// A connection to a private address that was made for one who admits that is not for one who does not: both mean the
// same host.
func TestAPrivateAddressIsReachedByThoseAloneWhoAdmitIt(t *testing.T) {
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer srv.Close()
	pool := transport.NewPool(nil)
	defer pool.CloseIdleConnections()
	for i, private := range []bool{false, true, false, true} {
		client := transport.NewClient(transport.ClientOptions{Over: pool,
			Host: transport.Only(mustURL(t, srv.URL), trust.Said(transport.Host{Private: private}))})
		_, err := client.Do(t.Context(), transport.Request{Method: http.MethodGet, URL: mustURL(t, srv.URL)})
		var refused *transport.RefusedError
		if private != (err == nil) || !private && (!errors.As(err, &refused) || refused.Why != transport.PrivateAddress) {
			t.Errorf("%d, private %t: %v", i, private, err)
		}
	}
	if asked != 2 {
		t.Errorf("the server was asked %d times", asked)
	}
}

func TestAPublicHostBehindAProxyIsForTheProxy(t *testing.T) {
	p := newProxy(t, 0)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "body") }))
	defer srv.Close()
	pool := transport.NewPool(http.ProxyURL(mustURL(t, p.srv.URL)))
	defer pool.CloseIdleConnections()
	client := transport.NewClient(transport.ClientOptions{Over: pool,
		Host: transport.Only(mustURL(t, srv.URL), trust.Said(transport.Host{})), MaxBody: 10})
	answer, err := client.Do(t.Context(), transport.Request{Method: http.MethodGet, URL: mustURL(t, srv.URL)})
	if err != nil || string(answer.Body) != "body" || len(p.asked) != 1 {
		t.Errorf("%v, %v; the proxy was asked for %v", answer, err, p.asked)
	}
}
