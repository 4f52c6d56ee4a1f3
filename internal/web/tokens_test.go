package web_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestTokensAreMadeListedAndRevokedOverREST(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strangers)
	boss := bearer(w.token("boss", 2, "read", "review", "operate"))
	a := w.do("POST", "/api/v1/tokens", `{"name":"ann","scopes":["read","review"],"max_tier":2}`, boss)
	w.want(a, 201, "")
	secret, id := a.json["token"].(string), a.json["id"].(string)
	if !strings.HasPrefix(secret, "cops_") || a.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%s, %v", a.body, a.Header)
	}
	ann := bearer(secret)
	w.want(w.get("/api/v1/proposals", ann), 200, "")
	for name, c := range map[string]struct {
		method, target, body string
		with                 edit
		status               int
		code                 fault.Code
	}{
		"a scope that one lacks": {"POST", "/api/v1/tokens", `{"name":"x","scopes":["propose"]}`, boss, 403,
			fault.Forbidden},
		"a tier that one lacks": {"POST", "/api/v1/tokens", `{"name":"x","scopes":["read"],"max_tier":3}`, boss, 403,
			fault.Forbidden},
		"a name that is taken": {"POST", "/api/v1/tokens", `{"name":"ann","scopes":["read"]}`, boss, 409,
			fault.Conflict},
		"a scope that is none": {"POST", "/api/v1/tokens", `{"name":"x","scopes":["root"]}`, boss, 400,
			fault.InvalidArgument},
		"no scope": {"POST", "/api/v1/tokens", `{"name":"x","scopes":[]}`, boss, 400, fault.InvalidArgument},
		"no name": {"POST", "/api/v1/tokens", `{"name":"","scopes":["read"]}`, boss, 400,
			fault.InvalidArgument},
		"without the scope operate": {"POST", "/api/v1/tokens", `{"name":"x","scopes":["read"]}`, ann, 403, fault.Forbidden},
		"a list, without the scope": {"GET", "/api/v1/tokens", "", ann, 403, fault.Forbidden},
		"one that is not there":     {"POST", "/api/v1/tokens/none/revoke", "", boss, 404, fault.NotFound},
		"revoking without scope":    {"POST", "/api/v1/tokens/boss/revoke", "", ann, 403, fault.Forbidden},
	} {
		before, rows := w.written(), len(w.attempts())
		w.want(w.do(c.method, c.target, c.body, c.with), c.status, c.code)
		if w.written() != before {
			t.Errorf("%s: refused, and a token was made", name)
		}
		if added := len(w.attempts()) - rows; c.method == "POST" && added != 1 {
			t.Errorf("%s: %d rows", name, added)
		}
	}
	w.says(w.get("/api/v1/tokens", boss), `"name":"ann"`, "!"+secret)
	w.want(w.do("POST", "/api/v1/tokens/"+id+"/revoke", "", boss), 200, "")
	w.want(w.get("/api/v1/proposals", ann), 401, fault.Unauthenticated)
	if got := w.attempts()[0]; got.Action != "token.revoke" || got.Caller != "boss" {
		t.Errorf("%+v", got)
	}
}

