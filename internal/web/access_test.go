package web_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func from(address string) edit { return func(r *http.Request) { r.RemoteAddr = address } }

func host(name string) edit { return func(r *http.Request) { r.Host = name } }

func TestWithoutATokenNobodyIsLetIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strangers)
	w.want(w.get("/api/v1/me"), 401, fault.Unauthenticated)
	token := w.token("ci", 2, access.Read)
	w.want(w.get("/api/v1/me"), 401, fault.Unauthenticated)
	w.want(w.get("/api/v1/me", bearer(token)), 200, "")
	w.revoke("ci")
	w.want(w.get("/api/v1/me", bearer(token)), 401, fault.Unauthenticated)
	w.want(w.get("/api/v1/me"), 401, fault.Unauthenticated)

	configured := newWorld(t, func(w *world) { w.tokens = []string{"short"} })
	configured.want(configured.get("/api/v1/me"), 401, fault.Unauthenticated)
	configured.want(configured.get("/api/v1/me", bearer("short")), 401, fault.Unauthenticated)
}

func TestAnonymousReadIsForCallersOnThisMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.anonymous, w.web.Network.Hosts = true, []string{"ops.example"} })
	a := w.get("/api/v1/me")
	w.want(a, 200, "")
	if a.json["via"] != "anonymous" || fmt.Sprint(a.json["scopes"]) != "[read]" {
		t.Errorf("got %s", a.body)
	}
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 403, fault.Forbidden)
	for name, e := range map[string]edit{
		"a proxy on this machine":       header("X-Forwarded-For", "203.0.113.9"),
		"one that names nobody":         header("X-Forwarded-For", ""),
		"one that says so itself":       header("Via", "1.1 proxy"),
		"one of a port":                 header("X-Forwarded-Port", "443"),
		"a forwarded request":           header("Forwarded", "for=203.0.113.9"),
		"nginx without any settings":    func(r *http.Request) { r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.0", 1, 0 },
		"a network of content":          header("Cf-Connecting-Ip", "203.0.113.9"),
		"a balancer":                    header("True-Client-Ip", "203.0.113.9"),
		"a listed name":                 host("ops.example"),
		"an address of another machine": from("203.0.113.9:9"),
	} {
		a := w.get("/api/v1/me", e)
		if a.StatusCode != 401 || a.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
	w.web.Network.Loopback = false
	w.build()
	w.want(w.get("/api/v1/me"), 401, fault.Unauthenticated)
}

// A proxy that keeps our own address in Host makes strangers look as if they were on this machine.
func TestAProxyMakesNobodyLocal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strangers)
	for _, target := range []string{"/", "/api/v1/proposals", "/metrics", "/openapi.json", "/docs", "/audit.jsonl",
		"/events", "/doctor"} {
		w.status(w.get(target, host("127.0.0.1:8080")), 401)
	}
}

func TestABadCredentialIsNotPassedOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) {
		w.tokens = []string{"a-token-for-these-tests"}
		w.web.Network.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		w.web.Network.ProxyUserHeader = "X-User"
	})
	user := header("X-User", "ann")
	w.want(w.get("/api/v1/me", user), 200, "")
	for name, edits := range map[string][]edit{
		"an unknown token":     {bearer("an-unknown-token-here"), user},
		"an empty token":       {bearer(""), user},
		"a prefix of a token":  {bearer("a-token-for-these-test"), user},
		"another case":         {bearer("A-token-for-these-tests"), user},
		"basic authentication": {header("Authorization", "Basic YTpi"), user},
		"two tokens":           {bearer("a-token-for-these-tests"), bearer("a-token-for-these-tests"), user},
		"an unknown session":   {header("Cookie", "claudeops_session=x"), user},
		"two sessions":         {header("Cookie", "claudeops_session=x; claudeops_session=y"), user},
	} {
		t.Run(name, func(t *testing.T) { w.want(w.get("/api/v1/me", edits...), 401, fault.Unauthenticated) })
	}
}

