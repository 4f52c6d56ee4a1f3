package web_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
)

func TestTokensAreMadeListedAndRevokedOverREST(t *testing.T) {
	w := newWorld(t, func(w *world) { w.strangers = true })
	boss := bearer(w.token("boss", 2, "read", "review", "operate"))
	a := w.do("POST", "/api/v1/tokens", `{"name":"ann","scopes":["read","review"],"max_tier":2}`, boss)
	w.want(a, 201, "")
	var made struct{ ID, Token, Name string }
	if err := json.Unmarshal(a.body, &made); err != nil || !strings.HasPrefix(made.Token, "cops_") || a.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%s, %v", a.body, a.Header)
	}
	ann := bearer(made.Token)
	w.want(w.get("/api/v1/proposals", ann), 200, "")
	for name, c := range map[string]struct {
		method, target, body string
		with                 edit
		status               int
		code                 fault.Code
	}{
		"a scope that one lacks":    {"POST", "/api/v1/tokens", `{"name":"x","scopes":["propose"]}`, boss, 403, fault.Forbidden},
		"a tier that one lacks":     {"POST", "/api/v1/tokens", `{"name":"x","scopes":["read"],"max_tier":3}`, boss, 403, fault.Forbidden},
		"a name that is taken":      {"POST", "/api/v1/tokens", `{"name":"ann","scopes":["read"]}`, boss, 409, fault.Conflict},
		"a scope that is none":      {"POST", "/api/v1/tokens", `{"name":"x","scopes":["root"]}`, boss, 400, fault.InvalidArgument},
		"no scope":                  {"POST", "/api/v1/tokens", `{"name":"x","scopes":[]}`, boss, 400, fault.InvalidArgument},
		"no name":                   {"POST", "/api/v1/tokens", `{"name":"","scopes":["read"]}`, boss, 400, fault.InvalidArgument},
		"without the scope operate": {"POST", "/api/v1/tokens", `{"name":"x","scopes":["read"]}`, ann, 403, fault.Forbidden},
		"a list, without the scope": {"GET", "/api/v1/tokens", "", ann, 403, fault.Forbidden},
		"one that is not there":     {"POST", "/api/v1/tokens/none/revoke", "", boss, 404, fault.NotFound},
		"revoking without scope":    {"POST", "/api/v1/tokens/boss/revoke", "", ann, 403, fault.Forbidden},
	} {
		before, rows := w.countTokens(), len(w.attempts())
		w.want(w.do(c.method, c.target, c.body, c.with), c.status, c.code)
		if w.countTokens() != before {
			t.Errorf("%s: refused, and a token was made", name)
		}
		if added := len(w.attempts()) - rows; c.method == "POST" && added != 1 {
			t.Errorf("%s: %d rows", name, added)
		}
	}
	list := w.get("/api/v1/tokens", boss)
	if w.want(list, 200, ""); !strings.Contains(string(list.body), `"name":"ann"`) || strings.Contains(string(list.body), made.Token) {
		t.Errorf("%s", list.body)
	}
	w.want(w.do("POST", "/api/v1/tokens/"+made.ID+"/revoke", "", boss), 200, "")
	w.want(w.get("/api/v1/proposals", ann), 401, fault.Unauthenticated)
	if got := w.attempts()[0]; got.Action != "token.revoke" || got.Caller != "boss" {
		t.Errorf("%+v", got)
	}
}

func (w *world) countTokens() int {
	w.Helper()
	all, err := w.store.Access.Tokens(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return len(all)
}

func TestATokenIsShownOnceInTheDashboard(t *testing.T) {
	w := newWorld(t, func(w *world) { w.strangers = true })
	boss := w.signIn(w.token("boss", 3, "read", "operate"))
	w.page("/tokens", 200, with(boss)).has("Make a token", "boss")
	a := w.submit("/tokens", url.Values{"name": {"ann"}, "tier": {"2"}, "scope": {"read"}}, with(boss))
	d := w.read(a, "/tokens", 201)
	d.has("It is shown this once", "ann")
	secret := ""
	for _, pre := range d.find("pre") {
		secret = pre.FirstChild.Data
	}
	if !strings.HasPrefix(secret, "cops_") || a.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("secret %q, %v", secret, a.Header)
	}
	again := w.page("/tokens", 200, with(boss))
	again.has("ann")
	again.lacks(secret)
	w.want(w.get("/api/v1/proposals", bearer(secret)), 200, "")
	w.read(w.submit("/tokens", url.Values{"name": {"ann"}, "tier": {"1"}, "scope": {"read"}}, with(boss)), "/tokens", 409).has("there is a token with the name")
	w.read(w.submit("/tokens", url.Values{"name": {"eve"}, "tier": {"1"}, "scope": {"review"}}, with(boss)), "/tokens", 403).has("cannot give it")
	w.read(w.submit("/tokens", url.Values{"name": {"eve"}, "tier": {"1"}}, with(boss)), "/tokens", 400)
	if a := w.submit("/tokens/ann/revoke", nil, with(boss)); a.StatusCode != 303 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	w.want(w.get("/api/v1/proposals", bearer(secret)), 401, fault.Unauthenticated)
	reader := w.signIn(w.token("reader", 1, "read"))
	w.page("/tokens", 403, with(reader))
	w.page("/", 200, with(reader)).lacks("Tokens")
}