func TestATokenIsShownOnceInTheDashboard(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strangers)
	boss := w.signIn(w.token("boss", 3, "read", "operate"))
	w.page("/tokens/people", 200, with(boss)).has("Make a token", "boss")
	a := w.submit("/tokens/people", url.Values{"name": {"ann"}, "tier": {"2"}, "scope": {"read"}}, with(boss))
	d := w.read(a, "/tokens/people", 201)
	d.has("It is shown this once", "ann")
	d.lacks("CLAUDEOPS_AGENT_TOKEN")
	secret := shownSecret(d)
	if !strings.HasPrefix(secret, "cops_") || a.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("secret %q, %v", secret, a.Header)
	}
	again := w.page("/tokens/people", 200, with(boss))
	again.has("ann")
	again.lacks(secret)
	w.page("/tokens", 200, with(boss)).lacks("Revoke ann", "Revoke boss")
	w.want(w.get("/api/v1/proposals", bearer(secret)), 200, "")
	for status, form := range map[int]url.Values{
		409: {"name": {"ann"}, "tier": {"1"}, "scope": {"read"}}, 403: {"name": {"eve"}, "tier": {"1"}, "scope": {"review"}},
		400: {"name": {"eve"}, "tier": {"1"}},
	} {
		w.read(w.submit("/tokens/people", form, with(boss)), "/tokens/people", status).has("Make a token", form.Get("name"))
	}
	id := w.tokenNamed("ann").ID
	w.leads(w.submit("/tokens/"+id+"/revoke", nil, with(boss)), "/tokens/people?revoked="+id)
	w.page("/tokens/people?revoked="+id, 200, with(boss)).has("The token ann is revoked")
	w.page("/tokens/people?revoked=somebody", 200, with(boss)).lacks("The token")
	w.want(w.get("/api/v1/proposals", bearer(secret)), 401, fault.Unauthenticated)
	reader := w.signIn(w.token("reader", 1, "read"))
	for _, path := range []string{"/tokens", "/tokens/people"} {
		w.page(path, 403, with(reader))
	}
	w.page("/", 200, with(reader)).lacks("Tokens")
}

// shownSecret is the secret that a page shows.
func shownSecret(d document) string {
	d.Helper()
	return d.withID("secret").root.FirstChild.Data
}

func (w *world) tokenNamed(name string) access.Token {
	w.Helper()
	all := w.writtenTokens()
	at := slices.IndexFunc(all, func(t access.Token) bool { return t.Name == name })
	if at < 0 {
		w.Fatalf("no token %s", name)
	}
	return all[at]
}

func TestAnAgentsTokenIsMadeInTheDashboardWithTheLinesForItsClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strangers)
	boss := w.signIn(w.token("boss", 2, "propose", "read", "operate"))
	empty := w.page("/tokens", 200, with(boss))
	empty.has("No agent has a token", "Make a token for an agent", "Tier 2")
	empty.lacks("Tier 3")
	form := url.Values{"name": {"laptop"}, "tier": {"2"}, "repos": {"joe/infra,  joe/*"}, "days": {""},
		"dry_run": {"on"}}
	a := w.submit("/tokens", form, with(boss))
	d := w.read(a, "/tokens", 201)
	secret := shownSecret(d)
	if !strings.HasPrefix(secret, "cops_") || strings.Count(string(a.body), secret) != 1 ||
		a.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("secret %q, %v: %s", secret, a.Header, a.body)
	}
	if len(d.find("script")) > 0 {
		t.Error("the page with the secret has a script")
	}
	d.has("It is shown this once", "Claude Code", "Codex", "Gemini", "Cursor", "VS Code", "claude mcp add-json",
		"read -rs CLAUDEOPS_AGENT_TOKEN",
		"http://127.0.0.1:8080/mcp", `"Authorization": "Bearer ${env:CLAUDEOPS_AGENT_TOKEN}"`)
	got := w.tokenNamed("laptop")
	if !got.Agent || !got.DryRun || got.ReadOnly || got.MaxTier != 2 || len(got.Scopes) > 0 ||
		!slices.Equal(got.Repos, []string{"joe/infra", "joe/*"}) ||
		!got.ExpiresAt.Equal(w.Now().AddDate(0, 0, 90)) {
		t.Errorf("%+v", got)
	}
	if row := w.attempts()[0]; row.Action != "token.create" || row.Caller != "boss" ||
		strings.Contains(fmt.Sprint(row), secret) {
		t.Errorf("%+v", row)
	}
	w.want(w.get("/api/v1/proposals", bearer(secret)), 401, fault.Unauthenticated)
	if _, err := w.web.Access.AgentToken(t.Context(), secret); err != nil {
		t.Error(err)
	}
	w.advance(time.Hour)
	list := w.page("/tokens", 200, with(boss))
	list.has("laptop", "joe/infra, joe/* dry run", "Tier 2", "in 89 d", "used 1 h ago",
		"its connections end within seconds")
	list.lacks(secret, "Revoke boss", "joe/* dry run read-only")
	w.page("/tokens/people", 200, with(boss)).lacks("laptop")
	w.leads(w.submit("/tokens/"+got.ID+"/revoke", nil, with(boss)), "/tokens?revoked="+got.ID)
	w.page("/tokens?revoked="+got.ID, 200, with(boss)).has("The token laptop is revoked", "No agent has a token",
		"Revoked and expired tokens")
	if _, err := w.web.Access.AgentToken(t.Context(), secret); fault.CodeOf(err) != fault.Unauthenticated {
		t.Errorf("%v", err)
	}
	w.leads(w.get("/tokens/"+got.ID+"/revoke", browser, with(boss)), "/tokens")
}

