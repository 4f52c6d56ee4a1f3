package web_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
)

func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	w, id := dryWorld(t, nil)
	w.web.Providers.Reviewer = &reviewer{world: w}
	w.build()
	w.signedIn()
	before := len(w.attempts())
	form := "application/x-www-form-urlencoded"
	for _, target := range []string{"/proposals/" + id + "/promote", "/pulls/fake/joe/infra/1/review", "/sign-in",
		"/sign-out"} {
		for name, e := range map[string]edit{
			"cross-site": header("Sec-Fetch-Site", "cross-site"), "another origin": header("Origin", "https://evil.example"),
			"no origin": header("Origin", "null"),
		} {
			a := w.do("POST", target, "action=merge", browser, set("Content-Type", form), e)
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
	// the bodies that were no forms; the same again within a minute has no row of its own
	if w.fake.Script.Writes() != 0 || len(w.web.Providers.Reviewer.(*reviewer).done) != 0 || len(w.attempts()) != before+
		3 {
		t.Errorf("%d writes, %d rows", w.fake.Script.Writes(), len(w.attempts())-before)
	}
	if a := w.do("POST", "/proposals/"+id+"/promote", "", set("Content-Type", form),
		header("Origin", "http://127.0.0.1:8080")); a.StatusCode != 303 {
		t.Errorf("our own origin: %d %s", a.StatusCode, a.body) // as a browser over plain HTTP says it
	}
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
	form := url.Values{"token": {token}}
	for _, input := range d.find("input") {
		if attr(input, "type") == "hidden" {
			form.Set(attr(input, "name"), attr(input, "value"))
		}
	}
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
	d := w.page("/sign-in", 200)
	for _, link := range d.find("link") {
		a := w.get(attr(link, "href"))
		w.want(a, 200, "")
		if !strings.Contains(a.Header.Get("Cache-Control"), "immutable") || a.Header.Get("ETag") == "" || len(a.body) == 0 {
			t.Errorf("%s: %v", attr(link, "href"), a.Header)
		}
		if again := w.get(attr(link, "href"), header("If-None-Match", a.Header.Get("ETag"))); again.StatusCode != 304 {
			t.Errorf("%d", again.StatusCode)
		}
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
