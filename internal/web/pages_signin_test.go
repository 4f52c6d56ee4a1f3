package web_test

import (
	"context"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	w, id := dryWorld(t, nil)
	w.web.Providers.Reviewer = &reviewer{world: w}
	w.build()
	w.signedIn()
	before := len(w.attempts())
	for _, target := range []string{"/proposals/" + id + "/promote", "/pulls/fake/joe/infra/1/review", "/sign-in",
		"/sign-out"} {
		for name, e := range map[string]edit{
			"cross-site": header("Sec-Fetch-Site", "cross-site"), "another origin": header("Origin", "https://evil.example"),
			"no origin": header("Origin", "null"),
		} {
			a := w.do("POST", target, "action=merge", browser, set("Content-Type", formType), e)
			if a.StatusCode != 403 {
				t.Errorf("%s, %s: %d", target, name, a.StatusCode)
			}
		}
		for name, e := range map[string]edit{"json": set("Content-Type", "application/json"),
			"text": set("Content-Type", "text/plain")} {
			if a := w.do("POST", target, "{}", browser, e); target != "/sign-out" && a.StatusCode < 400 {
				t.Errorf("%s, %s: %d", target, name, a.StatusCode)
			}
		}
	}
	// the bodies that were not forms; the same again within a minute has no row of its own
	if w.fake.Script.Writes() != 0 || len(w.web.Providers.Reviewer.(*reviewer).done) != 0 || len(w.attempts()) != before+
		3 {
		t.Errorf("%d writes, %d rows", w.fake.Script.Writes(), len(w.attempts())-before)
	}
	w.status(w.do("POST", "/proposals/"+id+"/promote", "", set("Content-Type", formType),
		header("Origin", "http://127.0.0.1:8080")), 303) // as a browser over plain HTTP says it
}

func TestWhoIsNotSignedInIsLedThroughTheFormAndBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.strangers, w.web.Network.BasePath = true, "/ops" })
	token := w.token("ann", 2, "read")
	a := w.get("/ops/changes?q=a%26b", browser)
	if a.StatusCode != 303 || a.Header.Get("Location") != "/ops/sign-in?next=%2Fchanges%3Fq%3Da%2526b" {
		t.Fatalf("%d %v", a.StatusCode, a.Header)
	}
	w.want(w.get("/ops/proposals"), 401, fault.Unauthenticated) // a program
	d := w.page(a.Header.Get("Location"), 200)
	form := d.fields()
	form.Set("token", token)
	wrongForm := url.Values{"token": {"claudeops_wrong"}, "next": {form.Get("next")}}
	again := w.read(w.submit("/ops/sign-in", wrongForm), "/ops/sign-in", 401)
	for _, input := range again.find("input") {
		if name := attr(input, "name"); name == "next" && attr(input, "value") != form.Get("next") {
			t.Errorf("after a wrong token next is %q", attr(input, "value"))
		} else if name == "token" && (attr(input, "aria-describedby") != "token-problem token-help" ||
			attr(input, "value") != "") {
			t.Errorf("after a wrong token the field is %v", input.Attr)
		}
	}
	in := w.submit("/ops/sign-in", form)
	if in.StatusCode != 303 || in.Header.Get("Location") != "/ops/changes?q=a%26b" || len(in.Cookies()) != 1 {
		t.Fatalf("%d %v", in.StatusCode, in.Header)
	}
	w.page(in.Header.Get("Location"), 200, with(in.Cookies()[0])).has("You are ann", "Sign out")
	out := w.submit("/ops/sign-out", nil, with(in.Cookies()[0]))
	if out.StatusCode != 303 || out.Header.Get("Location") != "/ops/sign-in" {
		t.Errorf("%d %v", out.StatusCode, out.Header)
	}
	w.page("/ops/sign-in", 200, with(in.Cookies()[0])).has("the session has ended")
	wrong := w.read(w.submit("/ops/sign-in", url.Values{"token": {"wrong-wrong-wrong"}}), "sign-in", 401)
	wrong.has("the token is not valid")
	if strings.Contains(wrong.text, "wrong-wrong") || len(wrong.find("form")) != 1 {
		t.Error("the token is repeated, or there is no way on")
	}
}

func TestSigningInLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.web.Network.BasePath = "/ops" })
	token := w.token("ann", 2, "read")
	for next, want := range map[string]string{
		"/audit": "/ops/audit", "/proposals?q=x": "/ops/proposals?q=x", "": "/ops/", "/": "/ops/",
		"//evil.example": "/ops/", "https://evil.example": "/ops/", `/\evil.example`: "/ops/", `\\evil.example`: "/ops/",
		"/%2fevil.example": "/ops/",
		"/%5cevil.example": "/ops/", "/../evil": "/ops/", "/a/../../evil": "/ops/", "/%2e%2e/evil": "/ops/",
		"javascript:alert(1)": "/ops/",
		"/\tevil":             "/ops/", "/\r\nSet-Cookie: a=b": "/ops/", "/%0d%0aSet-Cookie:a": "/ops/", "evil": "/ops/",
		"///evil.example": "/ops/", "/ //evil": "/ops/",
		"/sign-in?next=/sign-in": "/ops/", "/" + strings.Repeat("a", 3000): "/ops/", "http:/evil.example": "/ops/",
		"@evil.example/": "/ops/", "/audit#x": "/ops/",
	} {
		w.advance(time.Minute) // the limit of attempts
		a := w.submit("/ops/sign-in", url.Values{"token": {token}, "next": {next}})
		if got := a.Header.Get("Location"); a.StatusCode != 303 || got != want {
			t.Errorf("%q leads to %q", next, got)
		}
		d := w.page("/ops/sign-in?next="+url.QueryEscape(next), 200)
		for _, to := range d.links() {
			if !strings.HasPrefix(to, "/ops/") {
				t.Errorf("%q: a link to %q", next, to)
			}
		}
	}
}

func TestStaticFilesAreKeptForEverAndNothingElseIsServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.tokens = []string{"a-token-for-these-tests"} })
	d := w.page("/", 200, bearer("a-token-for-these-tests"))
	for _, n := range append(d.find("link"), d.find("script")...) {
		at := attr(n, "href") + attr(n, "src")
		a := w.get(at)
		w.want(a, 200, "")
		if !strings.Contains(a.Header.Get("Cache-Control"), "immutable") || a.Header.Get("ETag") == "" || len(a.body) == 0 ||
			n.Data == "script" && a.Header.Get("Content-Type") != "text/javascript; charset=utf-8" {
			t.Errorf("%s: %v", at, a.Header)
		}
		w.status(w.get(at, header("If-None-Match", a.Header.Get("ETag"))), 304)
	}
	for _, name := range []string{"", "app.css", "../docs.html", "..%2fdocs.html", "%2e%2e/%2e%2e/etc/passwd",
		"..%5capp.css", "app.css%00", "/etc/passwd"} {
		if a := w.get("/static/" + name); a.StatusCode != 404 {
			t.Errorf("%q: %d", name, a.StatusCode)
		}
	}
}

func TestWhoIsNobodyFindsTheWayToSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.anonymous, w.web.Network.BasePath = true, "/ops" })
	w.page("/ops/", 200).has("Sign in", "You are anonymous")
	w.person = w.token("ann", 2, "read")
	if strings.Contains(string(w.get("/ops/", browser).body), `href="/ops/sign-in"`) {
		t.Error("somebody who is known is asked to sign in")
	}
}

// onceWorld is a world with a one-time code for the holder of a token.
func onceWorld(t *testing.T, life time.Duration) (w *world, code string) {
	t.Helper()
	w = newWorld(t, func(w *world) { w.strangers, w.web.Network.BasePath = true, "/ops" })
	token := w.token("operator", 3, access.AllScopes()...)
	w.build()
	code, err := w.web.Access.OneTimeCode(context.Background(), token)
	if err != nil || len(code) < 43 || strings.Contains(token, code) {
		t.Fatalf("%q, %v", code, err)
	}
	w.advance(life)
	return w, code
}

func TestAOneTimeAddressSignsInOnce(t *testing.T) {
	t.Parallel()
	w, code := onceWorld(t, access.CodeLife-time.Second)
	address := "/ops/sign-in?code=" + url.QueryEscape(code) + "&next=%2Faudit"
	var form url.Values
	for range 3 { // looking uses nothing up
		d := w.page(address, 200)
		w.want(w.do("HEAD", address, ""), 200, "")
		form = d.fields()
		script := d.find("script")
		if len(d.find("button")) != 1 || len(script) != 1 {
			t.Fatalf("%d buttons, %d scripts", len(d.find("button")), len(script))
		}
		w.says(w.status(w.get(attr(script[0], "src")), 200), "requestSubmit")
	}
	if form.Get("code") != code || len(form) != 2 {
		t.Fatalf("the form has %v", form)
	}
	in := w.submit("/ops/sign-in", form)
	if in.StatusCode != 303 || in.Header.Get("Location") != "/ops/audit" || len(in.Cookies()) != 1 ||
		strings.Contains(in.Cookies()[0].Value, code) {
		t.Fatalf("%d %v", in.StatusCode, in.Header)
	}
	me := w.get("/ops/api/v1/me", with(in.Cookies()[0]))
	w.want(me, 200, "")
	if me.json["name"] != "operator" || me.json["via"] != "session" {
		t.Errorf("got %s", me.body)
	}
	w.read(w.submit("/ops/sign-in", form), "again", 401).has("was used already", "Token")
	w.leads(w.get(address, browser, with(in.Cookies()[0])), "/ops/audit")
	w.revoke("operator")
	w.want(w.get("/ops/api/v1/me", with(in.Cookies()[0])), 401, fault.Unauthenticated)
}

