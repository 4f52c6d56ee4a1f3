package web_test

import (
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakeoidc"
	"github.com/claudeops/claudeops/internal/web/guard"
)

// at asks for another host.
func at(host string) edit { return func(r *http.Request) { r.Host = host } }

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
			if err != nil {
				t.Fatal(err)
			}
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
		in := w.submit("/sign-in", form, navigates, at(shared))
		if in.StatusCode != 303 || len(in.Cookies()) != 0 {
			t.Fatalf("%s: %d %v", shared, in.StatusCode, in.Header)
		}
		d := w.page(in.Header.Get("Location"), 200, navigates, at(shared))
		d.has("costs this", "Stay at this address")
		own, target := ownHost(t, d)
		if !regexp.MustCompile(want).MatchString(own) || hosts[own] {
			t.Errorf("%s: the browser goes on at %s", shared, own)
		}
		hosts[own] = true
		once := w.page(target, 200, navigates, at(own))
		sent := url.Values{}
		for _, input := range once.find("input") {
			sent.Set(attr(input, "name"), attr(input, "value"))
		}
		there := w.submit("/sign-in", sent, navigates, at(own))
		if there.StatusCode != 303 || there.Header.Get("Location") != "/audit" || len(there.Cookies()) != 1 ||
			there.Cookies()[0].Domain != "" {
			t.Fatalf("%s: %d %v", own, there.StatusCode, there.Header)
		}
		w.page("/audit", 200, navigates, at(own), with(there.Cookies()[0])).has("You are ann")
		if again := w.submit("/sign-in", sent, navigates, at(own)); again.StatusCode != 401 {
			t.Errorf("%s: the code is good twice: %d", own, again.StatusCode)
		}
	}
}

func TestWhoStaysAtASharedHostHasBeenToldWhatItCosts(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.strangers, w.web.Network.Own = true, guard.Own{Why: "Another program listens at [::1]:8080."}
	})
	in := w.submit("/sign-in", url.Values{"token": {w.token("ann", 2, access.Read)}}, navigates)
	d := w.page(in.Header.Get("Location"), 200, navigates)
	d.has("Another program listens at [::1]:8080.", "costs this", "127.0.0.1:8080")
	sent := url.Values{}
	for _, input := range d.find("input") {
		sent.Set(attr(input, "name"), attr(input, "value"))
	}
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
		"at its own name": {navigates, at(strings.Repeat("a", 26) + "-127-0-0-1.localhost:8080")},
		"at another host": {navigates, at("ops.example")},
		"an old browser":  {browser, at("localhost:8080")},
	} {
		w := newWorld(t, func(w *world) {
			w.strangers, w.web.Network.Own.Names, w.web.Network.Hosts = true, true, []string{"ops.example"}
		})
		in := w.submit("/sign-in", url.Values{"token": {w.token("ann", 2, access.Read)}}, edits...)
		if in.StatusCode != 303 || len(in.Cookies()) != 1 || in.Header.Get("Location") != "/" {
			t.Errorf("%s: %d %v", name, in.StatusCode, in.Header)
		}
	}
	w := newWorld(t, func(w *world) { w.strangers = true })
	for _, host := range []string{
		strings.Repeat("a", 25) + "-127-0-0-1.localhost", strings.Repeat("a", 26) + "-10-0-0-1.localhost",
		strings.Repeat("a", 26) + "-127-0-0-999.localhost", strings.Repeat("a", 26) + "-127-0-0-1.localhost.evil.example",
		strings.Repeat("a", 26) + ".localhost", "x." + strings.Repeat("a", 26) + "-localhost.localhost", "evil.localhost",
	} {
		w.want(w.get("/healthz", at(host)), 403, fault.Forbidden)
	}
	// Being on this machine does not permit reading there: a name that a resolver answers for could be anybody's.
	open := newWorld(t, func(w *world) { w.strangers, w.anonymous = true, true })
	own := strings.Repeat("a", 26) + "-127-0-0-1.localhost:8080"
	open.want(open.get("/api/v1/me", at(own)), 401, fault.Unauthenticated)
}

// A provider sends the browser back to the shared host, from which the login goes on at a name of its own.
func TestAPersonOfAProviderGoesOnAtANameOfTheBrowsersOwn(t *testing.T) {
	w, provider := peopleWorld(t)
	w.web.Network.Own.Names = true
	provider.SignedIn(fakeoidc.Person{Subject: "1", User: "ann", Groups: []string{"operators"}})
	begun := w.get("/sign-in/with/gitea?next=%2Faudit", navigates, at(strings.Repeat("a", 26)+"-127-0-0-1.localhost:8080"))
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
	there := w.submit("/sign-in", url.Values{"code": {code}, "next": {"/audit"}}, navigates, at(own))
	w.page("/audit", 200, navigates, at(own), with(loginOf(t, there))).has("You are gitea:ann")
}

// A program asks at the address that it knows, while its person is at the browser's own.
func TestConsentAtABrowsersOwnNameIsForTheProgramsAddress(t *testing.T) {
	p, boss := programWorld(t, nil)
	p.keys(p.exchange(p.code(boss, at(strings.Repeat("a", 26)+"-127-0-0-1.localhost:8080")), nil))
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
		if me := w.get(base+"/api/v1/me", with(c), overTLS); me.StatusCode != 200 {
			t.Errorf("%d %s", me.StatusCode, me.body)
		}
		planted := header("Cookie", "claudeops_session="+c.Value)
		w.want(w.get(base+"/api/v1/me", planted, overTLS), 401, fault.Unauthenticated)
	}
}