func TestOnlyATrustedProxyNamesUsers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) {
		w.tokens = []string{"a-token-for-these-tests"}
		w.web.Network.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
		w.web.Network.ProxyUserHeader = "X-User"
	})
	w.token("ann", 2, access.Read) // is another one, and so is its name
	a := w.get("/api/v1/me", from("10.1.2.3:9"), header("X-User", "ann"))
	w.want(a, 200, "")
	if a.json["name"] != "proxy:ann" || a.json["via"] != "proxy" {
		t.Errorf("got %s", a.body)
	}
	for name, edits := range map[string][]edit{
		"another network":     {from("192.0.2.1:9"), header("X-User", "ann")},
		"no address":          {from("@"), header("X-User", "ann")},
		"no user":             {from("10.1.2.3:9")},
		"an empty user":       {from("10.1.2.3:9"), header("X-User", "")},
		"a blank user":        {from("10.1.2.3:9"), header("X-User", " \t")},
		"two users in one":    {from("10.1.2.3:9"), header("X-User", "ann, root")},
		"an invisible letter": {from("10.1.2.3:9"), header("X-User", "an\u200bn")},
		"no UTF-8":            {from("10.1.2.3:9"), header("X-User", "an\xffn")},
		"a configured token":  {from("10.1.2.3:9"), header("X-User", "CLAUDEOPS_API_TOKENS[0]")},
		"anonymous":           {from("10.1.2.3:9"), header("X-User", "Anonymous")},
		"a token's value":     {from("10.1.2.3:9"), header("X-User", "cops_x")},
		"two users":           {from("10.1.2.3:9"), header("X-User", "ann"), header("X-User", "root")},
		"a long name":         {from("10.1.2.3:9"), header("X-User", strings.Repeat("a", 201))},
		"a control character": {from("10.1.2.3:9"), header("X-User", "a\x01b")},
		"another header":      {from("10.1.2.3:9"), header("X-Remote-User", "ann")},
	} {
		t.Run(name, func(t *testing.T) { w.want(w.get("/api/v1/me", edits...), 401, fault.Unauthenticated) })
	}
}

func TestEachScopeOpensItsRoutesAndNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strangers)
	tokens := map[access.Scope]string{}
	for _, scope := range access.AllScopes() {
		tokens[scope] = w.token(string(scope), 2, scope)
	}
	for _, c := range []struct {
		method, target, body string
		needs                access.Scope
	}{
		{"POST", "/api/v1/prs", request(nil), access.Propose},
		{"POST", "/api/v1/proposals/x/promote", "", access.Review},
		{"GET", "/api/v1/prs?repo_owner=joe&repo_name=infra", "", access.Read},
		{"POST", "/api/v1/sessions", `{"tier":9}`, access.Operate},
		{"GET", "/metrics", "", access.Read},
	} {
		w.want(w.do(c.method, c.target, c.body), 401, fault.Unauthenticated)
		for scope, token := range tokens {
			a := w.do(c.method, c.target, c.body, bearer(token))
			if refused := a.code() == string(fault.Forbidden); refused == (scope == c.needs) {
				t.Errorf("%s %s with the scope %s: %d %s", c.method, c.target, scope, a.StatusCode, a.body)
			}
		}
	}
}

func TestStrangersLeaveNothingOnTheRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.tokens = []string{"a-token-for-these-tests"} })
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 401, fault.Unauthenticated)
	w.want(w.do("POST", "/api/v1/prs", request(nil), bearer("wrong")), 401, fault.Unauthenticated)
	if n := len(w.attempts()); n != 0 {
		t.Errorf("%d rows", n)
	}
}

// signIn signs in and returns the cookie.
func (w *world) signIn(token string, edits ...edit) *http.Cookie {
	w.Helper()
	a := w.do("POST", "/sign-in", `{"token":"`+token+`"}`, edits...)
	w.want(a, 200, "")
	cookies := a.Cookies()
	if len(cookies) != 1 {
		w.Fatalf("cookies %v", cookies)
	}
	return cookies[0]
}

func with(c *http.Cookie) edit { return header("Cookie", c.Name+"="+c.Value) }

func TestABrowserSignsInAndOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.web.Network.BasePath = "/ops" })
	token := w.token("ann", 2, access.Read)
	a := w.do("POST", "/ops/sign-in", `{"token":"`+token+`"}`)
	w.want(a, 200, "")
	cookie := a.Cookies()[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/ops/" || cookie.Secure ||
		cookie.Domain != "" ||
		len(cookie.Value) < 43 || strings.Contains(token, cookie.Value) {
		t.Errorf("cookie %+v", cookie)
	}
	me := w.get("/ops/api/v1/me", with(cookie))
	w.want(me, 200, "")
	if me.json["name"] != "ann" || me.json["via"] != "session" || me.json["max_tier"] != float64(2) {
		t.Errorf("got %s", me.body)
	}
	out := w.do("POST", "/ops/sign-out", "", with(cookie))
	w.want(out, 204, "")
	if gone := out.Cookies()[0]; gone.MaxAge >= 0 || gone.Path != "/ops/" {
		t.Errorf("cookie %+v", gone)
	}
	w.want(w.get("/ops/api/v1/me", with(cookie)), 401, fault.Unauthenticated)

	form := w.do("POST", "/ops/sign-in", "token="+token, set("Content-Type", "application/x-www-form-urlencoded"))
	if form.StatusCode != 303 || form.Header.Get("Location") != "/ops/" || len(form.Cookies()) != 1 {
		t.Errorf("a form: %d %v", form.StatusCode, form.Header)
	}
	w.want(w.do("POST", "/ops/sign-in?next=//evil.example", `{"token":"x"}`), 401, fault.Unauthenticated)
}

func TestTheCookieIsSecureWhenTheBrowserSpeaksTLS(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) {
		w.web.Network.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	})
	token := w.token("ann", 2, access.Read)
	https := header("X-Forwarded-Proto", "https")
	if c := w.signIn(token, from("10.0.0.1:1"), https); !c.Secure {
		t.Error("not secure behind a trusted proxy")
	}
	if c := w.signIn(token, from("192.0.2.1:1"), https); c.Secure {
		t.Error("somebody else's header was believed")
	}
}

func TestWrongSignInsAreLimitedAndRightOnesAreNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	token := w.token("ann", 2, access.Read)
	try := func(address, token string) reply {
		return w.do("POST", "/sign-in", `{"token":"`+token+`"}`, from(address), header("X-Forwarded-For", "198.51.100.7"))
	}
	for range 10 {
		w.want(try("192.0.2.1:1", "wrong"), 401, fault.Unauthenticated)
	}
	a := try("192.0.2.1:2", "wrong")
	w.want(a, 429, fault.LimitReached)
	if a.Header.Get("Retry-After") != "60" {
		t.Errorf("Retry-After %q", a.Header.Get("Retry-After"))
	}
	w.want(try("192.0.2.2:1", "wrong"), 401, fault.Unauthenticated)
	for range 20 { // an agent at the same address must not keep its operator out
		w.want(try("192.0.2.1:1", token), 200, "")
	}
	w.want(try("192.0.2.1:2", "wrong"), 429, fault.LimitReached)
	w.advance(time.Minute)
	w.want(try("192.0.2.1:1", "wrong"), 401, fault.Unauthenticated)
}

func TestStrangersFromEverywhereKeepNobodyOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	token := w.token("ann", 2, access.Read)
	last := reply{}
	for i := range 201 {
		address := netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), 1)
		last = w.do("POST", "/sign-in", `{"token":"wrong"}`, from(address.String()))
	}
	w.want(last, 429, fault.LimitReached)
	w.want(w.do("POST", "/sign-in", `{"token":"`+token+`"}`, from("203.0.113.9:1")), 200, "")
}

func TestASignInThatFailsRepeatsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.token("ann", 2, access.Read)
	for _, body := range []string{`{"token":"hunter2hunter2"}`, `{"tokn":"hunter2hunter2"}`, `"hunter2hunter2"`,
		`{"token":["hunter2hunter2"]}`} {
		if a := w.do("POST", "/sign-in", body); a.StatusCode < 400 || strings.Contains(string(a.body), "hunter2") {
			t.Errorf("%s: %d %s", body, a.StatusCode, a.body)
		}
	}
}

