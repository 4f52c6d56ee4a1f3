package web_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/agents/oauth"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestAProgramIsLetInByConsentAndIsAnAgentThen(t *testing.T) {
	t.Parallel()
	p, boss := programWorld(t, nil)
	a := p.do("POST", "/mcp", greeting)
	if said := a.Header.Get("Www-Authenticate"); a.StatusCode != 401 || !strings.Contains(said,
		`resource_metadata="http://127.0.0.1:8080/.well-known/oauth-protected-resource/mcp"`) ||
		!strings.Contains(said, `scope="mcp"`) {
		t.Fatalf("%d %s", a.StatusCode, said)
	}
	resource := p.get("/.well-known/oauth-protected-resource/mcp")
	if got, _ := resource.json["authorization_servers"].([]any); len(got) != 1 || got[0] != "http://127.0.0.1:8080" {
		t.Fatalf("%s", resource.body)
	}
	for _, path := range []string{"/.well-known/oauth-authorization-server",
		"/.well-known/oauth-authorization-server/mcp"} {
		if meta := p.get(path); meta.json["issuer"] != "http://127.0.0.1:8080" ||
			meta.json["token_endpoint"] != "http://127.0.0.1:8080/oauth/token" {
			t.Fatalf("%s", meta.body)
		}
	}
	page, form := p.asked(nil, boss)
	d := p.read(page, "/oauth/authorize", 200)
	d.has("Claude Code", "a program on your computer (127.0.0.1:7777)", "boss", "Tier 1", "Tier 2", "90 days at most",
		"Dry run")
	d.lacks("Tier 3", "in dry run")
	if csp := page.Header.Get("Content-Security-Policy"); len(d.find("script")) > 0 ||
		!strings.Contains(csp, "form-action 'self' http://127.0.0.1:7777;") ||
		!strings.Contains(csp, "frame-ancestors 'none'") {
		t.Errorf("%s", csp)
	}
	form.Set("tier", "2")
	form.Set("repos", "joe/infra, joe/*")
	form.Set("dry_run", "on")
	back := p.back(p.answered("allow", form, page, boss))
	access, refresh := p.keys(p.exchange(back.Get("code"), nil))
	made := p.tokenNamed("boss by Claude Code")
	if !made.Agent || !made.DryRun || made.MaxTier != 2 || !slices.Equal(made.Repos, []string{"joe/infra", "joe/*"}) ||
		made.Client != "Claude Code" || !made.ExpiresAt.Equal(p.Now().AddDate(0, 0, 90)) {
		t.Errorf("%+v", made)
	}
	if !p.letsIn(access) || p.letsIn(refresh) {
		t.Error("the access token opens /mcp, and nothing else does")
	}
	for _, token := range []string{access, refresh} { // it is an agent's, and no person's
		p.want(p.get("/api/v1/proposals", bearer(token)), 401, "unauthenticated")
	}
	list := p.page("/tokens", 200, boss)
	list.has("boss by Claude Code", "let in by consent", "joe/infra, joe/*", "Tier 2")
	list.lacks(access, refresh)
	for _, action := range []string{"oauth.register", "oauth.allow", "oauth.grant"} {
		if got := p.rows(action); len(got) != 1 || strings.Contains(got[0].Message, "cops_") {
			t.Errorf("%s: %+v", action, got)
		}
	}
	if row := p.rows("oauth.allow")[0]; row.Caller != "boss" || !strings.Contains(row.Message, "tier 2") ||
		!strings.Contains(row.Message, "joe/infra") {
		t.Errorf("%+v", row)
	}
	if a := p.submit("/tokens/"+made.ID+"/revoke", nil, boss); a.StatusCode != http.StatusSeeOther || p.letsIn(access) {
		t.Errorf("it was cut off, and is let in: %d", a.StatusCode)
	}
	p.refusedWith(p.refresh(refresh, nil), "invalid_grant")
}

// programs lets agents in by people's consent.
func (w *world) programs() *oauth.Service {
	kernel := w.kernel()
	return oauth.New(oauth.Options{
		Kernel: func() *operation.Kernel { return kernel }, Store: func() oauth.Store { return w.store.Access },
		Gatekeeper: func() oauth.Gatekeeper { return w.web.Access },
		Record:     func(ctx context.Context, a record.Attempt) error { return w.store.Ledger.Record(ctx, a, nil) },
		MaxTier:    func() gitprovider.Tier { return w.agents.settings.MaxTier }, Random: rand.Reader, Now: w.Now,
		NewID: w.flow.NewID, Documents: w.documents,
	})
}

// program is a client of MCP that comes in by consent.
type program struct {
	*world
	id, redirect, verifier string
	minted                 int    // tokens that were asked for, whose names differ
	from                   string // the address that it asks from
}

const callback = "http://127.0.0.1:7777/callback"

// register registers a program that calls itself Claude Code.
func (w *world) register() *program {
	w.Helper()
	a := w.do("POST", "/oauth/register", `{"client_name":"Claude Code","redirect_uris":["http://127.0.0.1/callback",`+
		`"https://claude.example/back?x=1"],"token_endpoint_auth_method":"none","logo_uri":"https://x.example/"}`)
	if a.StatusCode != http.StatusCreated || a.json["client_secret"] != nil || a.json["client_name"] != "Claude Code" {
		w.Fatalf("%d %s", a.StatusCode, a.body)
	}
	id, _ := a.json["client_id"].(string)
	return w.program(id)
}

// program is one with an id.
func (w *world) program(id string) *program {
	return &program{world: w, id: id, redirect: callback, verifier: strings.Repeat("v", 43), from: "127.0.0.1:50000"}
}