func TestAFormForAnAgentsTokenComesBackWithWhatWasWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strangers)
	boss := w.signIn(w.token("boss", 2, "read", "operate"))
	w.agentToken("taken", 1)
	for name, c := range map[string]struct {
		edit   func(url.Values)
		status int
		says   string
	}{
		"a tier above their own": {func(f url.Values) { f.Set("tier", "3") }, 403, "cannot give tier"},
		"no tier":                {func(f url.Values) { f.Set("tier", "x") }, 400, "max_tier"},
		"a name that is taken":   {func(f url.Values) { f.Set("name", "taken") }, 409, "there is a token with the name"},
		"no name":                {func(f url.Values) { f.Set("name", " ") }, 400, "name"},
		"no repository":          {func(f url.Values) { f.Set("repos", "joe/infra, nothing") }, 400, "names no repository"},
		"days that are none":     {func(f url.Values) { f.Set("days", "soon") }, 400, "expires_in_days"},
		"too many days":          {func(f url.Values) { f.Set("days", "3651") }, 400, "expires_in_days"},
	} {
		t.Run(name, func(t *testing.T) {
			form := url.Values{"name": {"laptop"}, "tier": {"2"}, "repos": {"joe/infra"}, "days": {"30"},
				"read_only": {"on"}}
			c.edit(form)
			tokens, rows := w.written(), len(w.attempts())
			d := w.read(w.submit("/tokens", form, with(boss)), "/tokens", c.status)
			d.has(c.says)
			for _, input := range d.find("input") {
				if attr(input, "type") == "checkbox" {
					if checked := hasAttr(input, "checked"); checked != form.Has(attr(input, "name")) {
						t.Errorf("%s comes back as %v", attr(input, "name"), checked)
					}
					continue
				}
				if name := attr(input, "name"); form.Has(name) && attr(input, "value") != form.Get(name) {
					t.Errorf("%s comes back as %q", name, attr(input, "value"))
				}
			}
			if w.written() != tokens || len(w.attempts()) != rows+1 {
				t.Errorf("%d rows, and the tokens are %s", len(w.attempts())-rows, w.written())
			}
		})
	}
}

func TestTheLinesForAClientHaveTheAddressAtWhichItReachesTheServer(t *testing.T) {
	t.Parallel()
	form := url.Values{"name": {"laptop"}, "tier": {"1"}}
	made := func(w *world, edits ...edit) document {
		boss := bearer(w.token("boss", 2, "read", "operate"))
		return w.read(w.submit(w.web.Network.BasePath+"/tokens", form, append(edits, boss)...), "/tokens", 201)
	}
	public := newWorld(t, func(w *world) { w.strangers, w.web.Settings.PublicURL = true, "https://ops.example/base" })
	d := made(public)
	d.has("https://ops.example/base/mcp")
	d.lacks("127.0.0.1")
	below := newWorld(t, func(w *world) { w.strangers, w.web.Network.BasePath = true, "/ops" })
	made(below).has("http://127.0.0.1:8080/ops/mcp")
	open := newWorld(t, func(w *world) { w.strangers, w.web.Network.Hosts = true, []string{"ops.example"} })
	d = made(open, host("ops.example"))
	d.has("use https://", "CLAUDEOPS_PUBLIC_URL", "It is shown this once")
	d.lacks("ops.example/mcp")
}

