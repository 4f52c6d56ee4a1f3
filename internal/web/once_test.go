package web_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/access"
)

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
	form := url.Values{}
	for range 3 { // looking uses nothing up
		d := w.page(address, 200)
		w.want(w.do("HEAD", address, ""), 200, "")
		for _, input := range d.find("input") {
			form.Set(attr(input, "name"), attr(input, "value"))
		}
		script := d.find("script")
		if len(d.find("button")) != 1 || len(script) != 1 {
			t.Fatalf("%d buttons, %d scripts", len(d.find("button")), len(script))
		}
		if a := w.get(attr(script[0], "src")); a.StatusCode != 200 || !strings.Contains(string(a.body), "requestSubmit") {
			t.Errorf("the script: %d", a.StatusCode)
		}
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
	if a := w.get(address, browser, with(in.Cookies()[0])); a.StatusCode != 303 ||
		a.Header.Get("Location") != "/ops/audit" {
		t.Errorf("who is signed in: %d %v", a.StatusCode, a.Header)
	}
	if err := w.store.Access.RevokeToken(t.Context(), "operator"); err != nil {
		t.Fatal(err)
	}
	w.want(w.get("/ops/api/v1/me", with(in.Cookies()[0])), 401, fault.Unauthenticated)
}

func TestAOneTimeCodeThatIsNoGoodSignsNobodyIn(t *testing.T) {
	t.Parallel()
	cases := map[string]func(w *world, code string) string{
		"too old":           func(w *world, code string) string { w.advance(access.CodeLife); return code },
		"a prefix":          func(_ *world, code string) string { return code[:len(code)-1] },
		"another case":      func(_ *world, code string) string { return strings.ToLower(code) },
		"another":           func(*world, string) string { return strings.Repeat("A", 43) },
		"of another server": func(w *world, code string) string { w.build(); return code },
		"of a revoked token": func(w *world, code string) string {
			if err := w.store.Access.RevokeToken(w.Context(), "operator"); err != nil {
				w.Fatal(err)
			}
			return code
		},
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
		if a := w.submit("/ops/sign-in", url.Values{"code": {code}, "token": {"x"}}); a.StatusCode != 400 {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
		if a := w.submit("/ops/sign-in", url.Values{"code": {code}},
			set("Sec-Fetch-Site", "cross-site")); a.StatusCode != 403 {
			t.Errorf("from another site: %d", a.StatusCode)
		}
		if a := w.submit("/ops/sign-in", url.Values{"code": {code}}); a.StatusCode != 303 {
			t.Errorf("the code was used up by what was refused: %d %s", a.StatusCode, a.body)
		}
	})
	t.Run("the oldest of many", func(t *testing.T) {
		w, code := onceWorld(t, 0)
		token := w.token("ann", 2, access.Read)
		for range 16 {
			if _, err := w.web.Access.OneTimeCode(t.Context(), token); err != nil {
				t.Fatal(err)
			}
		}
		if a := w.submit("/ops/sign-in", url.Values{"code": {code}}); a.StatusCode != 401 {
			t.Errorf("%d", a.StatusCode)
		}
	})
	t.Run("for a token that is none", func(t *testing.T) {
		w, _ := onceWorld(t, 0)
		if _, err := w.web.Access.OneTimeCode(t.Context(), "wrong"); fault.CodeOf(err) != fault.Unauthenticated {
			t.Errorf("got %v", err)
		}
	})
}

func TestACodeIsGoodForOneOfManyWhoTryItAtOnce(t *testing.T) {
	t.Parallel()
	w, code := onceWorld(t, 0)
	const tries = 32
	answers := make(chan int, tries)
	for range tries {
		go func() { answers <- w.submit("/ops/sign-in", url.Values{"code": {code}}).StatusCode }()
	}
	signedIn := 0
	for range tries {
		if status := <-answers; status == 303 {
			signedIn++
		}
	}
	if signedIn != 1 {
		t.Errorf("%d were signed in", signedIn)
	}
}
