package web_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/testkit/must"
	"github.com/claudeops/claudeops/internal/web/httpx"
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
		w.status(w.get(target), want)
	}
	if page := string(w.get("/a/ops/docs").body); !strings.Contains(page, `href="/a/ops/docs/createPR"`) ||
		strings.Contains(page, `href="/docs`) {
		t.Error("the page refers to another place")
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
	for _, target := range []string{"/api/v1/prs?repo_owner=a&repo_name=b", "/api/v1/prs/1?repo_owner=a&repo_name=b"} {
		a := w.get(target)
		w.want(a, 500, fault.Internal)
		w.says(a, "!secret in", "!"+ownToken)
	}
}

func TestSlowClientsAreCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	server := w.listening(func(s *http.Server) {
		if s.ReadHeaderTimeout <= 0 || s.ReadTimeout <= 0 || s.WriteTimeout <= 0 || s.IdleTimeout <= 0 ||
			s.MaxHeaderBytes <= 0 {
			t.Errorf("a limit is missing: %+v", s)
		}
		s.ReadHeaderTimeout, s.ReadTimeout = 100*time.Millisecond, 100*time.Millisecond
	})
	for name, sent := range map[string]string{
		"in the header": "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: ",
		"in the body": "POST /api/v1/prs HTTP/1.1\r\nHost: localhost\r\nContent-Type: " +
			"application/json\r\nContent-Length: 1000\r\n\r\n{",
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
			must.Do(t, err)
			defer conn.Close()
			must.Do(t, conn.SetDeadline(time.Now().Add(patience)))
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
	r, err := http.NewRequestWithContext(t.Context(), "POST", w.listening(nil).URL+"/api/v1/prs", endless{})
	must.Do(t, err)
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

// navigates marks a request as a browser's that opens a page.
func navigates(r *http.Request) {
	browser(r)
	r.Header.Set("Sec-Fetch-Mode", "navigate")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
}

// ownHost is the host of the address at which a page says that the browser goes on.
func ownHost(t *testing.T, d document) (host, target string) {
	t.Helper()
	for _, link := range d.find("a") {
		if attr(link, "id") == "own" {
			address, err := url.Parse(attr(link, "href"))
			must.Do(t, err)
			return address.Host, address.RequestURI()
		}
	}
	t.Fatal("the page leads to no address of the browser's own")
	return "", ""
}

func TestABrowserThatSignsInAtLoopbackGoesOnAtANameOfItsOwn(t *testing.T) {
	w := newWorld(t, func(w *world) { w.strangers, w.web.Network.Own.Names = true, true })
	form := url.Values{"token": {w.token("ann", 2, access.Read)}, "next": {"/audit"}}
	hosts := map[string]bool{}
	for shared, want := range map[string]string{
		"127.0.0.1:8080": `^[a-z2-7]{26}-127-0-0-1\.localhost:8080$`, "localhost:8080": `^[a-z2-7]{26}-localhost\.localhost:8080$`,
		"[::1]:8080": `^[a-z2-7]{26}-ip6\.localhost:8080$`, "127.0.0.1": `^[a-z2-7]{26}-127-0-0-1\.localhost$`,
	} {
		in := w.submit("/sign-in", form, navigates, host(shared))
		if in.StatusCode != 303 || len(in.Cookies()) != 0 {
			t.Fatalf("%s: %d %v", shared, in.StatusCode, in.Header)
		}
		d := w.page(in.Header.Get("Location"), 200, navigates, host(shared))
		d.has("costs this", "Stay at this address")
		own, target := ownHost(t, d)
		if !regexp.MustCompile(want).MatchString(own) || hosts[own] {
			t.Errorf("%s: the browser goes on at %s", shared, own)
		}
		hosts[own] = true
		sent := w.page(target, 200, navigates, host(own)).fields()
		there := w.submit("/sign-in", sent, navigates, host(own))
		if there.StatusCode != 303 || there.Header.Get("Location") != "/audit" || len(there.Cookies()) != 1 ||
			there.Cookies()[0].Domain != "" {
			t.Fatalf("%s: %d %v", own, there.StatusCode, there.Header)
		}
		w.page("/audit", 200, navigates, host(own), with(there.Cookies()[0])).has("You are ann")
		if again := w.submit("/sign-in", sent, navigates, host(own)); again.StatusCode != 401 {
			t.Errorf("%s: the code is good twice: %d", own, again.StatusCode)
		}
	}
}

func TestWhoStaysAtASharedHostHasBeenToldWhatItCosts(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.strangers, w.web.Network.Own = true, httpx.Own{Why: "Another program listens at [::1]:8080."}
	})
	in := w.submit("/sign-in", url.Values{"token": {w.token("ann", 2, access.Read)}}, navigates)
	d := w.page(in.Header.Get("Location"), 200, navigates)
	d.has("Another program listens at [::1]:8080.", "costs this", "127.0.0.1:8080")
	sent := d.fields()
	if len(d.find("script")) != 0 || len(in.Cookies()) != 0 {
		t.Error("there is a way that leads nowhere")
	}
	if stays := w.submit("/sign-in", sent, navigates); stays.StatusCode != 303 || len(stays.Cookies()) != 1 {
		t.Errorf("%d %v", stays.StatusCode, stays.Header)
	}
}