// wants returns the parameters with which the program sends the browser.
func (p *program) wants(change url.Values) url.Values {
	sum := sha256.Sum256([]byte(p.verifier))
	v := url.Values{
		"response_type": {"code"}, "client_id": {p.id}, "redirect_uri": {p.redirect}, "state": {"st&te"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}, "scope": {"mcp"},
		"resource": {"http://127.0.0.1:8080/mcp"},
	}
	maps.Copy(v, change)
	for name, values := range change {
		if len(values) == 0 {
			delete(v, name)
		}
	}
	return v
}

// asked is the page that asks a person, and what its form sends.
func (p *program) asked(change url.Values, who ...edit) (reply, url.Values) {
	p.Helper()
	a := p.get("/oauth/authorize?"+p.wants(change).Encode(), append([]edit{browser}, who...)...)
	if a.StatusCode != http.StatusOK {
		return a, url.Values{}
	}
	return a, p.read(a, "/oauth/authorize", 200).fields()
}

// answered presses one of the two buttons.
func (p *program) answered(button string, form url.Values, page reply, who ...edit) reply {
	p.Helper()
	return p.submit("/oauth/authorize/"+button, form, append(who, cookies(page.Cookies()...))...)
}

// code returns the program's code after a person's consent at tier 2.
func (p *program) code(who ...edit) string {
	p.Helper()
	page, form := p.asked(nil, who...)
	form.Set("tier", "2")
	back := p.back(p.answered("allow", form, page, who...))
	if back.Get("code") == "" || back.Get("state") != "st&te" || back.Get("iss") != "http://127.0.0.1:8080" {
		p.Fatalf("sent back with %v", back)
	}
	return back.Get("code")
}

// back returns the parameters with which the browser is sent back.
func (p *program) back(a reply) url.Values {
	p.Helper()
	u, err := url.Parse(a.Header.Get("Location"))
	if err != nil || a.StatusCode != http.StatusSeeOther || !strings.HasPrefix(u.String(), p.redirect) {
		p.Fatalf("%d %v: %s", a.StatusCode, a.Header, a.body)
	}
	return u.Query()
}

// post asks an endpoint for programs.
func (p *program) post(path string, form url.Values) reply {
	p.Helper()
	return p.do("POST", path, form.Encode(), set("Content-Type", formType), from(p.from))
}

func (p *program) exchange(code string, change url.Values) reply {
	p.Helper()
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "client_id": {p.id},
		"redirect_uri": {p.redirect}, "code_verifier": {p.verifier}, "resource": {"http://127.0.0.1:8080/mcp"}}
	maps.Copy(form, change)
	return p.post("/oauth/token", form)
}

func (p *program) refresh(token string, change url.Values) reply {
	p.Helper()
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}, "client_id": {p.id}}
	maps.Copy(form, change)
	return p.post("/oauth/token", form)
}

// keys are the access token and the refresh token of an answer.
func (p *program) keys(a reply) (access, refresh string) {
	p.Helper()
	access, _ = a.json["access_token"].(string)
	refresh, _ = a.json["refresh_token"].(string)
	if a.StatusCode != http.StatusOK || access == "" || refresh == "" || a.json["token_type"] != "Bearer" ||
		a.json["expires_in"] != 3600.0 || a.json["scope"] != "mcp" || a.Header.Get("Cache-Control") != "no-store" {
		p.Fatalf("%d %v: %s", a.StatusCode, a.Header, a.body)
	}
	return access, refresh
}

// letsIn reports whether an access token opens /mcp.
func (w *world) letsIn(token string) bool {
	w.Helper()
	a := w.do("POST", "/mcp", greeting, bearer(token), set("Accept", "application/json, text/event-stream"))
	if a.StatusCode != http.StatusOK && a.StatusCode != http.StatusUnauthorized {
		w.Fatalf("%d %s", a.StatusCode, a.body)
	}
	return a.StatusCode == http.StatusOK
}

// refusedWith fails the test unless an answer is an error of OAuth with the code, and nothing of tokens is in it.
func (p *program) refusedWith(a reply, code string) {
	p.Helper()
	status := http.StatusBadRequest
	if code == "invalid_client" { // RFC 6749, 5.2
		status = http.StatusUnauthorized
	}
	if a.StatusCode != status || a.json["error"] != code || strings.Contains(string(a.body), "cops_") ||
		a.Header.Get("Cache-Control") != "no-store" {
		p.Errorf("%d %s, want %s", a.StatusCode, a.body, code)
	}
}

// writtenTokens are all tokens that there are.
func (w *world) writtenTokens() []access.Token {
	w.Helper()
	all, err := w.store.Access.Tokens(w.Context())
	must.Do(w, err)
	return all
}

// written describes all tokens, for tests that want nothing written.
func (w *world) written() string {
	w.Helper()
	out := ""
	for _, t := range w.writtenTokens() {
		out += fmt.Sprintln(t.ID, t.Name, t.MaxTier, t.Repos, t.RevokedAt, t.ExpiresAt)
	}
	return out
}

// rows are the rows of the audit with an action, newest first.
func (w *world) rows(action string) (out []record.RecordedAttempt) {
	w.Helper()
	for _, row := range w.attempts() {
		if row.Action == action {
			out = append(out, row)
		}
	}
	return out
}

// boss is the login of somebody who may do everything.
func (w *world) boss() edit {
	w.Helper()
	return with(w.signIn(w.token("boss", gitprovider.TierRemediate, "propose", "read", "operate")))
}

func programWorld(t testing.TB, change func(*world)) (*program, edit) {
	t.Helper()
	w := newWorld(t, func(w *world) {
		w.strangers = true
		if change != nil {
			change(w)
		}
	})
	boss := w.boss()
	return w.register(), boss
}
