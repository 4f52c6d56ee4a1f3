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

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
)

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