// Programs, browsers behind a proxy and other hosts stay where they are.
func TestNobodyElseIsSentToAnotherName(t *testing.T) {
	for name, edits := range map[string][]edit{
		"a program":       {browser},
		"fetch":           {browser, header("Sec-Fetch-Mode", "cors")},
		"behind a proxy":  {navigates, header("X-Forwarded-For", "192.0.2.1")},
		"at its own name": {navigates, host(strings.Repeat("a", 26) + "-127-0-0-1.localhost:8080")},
		"at another host": {navigates, host("ops.example")},
		"an old browser":  {browser, host("localhost:8080")},
	} {
		w := newWorld(t, func(w *world) {
			w.strangers, w.web.Network.Own.Names, w.web.Network.Hosts = true, true, []string{"ops.example"}
		})
		in := w.submit("/sign-in", url.Values{"token": {w.token("ann", 2, access.Read)}}, edits...)
		if in.StatusCode != 303 || len(in.Cookies()) != 1 || in.Header.Get("Location") != "/" {
			t.Errorf("%s: %d %v", name, in.StatusCode, in.Header)
		}
	}
	w := newWorld(t, strangers)
	for _, name := range []string{
		strings.Repeat("a", 25) + "-127-0-0-1.localhost", strings.Repeat("a", 26) + "-10-0-0-1.localhost",
		strings.Repeat("a", 26) + "-127-0-0-999.localhost", strings.Repeat("a", 26) + "-127-0-0-1.localhost.evil.example",
		strings.Repeat("a", 26) + ".localhost", "x." + strings.Repeat("a", 26) + "-localhost.localhost", "evil.localhost",
	} {
		w.want(w.get("/healthz", host(name)), 403, fault.Forbidden)
	}
	// Being on this machine does not permit reading there: a name that a resolver answers for could be anybody's.
	open := newWorld(t, func(w *world) { w.strangers, w.anonymous = true, true })
	own := strings.Repeat("a", 26) + "-127-0-0-1.localhost:8080"
	open.want(open.get("/api/v1/me", host(own)), 401, fault.Unauthenticated)
}

// A provider sends the browser back to the shared host, from which the login goes on at a name of its own.
func TestAPersonOfAProviderGoesOnAtANameOfTheBrowsersOwn(t *testing.T) {
	w, provider := peopleWorld(t)
	w.web.Network.Own.Names = true
	provider.SignedIn(account("1", "ann", "operators"))
	its := host(strings.Repeat("a", 26) + "-127-0-0-1.localhost:8080")
	begun := w.get("/sign-in/with/gitea?next=%2Faudit", navigates, its)
	if got := begun.Header.Get("Location"); got != "http://127.0.0.1:8080/sign-in/with/gitea?next=%2Faudit" ||
		len(begun.Cookies()) != 0 {
		t.Fatalf("at its own name the browser is sent to %q", got)
	}
	back, kept := w.begin("/audit")
	a := w.get(back.String(), fromElsewhere, cookies(kept))
	if a.StatusCode != 303 || len(a.Cookies()) != 1 || a.Cookies()[0].MaxAge >= 0 {
		t.Fatalf("%d %v", a.StatusCode, a.Header)
	}
	own, target := ownHost(t, w.page(a.Header.Get("Location"), 200, navigates))
	code := regexp.MustCompile(`code=([\w-]+)`).FindStringSubmatch(target)[1]
	there := w.submit("/sign-in", url.Values{"code": {code}, "next": {"/audit"}}, navigates, host(own))
	w.page("/audit", 200, navigates, host(own), with(loginOf(t, there))).has("You are gitea:ann")
}

// A program asks at the address that it knows, while its person is at the browser's own.
func TestConsentAtABrowsersOwnNameIsForTheProgramsAddress(t *testing.T) {
	p, boss := programWorld(t, nil)
	p.keys(p.exchange(p.code(boss, host(strings.Repeat("a", 26)+"-127-0-0-1.localhost:8080")), nil))
}

// Over TLS browsers take the cookie from this host alone; below a base path nothing else that the host serves gets it.
func TestTheCookieIsBoundToTheHostOverTLS(t *testing.T) {
	for base, want := range map[string]string{"": "__Host-claudeops_session", "/ops": "__Secure-claudeops_session"} {
		w := newWorld(t, func(w *world) {
			w.strangers, w.web.Network.BasePath, w.web.Network.Own.Names = true, base, true
			w.web.Network.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
			w.web.Network.Hosts = []string{"ops.example"}
		})
		overTLS := func(r *http.Request) {
			r.Host, r.RemoteAddr = "ops.example", "10.0.0.1:1"
			r.Header.Set("X-Forwarded-Proto", "https")
		}
		in := w.submit(base+"/sign-in", url.Values{"token": {w.token("ann", 2, access.Read)}}, navigates, overTLS)
		if len(in.Cookies()) == 0 {
			t.Fatalf("%d %s", in.StatusCode, in.body)
		}
		c := in.Cookies()[0]
		if c.Name != want || !c.Secure || c.Path != base+"/" || c.Domain != "" {
			t.Errorf("%+v", c)
		}
		w.status(w.get(base+"/api/v1/me", with(c), overTLS), 200)
		planted := header("Cookie", "claudeops_session="+c.Value)
		w.want(w.get(base+"/api/v1/me", planted, overTLS), 401, fault.Unauthenticated)
	}
}
