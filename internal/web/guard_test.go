package web_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/web"
)

func TestOnlyItsOwnHostsAreServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.web.Network.Hosts = []string{"ops.example", "10.0.0.7"} })
	for name, want := range map[string]int{
		"127.0.0.1:8080": 200, "localhost": 200, "LOCALHOST:1": 200, "[::1]:8080": 200, "127.9.9.9": 200, "ops.example": 200,
		"OPS.example.:443": 200,
		"10.0.0.7:80":      200, "evil.example": 403, "ops.example.evil.example": 403, "10.0.0.8": 403, "": 403,
		"localhost.evil.example": 403,
		"evil.example#localhost": 403, "localhost@evil.example": 403, "127.0.0.1.evil.example": 403, "[::1": 200,
		"2130706433": 403,
	} {
		if a := w.get("/healthz", host(name)); a.StatusCode != want {
			t.Errorf("%q: %d, want %d", name, a.StatusCode, want)
		}
	}
	w.web.Network.AnyIP = true
	w.build()
	w.want(w.get("/healthz", host("192.0.2.9:8080")), 200, "")
	w.want(w.get("/healthz", host("evil.example")), 403, fault.Forbidden)
}

func TestOtherSitesCannotChangeAnything(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	cookie := w.signIn(w.token("ann", 3, "propose", "review", "read"))
	for name, edits := range map[string][]edit{
		"cross-site":             {header("Sec-Fetch-Site", "cross-site")},
		"same-site":              {header("Sec-Fetch-Site", "same-site")},
		"an old browser":         {header("Origin", "https://evil.example")},
		"a file":                 {header("Origin", "null")},
		"another port":           {header("Origin", "http://127.0.0.1:9999")},
		"another scheme":         {header("Origin", "https://127.0.0.1:8080")},
		"a scheme of a program":  {header("Origin", "app://127.0.0.1:8080")},
		"no scheme":              {header("Origin", "//127.0.0.1:8080")},
		"two origins":            {header("Origin", "http://127.0.0.1:8080"), header("Origin", "http://127.0.0.1:8080")},
		"TLS of a stranger":      {header("Origin", "https://127.0.0.1:8080"), header("X-Forwarded-Proto", "https")},
		"a page that was framed": {header("Sec-Fetch-Site", "cross-site"), header("Origin", "http://127.0.0.1:8080")},
	} {
		for _, target := range []string{"/api/v1/prs", "/api/v1/proposals/x/promote", "/sign-in", "/sign-out",
			"/api/v1/policy/check"} {
			a := w.do("POST", target, request(nil), append(edits, with(cookie))...)
			if a.code() != string(fault.Forbidden) {
				t.Errorf("%s, %s: %d %s", name, target, a.StatusCode, a.body)
			}
		}
	}
	if w.fake.Script.Writes() != 0 {
		t.Errorf("calls %v", w.fake.Script.Calls())
	}
	w.want(w.do("POST", "/api/v1/prs", request(nil), with(cookie), header("Sec-Fetch-Site", "same-origin")), 201, "")
	w.want(w.do("POST", "/api/v1/prs", request(nil), with(cookie), header("Origin", "http://127.0.0.1:8080")), 200, "")
}

func TestTheOriginHasTheSchemeThatTheBrowserSpeaks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) {
		w.web.Network.Hosts = []string{"ops.example"}
		w.web.Network.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	})
	proxy, tls := from("10.0.0.1:1"), header("X-Forwarded-Proto", "https")
	for name, row := range map[string]struct {
		edits []edit
		want  int
	}{
		"https behind a proxy that speaks TLS": {[]edit{proxy, tls, header("Origin", "https://ops.example")}, 200},
		"http behind it":                       {[]edit{proxy, tls, header("Origin", "http://ops.example")}, 403},
		"http behind a proxy without TLS":      {[]edit{proxy, header("Origin", "http://ops.example")}, 200},
		"https behind that":                    {[]edit{proxy, header("Origin", "https://ops.example")}, 403},
		"https with the word of the browser": {[]edit{header("Origin", "https://ops.example"),
			header("Sec-Fetch-Site", "same-origin")}, 200},
	} {
		a := w.do("POST", "/api/v1/policy/check", `{"paths":["checks/x.md"]}`, append(row.edits, host("ops.example"))...)
		if a.StatusCode != row.want {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
}

func TestEveryAnswerHasTheHeadersThatKeepABrowserCareful(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, target := range []string{"/healthz", "/docs", "/nothing", "/api/v1/proposals", "/docs/style.css",
		"/openapi.json"} {
		a := w.get(target)
		for name, want := range map[string]string{
			"Content-Security-Policy": "frame-ancestors 'none'", "X-Content-Type-Options": "nosniff",
			"Referrer-Policy": "same-origin",
			"Cache-Control":   "no-store", "X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin",
			"X-Request-Id": "exchange-",
		} {
			if !strings.Contains(a.Header.Get(name), want) {
				t.Errorf("%s: %s is %q", target, name, a.Header.Get(name))
			}
		}
		if csp := a.Header.Get("Content-Security-Policy"); strings.Contains(csp, "unsafe") ||
			!strings.HasPrefix(csp, "default-src 'none'") {
			t.Errorf("%s: %s", target, csp)
		}
		if a.Header.Get("Access-Control-Allow-Origin") != "" || a.Header.Get("Content-Type") == "" {
			t.Errorf("%s: %v", target, a.Header)
		}
	}
}

func TestAddressesThatAreNotOurs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, target := range []string{
		"/nothing", "/api/v1", "/api/v1/", "/api/v1/prs/", "/API/v1/prs", "//api/v1/prs", "/api/../healthz", "/./healthz",
		"/api/v1//prs",
		"/docs/../../etc/passwd", "/docs/%2e%2e/%2e%2e/etc/passwd", "/docs/..%2f..%2fetc/passwd", "/docs/style.css/x",
		"/static/docs.html",
		"//evil.example/%2e%2e", "/healthz%00",
	} {
		a := w.get(target)
		if a.StatusCode != 404 || a.code() != string(fault.NotFound) || a.Header.Get("Location") != "" {
			t.Errorf("%s: %d %v %s", target, a.StatusCode, a.Header, a.body)
		}
	}
	for _, c := range [][3]string{
		{"PUT", "/api/v1/prs", "GET, HEAD, POST"}, {"DELETE", "/api/v1/audit", "GET, HEAD"},
		{"GET", "/api/v1/sessions/x/stop", "POST"},
		{"POST", "/healthz", "GET, HEAD"}, {"OPTIONS", "/api/v1/prs", "GET, HEAD, POST"}, {"TRACE", "/healthz", "GET, HEAD"},
		{"BREW", "/docs", "GET, HEAD"},
	} {
		a := w.do(c[0], c[1], "")
		w.want(a, 405, fault.InvalidArgument)
		if a.Header.Get("Allow") != c[2] {
			t.Errorf("%s %s: Allow %q", c[0], c[1], a.Header.Get("Allow"))
		}
	}
}