func TestWhoeverHasNoTokenReadsAndDecidesNothing(t *testing.T) {
	t.Parallel()
	w, id := dryWorld(t, nil)
	r := &reviewer{world: w}
	w.web.Providers.Reviewer = r
	w.build()
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
	w.person, w.anonymous = "", true
	w.build()
	writes, rows := w.fake.Script.Writes(), len(w.attempts())

	promoted := w.do("POST", "/api/v1/proposals/"+id+"/promote", "")
	w.want(promoted, 403, fault.Forbidden)
	w.says(promoted, "needs the scope review", "claudeops token create --name NAME", "--scopes propose,review,read",
		"/sign-in")
	// over the page, with a second refusal of the same kind, that has no row of its own within a minute
	w.read(w.submit("/proposals/"+id+"/promote", nil), "promote", 403).has("claudeops token create")
	for _, action := range []string{"merge", "approve", "close"} {
		w.read(w.submit("/pulls/fake/joe/infra/1/review", url.Values{"action": {action}}), action,
			403).has("claudeops token create")
	}
	w.page("/pulls/fake/joe/infra/1", 200).has("Reviewing needs the scope review")

	if w.fake.Script.Writes() != writes || len(r.done) != 0 {
		t.Errorf("%d writes, %d reviews", w.fake.Script.Writes()-writes, len(r.done))
	}
	if got := w.attempts(); len(got) != rows+3 || got[0].Code != fault.Forbidden {
		t.Errorf("%d rows of promotions and reviews, %+v", len(got)-rows, got[0])
	}
	if len(r.refused) != 3 || r.refused[0].Provider != "fake" || r.refused[0].Name != "infra" ||
		r.refused[0].Number != 1 ||
		r.refused[0].By.Door != record.DoorWeb || r.refused[0].By.String() != "anonymous" {
		t.Errorf("recorded %+v", r.refused)
	}
}

// TestEveryRoleIsHeldAtEveryRoute asks every route of the table as a person of each role, and as a stranger.
func TestEveryRoleIsHeldAtEveryRoute(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile(filepath.Join("testdata", "roles.txt"))
	must.Do(t, err)
	w, provider := peopleWorld(t)
	w.web.Providers.Reviewer = &reviewer{world: w}
	w.build()
	roles := []string{"viewer", "reviewer", "operator"}
	var logins [3]*http.Cookie
	for i, role := range roles {
		logins[i] = w.signInAs(provider, account(role, role, role+"s"))
	}
	for _, line := range strings.Split(strings.TrimSpace(string(table)), "\n")[1:] {
		f := strings.Fields(line)
		method, pattern, scope, may := f[0], f[1], f[2], f[3:]
		// open, a stream without end, many documents
		if scope == "-" || scope == "(agents)" || pattern == "/events" || pattern == "/audit.jsonl" {
			continue
		}
		target := strings.TrimSuffix(regexp.MustCompile(`\{[^$}]*\}`).ReplaceAllString(pattern, "x1"), "{$}")
		ask := func(edits ...edit) reply {
			body := ""
			if method == http.MethodPost {
				body = "{}"
			}
			return w.do(method, target, body, edits...)
		}
		w.status(ask(), http.StatusUnauthorized)
		for i, role := range roles {
			a := ask(cookies(logins[i]))
			if denied := a.StatusCode == http.StatusForbidden && a.code() == string(fault.Forbidden) &&
				strings.Contains(string(a.body), "needs the scope"); denied != (may[i] == "no") {
				t.Errorf("%s %s, %s: %d %s; the table says %s", method, pattern, role, a.StatusCode, a.body, may[i])
			}
			if a.StatusCode == http.StatusUnauthorized {
				t.Fatalf("%s %s signed the %s out: %s", method, pattern, role, a.body)
			}
		}
	}
}
