package transport_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/trust"
	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
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

// proxy tunnels and forwards, and remembers what it was asked for in the clear.
type proxy struct {
	srv    *httptest.Server
	refuse int // the status of refusals; 0: none
	mu     sync.Mutex
	asked  []string      // method and target
	header []http.Header // as the proxy saw them
}

func newProxy(t *testing.T, refuse int) *proxy {
	t.Helper()
	p := &proxy{refuse: refuse}
	p.srv = httptest.NewServer(p)
	t.Cleanup(p.srv.Close)
	return p
}

func (p *proxy) use(t *testing.T) func(*transport.Options) {
	return func(o *transport.Options) { o.Network.Proxy = http.ProxyURL(mustURL(t, p.srv.URL)) }
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, r.Method+" "+r.RequestURI)
	p.header = append(p.header, r.Header.Clone())
	p.mu.Unlock()
	switch {
	case p.refuse != 0:
		w.WriteHeader(p.refuse)
	case r.Method == http.MethodConnect:
		p.tunnel(w, r)
	default:
		p.forward(w, r)
	}
}

func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	there, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", r.Host)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	here, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = there.Close()
		return
	}
	_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
	pipe := func(to, from net.Conn) { _, _ = io.Copy(to, from); _ = to.Close(); _ = from.Close() }
	go pipe(there, here)
	go pipe(here, there)
}

func (p *proxy) forward(w http.ResponseWriter, r *http.Request) {
	out := r.Clone(context.WithoutCancel(r.Context()))
	out.RequestURI = ""
	resp, err := http.DefaultTransport.RoundTrip(out)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, resp.Body)
}

func TestRequestsGoThroughTheProxy(t *testing.T) {
	t.Run("by a tunnel that does not see the token", func(t *testing.T) {
		p := newProxy(t, 0)
		b := tlsBed(t, true, p.use(t))
		if got := b.do(t.Context(), "POST", "/x"); got.status != 200 {
			t.Fatal(got.fault)
		}
		if len(p.asked) != 1 || p.asked[0] != "CONNECT "+b.srv.Listener.Addr().String() {
			t.Errorf("the proxy was asked %q", p.asked)
		}
		if got, ok := p.header[0]["Authorization"]; ok {
			t.Errorf("the proxy saw %q", got)
		}
		if got := b.Requests()[0].Header.Get("Authorization"); got != "Bearer "+token {
			t.Errorf("the forge got %q", got)
		}
	})
	t.Run("in the clear for plain http", func(t *testing.T) {
		p := newProxy(t, 0)
		b := newBed(t, hello, p.use(t))
		if got := b.do(t.Context(), "GET", "/x"); got.status != 200 || len(p.asked) != 1 || p.asked[0] != "GET "+b.srv.URL+
			"/x" {
			t.Errorf("got %d %v, the proxy was asked %q", got.status, got.fault, p.asked)
		}
	})
}

func TestAProxyThatRefusesIsNamed(t *testing.T) {
	for refuse, tries := range map[int]int{http.StatusProxyAuthRequired: 1, http.StatusServiceUnavailable: 3} {
		p := newProxy(t, refuse)
		b := tlsBed(t, true, p.use(t))
		got := b.do(t.Context(), "POST", "/x")
		if got.code() != fault.UpstreamError || !strings.Contains(got.fault.Message, "proxy") || len(p.asked) != tries {
			t.Errorf("%d: got %v after %d tries", refuse, got.fault, len(p.asked))
		}
	}
}

func TestTheProxysPasswordIsNotTold(t *testing.T) {
	b := newBed(t, hello, func(o *transport.Options) {
		o.Network.Proxy = func(*http.Request) (*url.URL, error) {
			return nil, &url.Error{Op: "parse", URL: "http://joe:sesame@proxy.lan:x", Err: io.ErrNoProgress}
		}
	})
	got := b.do(t.Context(), "GET", "/")
	if got.code() != fault.UpstreamError || strings.Contains(got.fault.Cause.Error()+got.fault.Message+b.log.String(),
		"sesame") {
		t.Errorf("got %v because of %v", got.fault, got.fault.Cause)
	}
}

