package web_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// A browser is sent nowhere when it is not known where it may be sent.
func TestABrowserIsNotSentToWhatNoProgramHasRegistered(t *testing.T) {
	t.Parallel()
	p, boss := programWorld(t, nil)
	other := p.register()
	for name, change := range map[string]url.Values{
		"an unknown program":              {"client_id": {"nobody"}},
		"no program":                      {"client_id": nil},
		"two programs":                    {"client_id": {p.id, other.id}},
		"no address":                      {"redirect_uri": nil},
		"two addresses":                   {"redirect_uri": {p.redirect, "https://evil.example/"}},
		"another host":                    {"redirect_uri": {"https://evil.example/callback"}},
		"another path":                    {"redirect_uri": {p.redirect + "/x"}},
		"a longer path":                   {"redirect_uri": {p.redirect + "/../x"}},
		"another query":                   {"redirect_uri": {"https://claude.example/back?x=1&y=2"}},
		"another port of another machine": {"redirect_uri": {"https://claude.example:444/back?x=1"}},
		"another scheme":                  {"redirect_uri": {"http://claude.example/back?x=1"}},
		"a user":                          {"redirect_uri": {"http://127.0.0.1:7777@evil.example/callback"}},
		"a fragment":                      {"redirect_uri": {p.redirect + "#x"}},
		"another name of this machine":    {"redirect_uri": {"http://localhost:7777/callback"}},
		"an error that another machine would get": {"redirect_uri": {"https://claude.example/back?x=1"}, "scope": {"x"}},
		"a script": {"redirect_uri": {"javascript:alert(1)"}},
	} {
		t.Run(name, func(t *testing.T) {
			p.advance(time.Minute) // the same again within it has no row of its own
			rows, before := len(p.rows("oauth.refuse")), p.written()
			a, _ := p.asked(change, boss)
			if a.StatusCode != http.StatusBadRequest || a.Header.Get("Location") != "" ||
				!strings.Contains(string(a.body), "begin again") && !strings.Contains(string(a.body), "sent nowhere") &&
					!strings.Contains(string(a.body), "add it again") {
				t.Errorf("%d %v: %s", a.StatusCode, a.Header, a.body)
			}
			if p.written() != before || len(p.rows("oauth.refuse")) != rows+1 {
				t.Error("it is not recorded, or more than that is")
			}
		})
	}
	if a, _ := p.asked(nil); a.StatusCode != http.StatusSeeOther ||
		!strings.HasPrefix(a.Header.Get("Location"), "/sign-in?next=%2Foauth%2Fauthorize%3F") {
		t.Errorf("a stranger: %d %v", a.StatusCode, a.Header)
	}
}