func TestEverythingIsBelowTheBasePath(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.web.Network.BasePath = "/a/ops" })
	for target, want := range map[string]int{
		"/a/ops/healthz": 200, "/a/ops/api/v1/proposals": 200, "/a/ops": 200, "/a/ops/": 200,
		"/healthz": 200, "/readyz": 200, "/metrics": 404, // who probes the process does not come through the proxy
		"/a/opshealthz":   404,
		"/a/ops//healthz": 404, "/a/ops/../ops/healthz": 404, "/": 404,
	} {
		if a := w.get(target); a.StatusCode != want {
			t.Errorf("%s: %d, want %d", target, a.StatusCode, want)
		}
	}
	if page := string(w.get("/a/ops/docs").body); !strings.Contains(page, `href="/a/ops/docs/style.css"`) ||
		strings.Contains(page, "<script") {
		t.Error("the page refers to another place, or has a script")
	}
}

func TestAFaultOfOursSaysNothingButARequestID(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.build()
	w.instead(prflow.ToolListPRs, func(context.Context, operation.Call) (any, error) { panic("a secret in a stack") })
	w.instead(prflow.ToolGetPRStatus, func(context.Context, operation.Call) (any, error) {
		return prflow.StatusResult{}, errors.New("a foreign error with " + ownToken)
	})
	server, err := web.New(w.web)
	if err != nil {
		t.Fatal(err)
	}
	w.handler = server
	for _, target := range []string{"/api/v1/prs?repo_owner=a&repo_name=b", "/api/v1/prs/1?repo_owner=a&repo_name=b"} {
		a := w.get(target)
		w.want(a, 500, fault.Internal)
		if strings.Contains(string(a.body), "secret in") || strings.Contains(string(a.body), ownToken) {
			t.Errorf("%s", a.body)
		}
	}
}

// serveReal starts the server as `claudeops serve` does, with short limits, and returns its address.
func serveReal(t *testing.T, w *world, limit time.Duration) string {
	t.Helper()
	w.build()
	server := w.handler.(*web.Server).HTTPServer()
	if server.ReadHeaderTimeout <= 0 || server.ReadTimeout <= 0 || server.WriteTimeout <= 0 || server.IdleTimeout <= 0 ||
		server.MaxHeaderBytes <= 0 {
		t.Errorf("a limit is missing: %+v", server)
	}
	server.ReadHeaderTimeout, server.ReadTimeout = limit, limit
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String()
}

func TestSlowClientsAreCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	address := serveReal(t, w, 100*time.Millisecond)
	for name, sent := range map[string]string{
		"in the header": "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: ",
		"in the body": "POST /api/v1/prs HTTP/1.1\r\nHost: localhost\r\nContent-Type: " +
			"application/json\r\nContent-Length: 1000\r\n\r\n{",
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(conn, sent)
			r := bufio.NewReader(conn)
			for err == nil { // the connection ends, with an answer or without
				_, err = r.ReadByte()
			}
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				t.Error("the connection was kept")
			}
		})
	}
	if w.fake.Script.Writes() != 0 {
		t.Errorf("calls %v", w.fake.Script.Calls())
	}
}

func TestALargeBodyIsNotReadToItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	address := serveReal(t, w, 10*time.Second)
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+address+"/api/v1/prs", endless{})
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+w.person)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return // the server hung up while we were sending, which is fine
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d", a.StatusCode)
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}