func TestAnAgentsTokenIsMadeOverREST(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strangers)
	boss := bearer(w.token("boss", 2, "read", "operate"))
	a := w.do("POST", "/api/v1/tokens",
		`{"name":"laptop","agent":true,"max_tier":2,"repos":["joe/*"],"expires_in_days":7,"read_only":true}`, boss)
	w.want(a, 201, "")
	if until := w.Now().AddDate(0, 0, 7).Format(time.RFC3339); a.json["agent"] != true || a.json["read_only"] != true ||
		a.json["expires_at"] != until {
		t.Errorf("%s", a.body)
	}
	for name, body := range map[string]string{
		"scopes of an agent":              `{"name":"x","agent":true,"scopes":["read"]}`,
		"repositories of a person":        `{"name":"x","scopes":["read"],"repos":["joe/infra"]}`,
		"a person's in a dry run":         `{"name":"x","scopes":["read"],"dry_run":true}`,
		"a person's that is read-only":    `{"name":"x","scopes":["read"],"read_only":true}`,
		"no scope, and not for an agent":  `{"name":"x"}`,
		"a repository that is not one":    `{"name":"x","agent":true,"repos":["joe"]}`,
		"more repositories than it names": `{"name":"x","agent":true,"repos":["a/b"` + strings.Repeat(`,"a/b"`, 50) + `]}`,
	} {
		if before := w.written(); w.do("POST", "/api/v1/tokens", body, boss).StatusCode != 400 || w.written() != before {
			t.Errorf("%s is taken", name)
		}
	}
}

// What was made with a token ends with it, and with what that was made with, at every way in, from the next request on.
func TestWhatATokenHasMadeEndsWithIt(t *testing.T) {
	t.Parallel()
	const configured = "a-token-of-the-configuration"
	for name, end := range map[string]func(w *world){
		"revoked": func(w *world) {
			root := bearer(w.token("root", 3, access.AllScopes()...))
			w.want(w.do("POST", "/api/v1/tokens/first/revoke", "", root), 200, "")
			row := w.rows("token.revoke")[0]
			for _, made := range []string{"second", "laptop", "second by Claude Code"} {
				if !strings.Contains(row.Message, made) {
					w.Errorf("the row does not name %s: %s", made, row.Message)
				}
			}
		},
		"expired":                      func(w *world) { w.advance(25 * time.Hour) },
		"its maker's of configuration": func(w *world) { w.tokens = nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(w *world) { w.strangers, w.tokens = true, []string{configured} })
			make := func(by, body string) string {
				a := w.do("POST", "/api/v1/tokens", body, bearer(by))
				w.want(a, 201, "")
				return a.json["token"].(string)
			}
			first := make(configured, `{"name":"first","max_tier":2,"scopes":["read","propose","operate"],"expires_in_days":1}`)
			second := make(first, `{"name":"second","max_tier":2,"scopes":["read","propose","operate"]}`)
			agent := make(second, `{"name":"laptop","agent":true,"max_tier":2}`)
			login := with(w.signIn(second))
			p := w.register()
			key, refresh := p.keys(p.exchange(p.code(login), nil))
			was, err := w.web.Access.AgentToken(t.Context(), agent)
			if err != nil || !p.letsIn(key) || !w.letsIn(agent) {
				t.Fatalf("not let in before: %v", err)
			}
			end(w)
			for _, secret := range []string{first, second} {
				w.want(w.get("/api/v1/me", bearer(secret)), 401, fault.Unauthenticated)
			}
			w.want(w.get("/api/v1/me", login), 401, fault.Unauthenticated)
			if w.letsIn(agent) || p.letsIn(key) {
				t.Error("an agent or a program is let in at /mcp")
			}
			if err := w.web.Access.StillAgent(t.Context(), was); fault.CodeOf(err) != fault.Unauthenticated {
				t.Errorf("an agent that is connected goes on: %v", err)
			}
			p.refusedWith(p.refresh(refresh, nil), "invalid_grant")
		})
	}
}