// forms are ways in which the token may be written.
func forms() []string {
	out := []string{
		token, url.QueryEscape(token), url.PathEscape(token), strings.ReplaceAll(url.QueryEscape(token), "%2F", "%2f"),
		strings.TrimPrefix(url.UserPassword("", token).String(), ":"),
		url.QueryEscape(url.QueryEscape(token)), strings.ReplaceAll(token, "&", `\u0026`),
	}
	for _, user := range []string{"", "a:", "ab:", "joe:", "token:", "x-access-token:"} {
		out = append(out,
			base64.StdEncoding.EncodeToString([]byte(user+token)), base64.URLEncoding.EncodeToString([]byte(user+token)),
			base64.RawStdEncoding.EncodeToString([]byte(user+token+"@host")))
	}
	return out
}

// free fails if a text holds the token in any form.
func free(t *testing.T, text string) {
	t.Helper()
	for _, form := range forms() {
		if strings.Contains(text, form) {
			t.Errorf("%q holds %q", text, form)
		}
	}
}

func TestScrubTakesTheTokenOutInEveryForm(t *testing.T) {
	b := newBed(t, hello)
	for _, form := range forms() {
		for _, text := range []string{form, "x " + form + " y", `Authorization: Basic ` + form + `"`, form + form} {
			got := b.Scrub(text)
			free(t, got)
			if !strings.Contains(got, "[redacted]") {
				t.Errorf("%q became %q", text, got)
			}
		}
	}
	for in, want := range map[string]string{
		"nothing to hide here, path a/b": "nothing to hide here, path a/b",
		"get https://joe:pw@h/p?q=1 now": "get https://h/p now",
		`Get "http://h/p?access=x": EOF`: `Get "http://h/p": EOF`,
		"is it? yes":                     "is it? yes",
		"mail joe@example.test":          "mail joe@example.test",
	} {
		if got := b.Scrub(in); got != want {
			t.Errorf("%q became %q", in, got)
		}
	}
}

func TestNoErrorAndNoLogLineHoldsTheToken(t *testing.T) {
	for _, form := range forms() {
		b := newBed(t, hello)
		b.Plan(nil, httpfault.Fault{Kind: httpfault.Status, Status: 500, Header: http.Header{"X-Request-Id": {form}}})
		b.Plan(nil, httpfault.Fault{Kind: httpfault.Redirect, Target: "http://127.0.0.1:1/" + url.PathEscape(form)})
		b.Plan(nil, httpfault.Fault{Kind: httpfault.ResetBefore})
		b.Plan(nil, httpfault.Fault{Kind: httpfault.Status, Status: 302,
			Header: http.Header{"Location": {"http://[" + form}}})
		path := "/" + url.PathEscape(form) + "?access_token=" + url.QueryEscape(form)
		for range 4 {
			got := b.do(t.Context(), "POST", path)
			read := b.do(t.Context(), "GET", path)
			for _, f := range []*fault.Error{got.fault, read.fault} {
				if f != nil {
					free(t, fmt.Sprintf("%s %v %+v %#v", f.Message, f.Cause, f.Cause, f.Cause))
				}
			}
		}
		foreign := b.Failure(&url.Error{Op: "Get", URL: "https://h/?t=" + form, Err: errors.New("about " + form)})
		free(t, fmt.Sprintf("%v %v %#v", foreign, foreign.Cause, foreign.Cause))
		said := b.StatusFault(&http.Response{StatusCode: 500, Header: http.Header{"X-Request-Id": {form}}}, "you sent "+form)
		free(t, said.Message)
		if b.log.String() == "" || strings.Contains(b.log.String(), "access_token") {
			t.Errorf("log: %s", b.log)
		}
		free(t, b.log.String())
	}
}
