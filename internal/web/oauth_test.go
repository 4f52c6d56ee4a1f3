package web_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
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
	if csp := page.Header.Get(
		"Content-Security-Policy",
	); !strings.Contains(csp, "form-action 'self' http://127.0.0.1:7777;") ||
		!strings.Contains(csp, "frame-ancestors 'none'") ||
		len(d.find("script")) > 0 {
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