// A line of tokens, each made with the one before, ends at every way in; the first one can always make another.
func TestALineOfTokensEnds(t *testing.T) {
	t.Parallel()
	const all = `"max_tier":2,"scopes":["read","propose","operate"]`
	p, _ := programWorld(t, nil)
	line := []string{p.token("first", 2, "read", "propose", "operate")} // made at the command line
	for i := 1; i < record.MaxDescent; i++ {
		a := p.do("POST", "/api/v1/tokens", fmt.Sprintf(`{"name":"token-%d",%s}`, i, all), bearer(line[i-1]))
		p.want(a, 201, "")
		line = append(line, a.json["token"].(string))
	}
	last := bearer(line[len(line)-1])
	browser := with(p.signIn(line[len(line)-1]))
	before := len(p.writtenTokens())
	for _, body := range []string{`{"name":"next",` + all + `}`, `{"name":"next","agent":true}`} {
		a := p.do("POST", "/api/v1/tokens", body, last)
		p.want(a, 403, fault.Forbidden)
		p.says(a, "use a token nearer to the first, first")
	}
	form := url.Values{"name": {"next"}, "tier": {"1"}, "scope": {"read"}}
	p.read(p.submit("/tokens/people", form, browser), "/tokens/people", 403).has("use a token nearer to the first")
	p.read(p.submit("/tokens", url.Values{"name": {"next"}, "tier": {"1"}}, browser), "/tokens", 403).
		has("use a token nearer to the first")
	page, asked := p.asked(nil, browser)
	asked.Set("tier", "1")
	p.says(p.status(p.answered("allow", asked, page, browser), 403), "use a token nearer to the first")
	if after := len(p.writtenTokens()); after != before {
		t.Errorf("%d tokens were made", after-before)
	}
	for _, row := range append(p.rows("token.create"), p.rows("oauth.allow")...) {
		if row.Outcome == record.OutcomeRefused && len(row.Actor.Descent()) != record.MaxDescent {
			t.Errorf("a refusal by %+v", row.Actor)
		}
	}
	p.want(p.do("POST", "/api/v1/tokens", `{"name":"next",`+all+`}`, bearer(line[0])), 201, "")
	p.code(with(p.signIn(line[1])))
}

// connect records a connection, as the process that serves it does.
func (w *world) connect(c record.Connection) {
	w.Helper()
	if c.Since.IsZero() {
		c.Since = w.Now()
	}
	if c.Way == "" {
		c.Way, c.Peer = "unix", "pid 4711, uid 1000"
	}
	must.Do(w, w.store.Connections().OpenConnection(context.Background(), c))
}

// cut returns who has cut a connection off; "" if it was not cut off.
func (w *world) cut(id string) string {
	w.Helper()
	open, err := w.store.Connections().Connections(context.Background())
	must.Do(w, err)
	for _, c := range open {
		if c.ID == id {
			return c.CutBy
		}
	}
	return ""
}