func TestAProgramIsToldWhatIsWrongWithItsRequest(t *testing.T) {
	t.Parallel()
	p, boss := programWorld(t, nil)
	for name, c := range map[string]struct {
		change url.Values
		want   string
	}{
		"a token at once":         {url.Values{"response_type": {"token"}}, "unsupported_response_type"},
		"no PKCE":                 {url.Values{"code_challenge": nil, "code_challenge_method": nil}, "invalid_request"},
		"plain PKCE":              {url.Values{"code_challenge_method": {"plain"}}, "invalid_request"},
		"PKCE without its method": {url.Values{"code_challenge_method": nil}, "invalid_request"},
		"a short challenge":       {url.Values{"code_challenge": {"x"}}, "invalid_request"},
		"another scope":           {url.Values{"scope": {"admin"}}, "invalid_scope"},
		"another resource":        {url.Values{"resource": {"https://other.example/mcp"}}, "invalid_target"},
		"two resources": {url.Values{"resource": {"http://127.0.0.1:8080/mcp", "https://other.example/mcp"}},
			"invalid_target"},
		"the server as resource": {url.Values{"resource": {"http://127.0.0.1:8080"}}, "invalid_target"},
		"a long state":           {url.Values{"state": {strings.Repeat("x", 1001)}}, "invalid_request"},
	} {
		t.Run(name, func(t *testing.T) {
			p.advance(time.Minute) // the same again within it has no row of its own
			rows, before := len(p.rows("oauth.refuse")), p.written()
			a, _ := p.asked(c.change, boss)
			back := p.back(a)
			state := "st&te"
			if name == "a long state" {
				state = ""
			}
			if back.Get("error") != c.want || back.Get("state") != state || back.Get("iss") != "http://127.0.0.1:8080" ||
				back.Has("code") {
				t.Errorf("%v", back)
			}
			if p.written() != before || len(p.rows("oauth.refuse")) != rows+1 {
				t.Error("it is not recorded, or more than that is")
			}
		})
	}
	for name, change := range map[string]url.Values{"no scope": {"scope": nil}, "more scopes": {"scope": {"profile mcp"}},
		"no resource": {"resource": nil}, "no state": {"state": nil}, "an address with a query": {"redirect_uri": {
			"https://claude.example/back?x=1"}}} {
		if a, _ := p.asked(change, boss); a.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
}

// A consent is that of the person and the browser that saw the page, for what it showed.
func TestNobodyConsentsForAnother(t *testing.T) {
	t.Parallel()
	p, boss := programWorld(t, nil)
	eve := with(p.signIn(p.token("eve", 3, "read", "operate")))
	page, good := p.asked(nil, boss)
	evil := p.register()
	for name, c := range map[string]struct {
		change func(url.Values)
		who    []edit
		page   reply
	}{
		"without the seal": {func(f url.Values) { f.Del("seal") }, []edit{boss}, page},
		"with another seal": {func(f url.Values) { f.Set("seal", strings.Repeat("0", 64)) }, []edit{boss},
			page},
		"for another program": {func(f url.Values) { f.Set("client_id", evil.id) }, []edit{boss}, page},
		"to another address": {func(f url.Values) { f.Set("redirect_uri", "https://claude.example/back?x=1") },
			[]edit{boss}, page},
		"for another challenge": {func(f url.Values) { f.Set("code_challenge", strings.Repeat("a", 43)) },
			[]edit{boss}, page},
		"with another state":               {func(f url.Values) { f.Set("state", "mine") }, []edit{boss}, page},
		"as somebody else":                 {func(url.Values) {}, []edit{eve}, page},
		"in a browser that did not see it": {func(url.Values) {}, []edit{boss}, reply{Response: &http.Response{}}},
		"from another site": {func(url.Values) {}, []edit{boss, set("Sec-Fetch-Site", "cross-site")},
			page},
		"from another site of the domain": {func(url.Values) {}, []edit{boss, set("Sec-Fetch-Site", "same-site")}, page},
	} {
		for _, button := range []string{"allow", "deny"} {
			t.Run(name+", "+button, func(t *testing.T) {
				p.advance(time.Minute)
				form := maps.Clone(good)
				form.Set("tier", "2")
				c.change(form)
				before := p.written()
				a := p.answered(button, form, c.page, c.who...)
				if a.StatusCode != http.StatusForbidden || a.Header.Get("Location") != "" || p.written() != before {
					t.Errorf("%d %v: %s", a.StatusCode, a.Header, a.body)
				}
			})
		}
	}
	if rows := p.rows("oauth.allow"); len(rows) != 8 || rows[0].Code != "forbidden" || rows[0].Outcome != "refused" {
		t.Errorf("%d rows: %+v", len(rows), rows)
	}
	if back := p.back(p.answered("deny", good, page, boss)); back.Get("error") != "access_denied" ||
		back.Get("state") != "st&te" {
		t.Errorf("%v", back)
	}
	if rows := p.rows("oauth.deny"); rows[0].Outcome != "done" || rows[0].Caller != "boss" {
		t.Errorf("%+v", rows[0])
	}
	p.leads(p.get("/oauth/authorize/allow?"+good.Encode(), browser, boss), "/oauth/authorize")
}

func TestNobodyGivesAProgramWhatTheyHaveNot(t *testing.T) {
	t.Parallel()
	p, boss := programWorld(t, nil)
	low := with(p.signIn(p.token("low", 1, "propose", "read", "operate")))
	for name, c := range map[string]struct {
		who    edit
		change url.Values
		status int
		says   string
	}{
		"a tier above the server's": {boss, url.Values{"tier": {"3"}}, 403, "tier 2 at most"},
		"a tier above their own":    {low, url.Values{"tier": {"2"}}, 403, "tier 1 at most"},
		"no tier":                   {boss, url.Values{"tier": {"x"}}, 400, "choose a tier"},
		"no repository":             {boss, url.Values{"tier": {"2"}, "repos": {"nothing"}}, 400, "names no repository"},
	} {
		t.Run(name, func(t *testing.T) {
			page, form := p.asked(nil, c.who)
			maps.Copy(form, c.change)
			before, rows := p.written(), len(p.rows("oauth.allow"))
			a := p.answered("allow", form, page, c.who)
			d := p.read(a, "/oauth/authorize/allow", c.status)
			d.has(c.says, "Claude Code")
			if p.written() != before || len(p.rows("oauth.allow")) != rows+1 {
				t.Error("it is not recorded, or more than that is")
			}
			form.Set("tier", "1") // the page that comes back is of use
			form.Del("repos")
			p.back(p.answered("allow", form, page, c.who))
		})
	}
	looker := with(p.signIn(p.token("looker", 3, "read", "operate"))) // may not propose
	asked, answer := p.asked(nil, looker)
	answer.Set("tier", "2")
	p.read(p.answered("allow", answer, asked, looker), "/oauth/authorize/allow", 403).has("proposes from tier 2 on")
	viewer := with(p.signIn(p.token("viewer", 3, "read")))
	page, form := p.asked(nil, viewer)
	d := p.read(page, "/oauth/authorize", 200)
	d.has("You need the scope operate", "Go back to the program")
	d.lacks("Let it in</button>")
	form.Set("tier", "3")
	if a := p.answered("allow", form, page, viewer); a.StatusCode != http.StatusForbidden ||
		p.rows("oauth.allow")[0].Code != "forbidden" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if back := p.back(p.answered("deny", form, page, viewer)); back.Get("error") != "access_denied" {
		t.Errorf("%v", back)
	}
}

func TestACodeIsOfUseOnceAndOnlyToWhoBegan(t *testing.T) {
	t.Parallel()
	p, boss := programWorld(t, nil)
	other := p.register()
	code := p.code(boss)
	for name, c := range map[string]struct {
		change url.Values
		want   string
	}{
		"of another program":    {url.Values{"client_id": {other.id}}, "invalid_grant"},
		"without a program":     {url.Values{"client_id": nil}, "invalid_client"},
		"for another address":   {url.Values{"redirect_uri": {"http://127.0.0.1:7778/callback"}}, "invalid_grant"},
		"without an address":    {url.Values{"redirect_uri": nil}, "invalid_grant"},
		"without a verifier":    {url.Values{"code_verifier": nil}, "invalid_grant"},
		"with another verifier": {url.Values{"code_verifier": {strings.Repeat("w", 43)}}, "invalid_grant"},
		"with a short verifier": {url.Values{"code_verifier": {"v"}}, "invalid_grant"},
		"with a guess":          {url.Values{"code": {strings.Repeat("A", 43)}}, "invalid_grant"},
		"with something else":   {url.Values{"code": {strings.Repeat("x", 4000)}}, "invalid_grant"},
		"for another resource":  {url.Values{"resource": {"https://other.example/mcp"}}, "invalid_target"},
		"twice in one request":  {url.Values{"code": {code, code}}, "invalid_request"},
		"as another kind":       {url.Values{"grant_type": {"password"}}, "unsupported_grant_type"},
		"with a secret":         {url.Values{"client_secret": {"x"}}, "invalid_client"},
	} {
		t.Run(name, func(t *testing.T) {
			p.advance(time.Second)
			p.from = "192.0.2.1:1"
			if len(name)%2 == 0 {
				p.from = "192.0.2.2:1" // ten a minute
			}
			if err := p.store.Ledger.FlushRepeats(t.Context(), true); err != nil { // else the same again has no row of its own
				t.Fatal(err)
			}
			before, rows := p.written(), len(p.rows("oauth.refuse"))
			p.refusedWith(p.exchange(code, c.change), c.want)
			if p.written() != before || len(p.rows("oauth.refuse")) != rows+1 {
				t.Error("it is not recorded, or more than that is")
			}
		})
	}
	access, refresh := p.keys(p.exchange(code, nil)) // it is of use still to who began
	if !p.letsIn(access) {
		t.Fatal("the access token is not let in")
	}
	p.refusedWith(p.exchange(code, nil), "invalid_grant")
	if p.letsIn(access) || len(p.rows("oauth.reuse")) != 1 {
		t.Error("the code came a second time, and what it gave is good")
	}
	p.refusedWith(p.refresh(refresh, nil), "invalid_grant")
	p.advance(time.Minute)
	code = p.code(boss)
	access, _ = p.keys(p.exchange(code, nil))
	p.advance(time.Hour / 2) // the code is too old by now, and the access token is not
	p.refusedWith(p.exchange(code, nil), "invalid_grant")
	if p.letsIn(access) || len(p.rows("oauth.reuse")) != 2 {
		t.Error("an old code came a second time, and what it gave is good")
	}
	late := p.code(boss)
	p.advance(time.Minute)
	p.refusedWith(p.exchange(late, nil), "invalid_grant")
}

func TestARefreshTokenIsOfUseOnce(t *testing.T) {
	t.Parallel()
	p, boss := programWorld(t, nil)
	other := p.register()
	first, one := p.keys(p.exchange(p.code(boss), nil))
	for name, c := range map[string]struct {
		token  string
		change url.Values
		want   string
	}{
		"of another program":   {one, url.Values{"client_id": {other.id}}, "invalid_grant"},
		"without a program":    {one, url.Values{"client_id": nil}, "invalid_client"},
		"for another scope":    {one, url.Values{"scope": {"admin"}}, "invalid_scope"},
		"for another resource": {one, url.Values{"resource": {"https://other.example/"}}, "invalid_target"},
		"an access token":      {first, nil, "invalid_grant"},
		"its first half":       {one[:48], nil, "invalid_grant"},
		"nothing":              {"", nil, "invalid_grant"},
	} {
		t.Run(name, func(t *testing.T) {
			before := p.written()
			p.refusedWith(p.refresh(c.token, c.change), c.want)
			if p.written() != before || !p.letsIn(first) {
				t.Error("the grant has changed")
			}
		})
	}
	p.advance(30 * time.Minute)
	second, two := p.keys(p.refresh(one, url.Values{"scope": {"mcp"}, "resource": {"http://127.0.0.1:8080/mcp"}}))
	if !p.letsIn(first) || !p.letsIn(second) {
		t.Error("requests under way have the former token")
	}
	p.advance(30 * time.Minute)
	if p.letsIn(first) || !p.letsIn(second) {
		t.Error("an access token is good for an hour")
	}
	p.refusedWith(p.refresh(one, nil), "invalid_grant") // its holder has stolen it, or it was stolen from its holder
	if p.letsIn(second) {
		t.Error("a refresh token came a second time, and the grant is good")
	}
	p.refusedWith(p.refresh(two, nil), "invalid_grant")
	if rows := p.rows("oauth.reuse"); len(rows) != 1 || rows[0].Code != "unauthenticated" {
		t.Errorf("%+v", rows)
	}
}

func TestOfTwoAtOnceOneIsAnswered(t *testing.T) {
	t.Parallel()
	p, boss := programWorld(t, nil)
	good := func(ask func() reply) int64 {
		var answered atomic.Int64
		atOnce(6, func(int) {
			if ask().StatusCode == http.StatusOK {
				answered.Add(1)
			}
		})
		return answered.Load()
	}
	code := p.code(boss)
	if n := good(func() reply { return p.exchange(code, nil) }); n != 1 {
		t.Errorf("a code was exchanged %d times", n)
	}
	p.advance(time.Minute)
	_, refresh := p.keys(p.exchange(p.code(boss), nil))
	if n := good(func() reply { return p.refresh(refresh, nil) }); n != 1 {
		t.Errorf("a refresh token was exchanged %d times", n)
	}
	for _, token := range p.writtenTokens() {
		if strings.HasPrefix(token.Name, "boss by") && token.RevokedAt.IsZero() {
			t.Errorf("%s came twice, and is good", token.Name)
		}
	}
}

func TestAGrantEnds(t *testing.T) {
	t.Parallel()
	p, boss := programWorld(t, nil)
	_, refresh := p.keys(p.exchange(p.code(boss), nil))
	var access string
	for range 4 { // 80 days, never idle for 30
		p.advance(20 * 24 * time.Hour)
		access, refresh = p.keys(p.refresh(refresh, nil))
	}
	if !p.letsIn(access) {
		t.Error("it is not let in")
	}
	p.advance(10*24*time.Hour - 30*time.Minute)
	a := p.refresh(refresh, nil)
	if a.StatusCode != http.StatusOK || a.json["expires_in"] != 1800.0 {
		t.Errorf("shortly before the end: %s", a.body)
	}
	last, _ := a.json["access_token"].(string)
	refresh, _ = a.json["refresh_token"].(string)
	p.advance(30 * time.Minute)
	p.refusedWith(p.refresh(refresh, nil), "invalid_grant")
	if p.letsIn(last) {
		t.Error("it is let in after 90 days")
	}
	boss = with(p.signIn(p.token("boss2", 2, "propose", "read", "operate")))
	_, idle := p.keys(p.exchange(p.code(boss), nil))
	p.advance(30 * 24 * time.Hour)
	p.refusedWith(p.refresh(idle, nil), "invalid_grant")
}

func TestAProgramGivesUpWhatItHas(t *testing.T) {
	t.Parallel()
	p, boss := programWorld(t, nil)
	other := p.register()
	for name, of := range map[string]func(access, refresh string) string{
		"by its access token":  func(access, _ string) string { return access },
		"by its refresh token": func(_, refresh string) string { return refresh },
	} {
		t.Run(name, func(t *testing.T) {
			access, refresh := p.keys(p.exchange(p.code(boss), nil))
			for _, form := range []url.Values{{"token": {"cops_" + strings.Repeat("A", 43)}}, {"token": {"nonsense"}},
				{"token": {refresh}, "client_id": {other.id}}, {"token": {access}, "client_id": {other.id}}} {
				if a := p.post("/oauth/revoke", form); a.StatusCode != http.StatusOK || !p.letsIn(access) {
					t.Errorf("%d %s", a.StatusCode, a.body)
				}
			}
			p.refusedWith(p.post("/oauth/revoke", url.Values{"client_id": {p.id}}), "invalid_request")
			a := p.post("/oauth/revoke", url.Values{"token": {of(access, refresh)}, "client_id": {p.id},
				"token_type_hint": {"nonsense"}})
			if a.StatusCode != http.StatusOK || p.letsIn(access) || len(a.body) > 0 {
				t.Errorf("%d %s", a.StatusCode, a.body)
			}
			p.refusedWith(p.refresh(refresh, nil), "invalid_grant")
		})
	}
	if rows := p.rows("oauth.revoke"); len(rows) != 2 || !strings.HasPrefix(rows[0].Caller, "boss by Claude Code") {
		t.Errorf("%+v", rows)
	}
}

// What a person may not give any more, a program has no more.
func TestAProgramHasNoMoreThanThePersonWhoLetItIn(t *testing.T) {
	t.Parallel()
	t.Run("who signed in by a token", func(t *testing.T) {
		p, boss := programWorld(t, nil)
		access, refresh := p.keys(p.exchange(p.code(boss), nil))
		waits := p.code(boss)
		p.revoke("boss")
		if p.letsIn(access) {
			t.Error("it is let in")
		}
		p.refusedWith(p.refresh(refresh, nil), "invalid_grant")
		p.refusedWith(p.exchange(waits, nil), "invalid_grant")
	})
	t.Run("who signed in by a provider", func(t *testing.T) {
		w, provider := peopleWorld(t)
		w.build()
		login := cookies(w.signInAs(provider, ann("operators")))
		p := w.register()
		access, refresh := p.keys(p.exchange(p.code(login), nil))
		if got := p.tokenNamed("gitea:ann by Claude Code"); !p.letsIn(access) || got.OwnerName != "gitea:ann" {
			t.Errorf("%+v", got)
		}
		w.signInAs(provider, ann("viewers"))
		if p.letsIn(access) {
			t.Error("a viewer's program is let in")
		}
		p.refusedWith(p.refresh(refresh, nil), "invalid_grant")
	})
}

func TestProgramsRegisterWithinBounds(t *testing.T) {
	t.Parallel()
	p, _ := programWorld(t, nil)
	address := 0
	post := func(body string) reply {
		address++
		return p.do("POST", "/oauth/register", body, from(fmt.Sprintf("192.0.2.%d:1", address)))
	}
	for name, c := range map[string]struct{ body, want string }{
		"no JSON":    {`[]`, "invalid_client_metadata"},
		"no address": {`{"client_name":"x"}`, "invalid_redirect_uri"},
		"many addresses": {`{"redirect_uris":["https://a.example/"` + strings.Repeat(`,"https://a.example/"`, 10) + `]}`,
			"invalid_redirect_uri"},
		"http elsewhere":  {`{"redirect_uris":["http://a.example/"]}`, "invalid_redirect_uri"},
		"a script":        {`{"redirect_uris":["javascript:alert(1)"]}`, "invalid_redirect_uri"},
		"data":            {`{"redirect_uris":["data:text/html,x"]}`, "invalid_redirect_uri"},
		"a fragment":      {`{"redirect_uris":["https://a.example/#x"]}`, "invalid_redirect_uri"},
		"a user":          {`{"redirect_uris":["https://u@a.example/"]}`, "invalid_redirect_uri"},
		"every host":      {`{"redirect_uris":["https://*/cb"]}`, "invalid_redirect_uri"},
		"foreign letters": {`{"redirect_uris":["https://%D0%B0pple.com/cb"]}`, "invalid_redirect_uri"},
		"a foreign dot": {`{"redirect_uris":["https://good.example\u3002evil.example/cb"]}`,
			"invalid_redirect_uri"},
		"a long address": {`{"redirect_uris":["https://a.example/` + strings.Repeat("x", 500) + `"]}`,
			"invalid_redirect_uri"},
		"a person's name": {`{"redirect_uris":["https://a.example/"],"client_name":"gitea:boss"}`, "invalid_client_metadata"},
		"a look-alike":    {`{"redirect_uris":["https://a.example/"],"client_name":"gitea\uff1aboss"}`, "invalid_client_metadata"},
		"a user's name":   {`{"redirect_uris":["https://a.example/"],"client_name":"uid 0 (root)"}`, "invalid_client_metadata"},
		"an issuer":       {`{"redirect_uris":["https://a.example/"],"client_name":" https://id.example"}`, "invalid_client_metadata"},
		"a reserved name": {`{"redirect_uris":["https://a.example/"],"client_name":"Anonymous"}`, "invalid_client_metadata"},
		"a secret": {`{"redirect_uris":["https://a.example/"],"token_endpoint_auth_method":"client_secret_post"}`,
			"invalid_client_metadata"},
		"other grants": {`{"redirect_uris":["https://a.example/"],"grant_types":["client_credentials"]}`,
			"invalid_client_metadata"},
		"other responses": {`{"redirect_uris":["https://a.example/"],"response_types":["token"]}`, "invalid_client_metadata"},
	} {
		t.Run(name, func(t *testing.T) {
			rows := len(p.rows("oauth.register"))
			p.refusedWith(post(c.body), c.want)
			if len(p.rows("oauth.register")) != rows {
				t.Error("it is registered")
			}
		})
	}
	p.advance(time.Minute)
	p.status(post(`{"redirect_uris":["https://a.example/"],"client_name":"`+strings.Repeat("x", 17<<10)+`"}`),
		http.StatusRequestEntityTooLarge)
	p.says(post(`{"redirect_uris":["com.example.app:/back"],"client_name":" A\u202e\u0000\n  very\u200b long name of a `+
		`program "}`), `"client_name":"A very long name of a p…"`)
	p.says(post(`{"redirect_uris":["cursor://anysphere.cursor-mcp/oauth/callback"],"client_name":"\u202e"}`),
		`"client_name":"an unnamed program"`)
	p.advance(time.Minute)
	made := 0
	for range 30 { // from one address
		switch a := p.do("POST", "/oauth/register", `{"redirect_uris":["https://a.example/"]}`); a.StatusCode {
		case http.StatusCreated:
			made++
		case http.StatusTooManyRequests:
			if a.Header.Get("Retry-After") == "" {
				t.Errorf("%v", a.Header)
			}
		default:
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
	}
	if made != 10 {
		t.Errorf("%d programs registered in a minute", made)
	}
}

// Wrong requests are answered and recorded as often as they are counted, and lock no one else out.
func TestWrongRequestsOfProgramsAreCounted(t *testing.T) {
	t.Parallel()
	p, boss := programWorld(t, nil)
	code := p.code(boss)
	for i := range 30 {
		want := http.StatusBadRequest
		if i >= 10 {
			want = http.StatusTooManyRequests
		}
		if a := p.refresh("x", nil); a.StatusCode != want {
			t.Fatalf("request %d: %d %s", i, a.StatusCode, a.body)
		}
	}
	if rows := p.rows("oauth.refuse"); len(rows) != 1 || rows[0].Caller != "Claude Code" {
		t.Errorf("%d rows: %+v", len(rows), rows[0])
	}
	p.keys(p.exchange(code, nil))
}

// Whatever strangers do, from however many addresses, a program with a good token is answered, also at their address;
// one that registers from elsewhere is let in, and those who wait read why.
func TestStrangersShutNoProgramOut(t *testing.T) {
	t.Parallel()
	p, boss := programWorld(t, nil)
	_, refresh := p.keys(p.exchange(p.code(boss), nil))
	last := reply{}
	for i := range 1320 {
		p.from = fmt.Sprintf("192.0.2.%d:1", i%11)
		last = p.refresh("x", nil)
	}
	if last.StatusCode != http.StatusTooManyRequests || !strings.Contains(string(last.body), "from this address") {
		t.Errorf("%d %s", last.StatusCode, last.body)
	}
	if rows := p.rows("oauth.refuse"); len(rows) > 1 {
		t.Errorf("%d rows", len(rows))
	}
	_, refresh = p.keys(p.refresh(refresh, nil)) // at an address of theirs
	p.from = "198.51.100.1:1"
	p.status(p.refresh("x", nil), http.StatusBadRequest)
	p.keys(p.refresh(refresh, nil))
	register := func(address string) reply {
		return p.do("POST", "/oauth/register", `{"redirect_uris":["https://a.example/"]}`, from(address))
	}
	for i := range 90 {
		last = register(fmt.Sprintf("192.0.2.%d:1", i%9))
	}
	if last.StatusCode != http.StatusTooManyRequests || !strings.Contains(string(last.body), "from many addresses") {
		t.Errorf("%d %s", last.StatusCode, last.body)
	}
	p.status(register("198.51.100.1:1"), http.StatusCreated)
}

// A program that is forgotten is told so in the way in which programs know to register anew.
func TestAForgottenProgramIsToldToRegister(t *testing.T) {
	t.Parallel()
	p, _ := programWorld(t, nil)
	for name, grant := range map[string]string{"a code": "authorization_code", "a refresh token": "refresh_token"} {
		a := p.post("/oauth/token", url.Values{"grant_type": {grant}, "client_id": {"gone"}, "code": {"x"}})
		if a.StatusCode != http.StatusUnauthorized || a.json["error"] != "invalid_client" {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
}

// Who may read alone cannot fill the audit either: what they repeat within a minute is one row with a count.
func TestAViewerWhoRepeatsAWrongRequestHasOneRowWithACount(t *testing.T) {
	t.Parallel()
	p, _ := programWorld(t, nil)
	viewer := with(p.signIn(p.token("ann", 1, "read")))
	before := len(p.attempts())
	for range 300 {
		if a, _ := p.asked(url.Values{"response_type": {"token"}}, viewer); a.StatusCode != http.StatusSeeOther {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
	}
	if rows := p.rows("oauth.refuse"); len(rows) != 1 || rows[0].Caller != "ann" {
		t.Fatalf("%d rows: %+v", len(rows), rows)
	}
	for range 30 {
		p.status(p.submit("/tokens", url.Values{"name": {"x"}}, viewer), http.StatusForbidden)
	}
	if got := len(p.attempts()) - before; got != 2 {
		t.Errorf("%d rows", got)
	}
	p.advance(time.Minute)
	must.Do(t, p.store.Ledger.FlushRepeats(t.Context(), false))
	rows := p.attempts()
	said := rows[0].Message + rows[1].Message
	if len(rows)-before != 4 || !strings.Contains(said, "299 more refusals") ||
		!strings.Contains(said, "29 more refusals") {
		t.Errorf("%d rows, %s", len(rows)-before, said)
	}
}

func TestProgramsAreLetInWhereNobodyReadsAlong(t *testing.T) {
	t.Parallel()
	p, boss := programWorld(t, func(w *world) { w.web.Network.Hosts = []string{"ops.example"} })
	elsewhere := host("ops.example")
	for _, path := range []string{"/.well-known/oauth-authorization-server", "/oauth/authorize?" + p.wants(nil).Encode()} {
		p.status(p.get(path, elsewhere, boss), http.StatusNotFound)
	}
	if a := p.get("/.well-known/oauth-protected-resource", elsewhere); a.json["authorization_servers"] != nil {
		t.Errorf("%s", a.body)
	}
	p.status(p.do("POST", "/oauth/register", `{"redirect_uris":["https://a.example/"]}`, elsewhere), http.StatusNotFound)
	below := newWorld(t, func(w *world) { w.strangers, w.web.Network.BasePath = true, "/ops" })
	for _, path := range []string{"/.well-known/oauth-authorization-server/ops",
		"/ops/.well-known/oauth-authorization-server"} {
		if a := below.get(path); a.json["issuer"] != "http://127.0.0.1:8080/ops" {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.body)
		}
	}
	for _, path := range []string{"/.well-known/oauth-protected-resource/ops/mcp",
		"/.well-known/oauth-protected-resource/ops", "/ops/.well-known/oauth-protected-resource/mcp",
		"/ops/.well-known/oauth-protected-resource"} {
		if a := below.get(path); a.json["resource"] != "http://127.0.0.1:8080/ops/mcp" {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.body)
		}
	}
	below.status(below.get("/.well-known/oauth-authorization-server"), http.StatusNotFound)
}

// A session of MCP outlives the access token that it was begun with.
func TestASessionGoesOnWithTheNextAccessToken(t *testing.T) {
	t.Parallel()
	p, boss := programWorld(t, nil)
	access, refresh := p.keys(p.exchange(p.code(boss), nil))
	server := p.listening(nil)
	c := began(t, server.URL, access)
	c.token, _ = p.keys(p.refresh(refresh, nil))
	c.status(c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`), http.StatusOK)
	body, modernly := modern(2, "tools/list", "{}")
	c.session = ""
	c.status(c.send(body, modernly), http.StatusOK)
}