func TestAOneTimeCodeThatIsNoGoodSignsNobodyIn(t *testing.T) {
	t.Parallel()
	cases := map[string]func(w *world, code string) string{
		"too old":            func(w *world, code string) string { w.advance(access.CodeLife); return code },
		"a prefix":           func(_ *world, code string) string { return code[:len(code)-1] },
		"another case":       func(_ *world, code string) string { return strings.ToLower(code) },
		"another":            func(*world, string) string { return strings.Repeat("A", 43) },
		"of another server":  func(w *world, code string) string { w.build(); return code },
		"of a revoked token": func(w *world, code string) string { w.revoke("operator"); return code },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			w, code := onceWorld(t, 0)
			a := w.submit("/ops/sign-in", url.Values{"code": {change(w, code)}})
			if a.StatusCode != 401 || len(a.Cookies()) != 0 || strings.Contains(string(a.body), code) {
				t.Errorf("%d %s", a.StatusCode, a.body)
			}
		})
	}
	t.Run("as a token, and beside one", func(t *testing.T) {
		w, code := onceWorld(t, 0)
		w.want(w.do("POST", "/ops/sign-in", `{"token":"`+code+`"}`), 401, fault.Unauthenticated)
		w.want(w.get("/ops/api/v1/me", bearer(code)), 401, fault.Unauthenticated)
		w.status(w.submit("/ops/sign-in", url.Values{"code": {code}, "token": {"x"}}), 400)
		w.status(w.submit("/ops/sign-in", url.Values{"code": {code}},
			set("Sec-Fetch-Site", "cross-site")), 403)
		w.status(w.submit("/ops/sign-in", url.Values{"code": {code}}), 303)
	})
	t.Run("the oldest of many", func(t *testing.T) {
		w, code := onceWorld(t, 0)
		token := w.token("ann", 2, access.Read)
		for range 16 {
			if _, err := w.web.Access.OneTimeCode(t.Context(), token); err != nil {
				t.Fatal(err)
			}
		}
		w.status(w.submit("/ops/sign-in", url.Values{"code": {code}}), 401)
	})
	t.Run("for a token that is none", func(t *testing.T) {
		w, _ := onceWorld(t, 0)
		if _, err := w.web.Access.OneTimeCode(t.Context(), "wrong"); fault.CodeOf(err) != fault.Unauthenticated {
			t.Errorf("got %v", err)
		}
	})
}

// While the rules cannot be read nobody signs in anew. Who is in goes on reading, and an address is not used up.
func TestNobodySignsInAnewWhileTheRulesCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strangers)
	token := w.token("operator", 3, access.AllScopes()...)
	w.build()
	code, err := w.web.Access.OneTimeCode(t.Context(), token)
	must.Do(t, err)
	cookie := w.signIn(token)
	w.flow.Authority.Unknown = "policy.yaml: line 3: nonsense"
	refused := w.do("POST", "/sign-in", `{"token":"`+token+`"}`)
	w.want(refused, 403, fault.Forbidden)
	for what, form := range map[string]url.Values{"a token": {"token": {token}}, "an address": {"code": {code}},
		"it again": {"code": {code}}} {
		a := w.submit("/sign-in", form)
		if len(a.Cookies()) != 0 {
			t.Errorf("%s signs in", what)
		}
		page := w.read(a, what, 403)
		page.has("cannot be read", "claudeops doctor")
		page.lacks("nonsense")
	}
	w.want(w.do("POST", "/sign-in", `{"token":"wrong"}`), 401, fault.Unauthenticated)
	w.want(w.get("/api/v1/me", with(cookie)), 200, "")
	w.want(w.get("/api/v1/me", bearer(token)), 200, "")
	w.flow.Authority.Unknown = ""
	if a := w.submit("/sign-in", url.Values{"code": {code}}); a.StatusCode != 303 || len(a.Cookies()) != 1 {
		t.Errorf("the address was used up: %d %s", a.StatusCode, a.body)
	}
	w.read(w.submit("/sign-in", url.Values{"code": {code}}), "once", 401)
}

func TestACodeIsGoodForOneOfManyWhoTryItAtOnce(t *testing.T) {
	t.Parallel()
	w, code := onceWorld(t, 0)
	var signedIn atomic.Int64
	atOnce(32, func(int) {
		if w.submit("/ops/sign-in", url.Values{"code": {code}}).StatusCode == 303 {
			signedIn.Add(1)
		}
	})
	if signedIn.Load() != 1 {
		t.Errorf("%d were signed in", signedIn.Load())
	}
}