func TestConnectedAgentsAreListedAndCutOffOverREST(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strangers)
	boss, reader := bearer(w.token("boss", 2, "read", "operate")), bearer(w.token("reader", 2, "read"))
	if a := w.get("/api/v1/connections", reader); string(a.body) != `{"connections":[]}` {
		t.Errorf("nobody is connected: %s", a.body)
	}
	w.connect(record.Connection{ID: "conn-1", Session: "run-1", Tier: 1, DryRun: true})
	w.connect(record.Connection{ID: "conn-2", Credential: "laptop", Tier: 2, ReadOnly: true, Way: "https",
		Peer: "192.0.2.7"})
	w.says(w.get("/api/v1/connections", reader), `"session":"run-1"`, `"token":"laptop"`, `"tier":2`, `"dry_run":true`,
		`"read_only":true`, `"peer":"192.0.2.7"`)
	for name, c := range map[string]struct {
		target string
		with   edit
		status int
		code   fault.Code
	}{
		"without the scope":     {"/api/v1/connections/conn-1/cut", reader, 403, fault.Forbidden},
		"one that is not there": {"/api/v1/connections/none/cut", boss, 404, fault.NotFound},
	} {
		rows := len(w.attempts())
		w.want(w.do("POST", c.target, "", c.with), c.status, c.code)
		if got := w.attempts(); len(got) != rows+1 || got[0].Action != "connection.cut" || got[0].Code != c.code {
			t.Errorf("%s: rows %+v", name, got[:1])
		}
		if w.cut("conn-1")+w.cut("conn-2") != "" {
			t.Errorf("%s: it was refused, and somebody is cut off", name)
		}
	}
	w.want(w.do("POST", "/api/v1/connections/conn-2/cut", "", boss), 202, "")
	if got := w.attempts()[0]; got.Action != "connection.cut" || got.Caller != "boss" ||
		got.Outcome != record.OutcomeDone ||
		!strings.Contains(got.Message, "token laptop, which lets nobody in until 2026-11-20T13:00:00Z") {
		t.Errorf("%+v", got)
	}
	if w.cut("conn-1") != "" || w.cut("conn-2") != "boss" {
		t.Errorf("cut off: %q, %q", w.cut("conn-1"), w.cut("conn-2"))
	}
	w.says(w.get("/api/v1/connections", reader), `"cut_by":"boss"`)
	w.want(w.get("/api/v1/connections"), 401, fault.Unauthenticated)
}

func TestThePageOfConnectedAgentsAsksBeforeOneIsCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strangers)
	boss, reader := w.signIn(w.token("boss", 2, "read", "operate")), w.signIn(w.token("reader", 2, "read"))
	w.page("/connections", 200, with(boss)).has("No agent is connected now", "claudeops mcp-config --connect")
	w.connect(record.Connection{ID: "conn-1", Session: "run-1", Tier: 1, DryRun: true, Since: w.Now().Add(-time.Hour)})
	w.connect(record.Connection{ID: "conn-2", Credential: "laptop <b>", Tier: 2})
	d := w.page("/connections", 200, with(boss))
	d.has("Session run-1", "dry run", "Token laptop <b>", "pid 4711, uid 1000", "1 h")
	if forms := d.find("form"); len(forms) != 1 { // that for signing out
		t.Errorf("%d forms", len(forms))
	}
	w.page("/connections", 200, with(reader)).lacks("/connections/conn-1")
	w.page("/connections/conn-1", 403, with(reader))
	w.page("/connections/conn-1", 200, with(boss)).has("Cut it off", "cannot connect again", "Session run-1")
	w.page("/connections/conn-2", 200, with(boss)).has("lets nobody in for 60 minutes", "revoke it")
	if a := w.submit("/connections/conn-1/cut", nil, with(boss),
		set("Sec-Fetch-Site", "cross-site")); a.StatusCode != 403 || w.cut("conn-1") != "" {
		t.Errorf("from another site: %d", a.StatusCode)
	}
	w.read(w.submit("/connections/conn-1/cut", nil, with(reader)), "/connections", 403).has("operate")
	if w.cut("conn-1") != "" {
		t.Error("it was refused, and the agent is cut off")
	}
	w.leads(w.submit("/connections/conn-1/cut", nil, with(boss)), "/connections")
	if by := w.cut("conn-1"); by != "boss" {
		t.Errorf("cut off by %q", by)
	}
	w.page("/connections", 200, with(boss)).has("by boss, and ending")
	w.page("/connections/conn-1", 200, with(boss)).has("is ending")
	w.leads(w.get("/connections/conn-9", with(boss), browser), "/connections")
	w.read(w.submit("/connections/conn-9/cut", nil, with(boss)), "/connections", 404)
}
