package web_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/system/identity"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakeoidc"
	"github.com/claudeops/claudeops/internal/testkit/must"
	"github.com/claudeops/claudeops/internal/web/httpx"
)

// directory returns the people who sign in by w.web.SignIn.
func (w *world) directory() access.Directory {
	if len(w.web.SignIn) == 0 {
		return access.Directory{}
	}
	return access.Directory{
		People: w.store.Access, Key: func() ([]byte, error) { return []byte("a key of tests"), nil },
		Look: func(ctx context.Context, was identity.Person, g identity.Grant) (identity.Person, identity.Grant, error) {
			return w.web.SignIn[0].Look(ctx, was, g)
		},
		Role: func(_ string, who policy.Known) policy.Role {
			return w.flow.Authority.Policy.People.RoleOf(who)
		},
		Record: func(ctx context.Context, a record.Attempt) error { return w.store.Ledger.Record(ctx, a, nil) },
		NewID:  w.flow.NewID,
	}
}

// peopleWorld is a world in which people sign in by a provider, with a role for each of its groups.
func peopleWorld(t testing.TB) (*world, *fakeoidc.Provider) {
	t.Helper()
	var provider *fakeoidc.Provider
	w := newWorld(t, func(w *world) {
		w.strangers = true
		provider = fakeoidc.New(w.Now)
		t.Cleanup(provider.Close)
		s := identity.Settings{
			Name: "gitea", Kind: identity.OpenID, Issuer: provider.Issuer(), ClientID: provider.ID,
			ClientSecret: provider.Secret, Text: "Continue with Gitea",
		}
		w.web.SignIn = []*identity.Provider{identity.New(s,
			identity.Options{Redirect: "http://127.0.0.1:8080/sign-in/callback/", Now: w.Now})}
		for _, role := range policy.Roles() {
			w.flow.Authority.Policy.People.Roles = append(w.flow.Authority.Policy.People.Roles,
				policy.RoleRule{Role: role, Provider: "gitea", Group: string(role) + "s"})
		}
	})
	return w, provider
}

// account is a person at the provider; ann is one of them.
func account(subject, user string, groups ...string) fakeoidc.Person {
	return fakeoidc.Person{Subject: subject, User: user, Groups: groups}
}

func ann(groups ...string) fakeoidc.Person { return account("7", "ann", groups...) }

// loggedOut has the provider say that somebody has signed out there.
func (w *world) loggedOut(token string) reply {
	w.Helper()
	return w.do("POST", "/sign-in/logged-out/gitea", url.Values{"logout_token": {token}}.Encode(),
		set("Content-Type", formType))
}

// cookies has a request carry them.
func cookies(list ...*http.Cookie) edit {
	return func(r *http.Request) {
		for _, c := range list {
			if c.MaxAge >= 0 {
				r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
			}
		}
	}
}

// begin begins a sign-in, and goes to the provider: it returns the address that the browser is sent back to, without
// the host, and the cookie that it keeps.
func (w *world) begin(next string) (back *url.URL, kept *http.Cookie) {
	w.Helper()
	a := w.get("/sign-in/with/gitea?next="+url.QueryEscape(next), browser)
	if a.StatusCode != http.StatusSeeOther || len(a.Cookies()) != 1 {
		w.Fatalf("%d %v: %s", a.StatusCode, a.Header, a.body)
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, a.Header.Get("Location"), http.NoBody)
	must.Do(w, err)
	at, err := http.DefaultTransport.RoundTrip(req)
	must.Do(w, err)
	_ = at.Body.Close()
	if back, err = url.Parse(at.Header.Get("Location")); err != nil {
		w.Fatal(err)
	}
	return &url.URL{Path: back.Path, RawQuery: back.RawQuery}, a.Cookies()[0]
}

// fromElsewhere marks a request as one that another site has led the browser to.
func fromElsewhere(r *http.Request) {
	browser(r)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	r.Header.Set("Sec-Fetch-Mode", "navigate")
	r.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
}

// signInAs signs a person in by the provider, and returns the cookie of the login.
func (w *world) signInAs(p *fakeoidc.Provider, who fakeoidc.Person) *http.Cookie {
	w.Helper()
	w.advance(time.Second) // logins are listed by time
	p.SignedIn(who)
	back, kept := w.begin("/")
	return loginOf(w, w.get(back.String(), fromElsewhere, cookies(kept)))
}

// loginOf is the cookie of the login that an answer sets.
func loginOf(t testing.TB, a reply) *http.Cookie {
	t.Helper()
	for _, c := range a.Cookies() {
		if c.Name == httpx.CookieName {
			return c
		}
	}
	t.Fatalf("no cookie of a login: %v", a.Header)
	return nil
}

// signInRows are the rows of the audit about signing in, newest first.
func (w *world) signInRows() (out []record.RecordedAttempt) {
	for _, row := range w.attempts() {
		if strings.HasPrefix(row.Action, access.ActionSignIn) {
			out = append(out, row)
		}
	}
	return out
}

const formType = "application/x-www-form-urlencoded"

func TestAPersonSignsInByTheirProviderAndGoesOn(t *testing.T) {
	t.Parallel()
	w, provider := peopleWorld(t)
	w.says(w.get("/sign-in?next=/policy", browser), `href="/sign-in/with/gitea?next=%2Fpolicy">`)
	provider.SignedIn(ann("viewers"))
	back, kept := w.begin("/policy")
	if kept.SameSite != http.SameSiteLaxMode || !kept.HttpOnly || kept.MaxAge != 600 {
		t.Errorf("the cookie of the flow: %+v", kept)
	}
	a := w.get(back.String(), fromElsewhere, cookies(kept))
	login := loginOf(t, a)
	if a.StatusCode != 200 || !strings.Contains(string(a.body), `content="0;url=/policy"`) ||
		!strings.Contains(string(a.body), "gitea:ann") {
		t.Fatalf("%d: %s", a.StatusCode, a.body)
	}
	if login.SameSite != http.SameSiteStrictMode || !login.HttpOnly || login.Secure || login.MaxAge != 7*24*3600 {
		t.Errorf("the cookie of the login: %+v", login)
	}
	for _, c := range a.Cookies() {
		if c.Name == kept.Name && c.MaxAge >= 0 {
			t.Errorf("the cookie of the flow stays: %+v", c)
		}
	}
	w.status(w.get("/policy", browser, cookies(login)), 200)
	me := w.get("/api/v1/me", cookies(login))
	if me.json["name"] != "gitea:ann" || me.json["via"] != "session" || me.json["max_tier"] != float64(1) {
		t.Errorf("%s", me.body)
	}
	row := w.signInRows()[0]
	if row.Action != access.ActionSignIn || row.Outcome != record.OutcomeDone || row.Caller != "gitea:ann" ||
		row.Door != record.DoorWeb ||
		!strings.Contains(row.Message, "as viewer") || !strings.Contains(row.Message, "subject 7") {
		t.Errorf("%+v", row.Attempt)
	}
	for _, text := range []string{string(a.body), row.Message, kept.Value} {
		if strings.Contains(text, provider.Secret) || strings.Contains(text, "access-") {
			t.Errorf("a secret is in %s", text)
		}
	}
	w.says(w.status(w.get(back.String(), fromElsewhere, cookies(kept)), 401), "came back already")
}

// TestACallbackThatIsNoGoodSignsNobodyIn tries callbacks that a stranger, another site or a broken provider may send.
func TestACallbackThatIsNoGoodSignsNobodyIn(t *testing.T) {
	t.Parallel()
	change := func(name, value string) func(q url.Values) { return func(q url.Values) { q.Set(name, value) } }
	for name, c := range map[string]struct {
		change func(q url.Values)
		stolen bool // the browser is not the one that began
		later  time.Duration
		groups []string
		status int
		says   string
	}{
		"in another browser":  {stolen: true, status: 401, says: "not begun in this browser"},
		"another state":       {change: change("state", "x"), status: 401, says: "another sign-in"},
		"no state":            {change: func(q url.Values) { q.Del("state") }, status: 401, says: "malformed"},
		"two states":          {change: func(q url.Values) { q.Add("state", "x") }, status: 401, says: "malformed"},
		"two codes":           {change: func(q url.Values) { q.Add("code", "x") }, status: 401, says: "malformed"},
		"no code":             {change: func(q url.Values) { q.Del("code") }, status: 401, says: "no code"},
		"a code that is none": {change: change("code", "x"), status: 401, says: "did not take the code"},
		"of another issuer":   {change: change("iss", "https://evil.example"), status: 401, says: "another provider"},
		"declined":            {change: change("error", "access_denied"), status: 401, says: "access_denied"},
		"an error that is a page": {change: change("error", "<b>click here</b>"), status: 401,
			says: "no reason that can be shown"},
		"after half an hour":       {later: 30 * time.Minute, status: 401, says: "10 minutes ago"},
		"a person without a group": {status: 403, says: "no role here"},
		"a person of other groups": {groups: []string{"strangers", "viewer"}, status: 403, says: "no role here"},
	} {
		t.Run(name, func(t *testing.T) {
			w, provider := peopleWorld(t)
			if c.status != 403 {
				c.groups = []string{"operators"}
			}
			provider.SignedIn(ann(c.groups...))
			back, kept := w.begin("/")
			q := back.Query()
			if c.change != nil {
				c.change(q)
			}
			back.RawQuery = q.Encode()
			w.advance(c.later)
			sent := []*http.Cookie{kept}
			if c.stolen {
				sent = nil
			}
			a := w.get(back.String(), fromElsewhere, cookies(sent...))
			if a.StatusCode != c.status || !strings.Contains(string(a.body), c.says) ||
				!strings.Contains(string(a.body), "Continue with Gitea") {
				t.Errorf("%d: %s", a.StatusCode, a.body)
			}
			if strings.Contains(string(a.body), "<b>") {
				t.Errorf("it repeats what it was sent: %s", a.body)
			}
			for _, cookie := range a.Cookies() {
				if cookie.Value != "" {
					t.Errorf("a cookie is set: %+v", cookie)
				}
			}
			rows := w.signInRows()
			if len(rows) != 1 || rows[0].Outcome != record.OutcomeRefused || rows[0].Code == "" {
				t.Errorf("%d rows: %+v", len(rows), rows)
			}
			if logins, err := w.store.Access.Logins(t.Context()); err != nil || len(logins) != 0 {
				t.Errorf("%v, %v", logins, err)
			}
		})
	}
}

// What strangers make up has the provider asked nothing, neither with our secret nor for its keys.
func TestStrangersHaveTheProviderAskedNothing(t *testing.T) {
	t.Parallel()
	w, provider := peopleWorld(t)
	provider.SignedIn(ann("viewers"))
	back, kept := w.begin("/")
	flow, err := json.Marshal(map[string]any{"provider": "gitea", "next": "/", "until": w.Now().Add(time.Hour).Unix(),
		"flow": map[string]string{"state": "s", "nonce": "n", "verifier": strings.Repeat("v", 43)}})
	must.Do(t, err)
	made := &http.Cookie{Name: kept.Name, Value: base64.RawURLEncoding.EncodeToString(flow)}
	for range 60 {
		if a := w.get("/sign-in/callback/gitea?code=a&state=s", fromElsewhere, cookies(made)); a.StatusCode < 400 {
			t.Fatalf("%d", a.StatusCode)
		}
	}
	if n := provider.Requests("/token"); n != 0 {
		t.Errorf("a cookie of one's own has the provider asked %d times", n)
	}
	w.advance(time.Minute)
	if strings.Contains(kept.Value, base64.RawURLEncoding.EncodeToString([]byte("verifier"))) {
		t.Error("who gets the cookie reads what it holds")
	}
	q := back.Query()
	q.Set("code", "guess")
	for range 60 {
		w.get("/sign-in/callback/gitea?"+q.Encode(), fromElsewhere, cookies(kept))
	}
	if n := provider.Requests("/token"); n != 1 {
		t.Errorf("one that was begun has it asked %d times", n)
	}
	w.advance(time.Minute)
	provider.Does(fakeoidc.Wrong{Key: true})
	for range 60 {
		w.loggedOut(provider.LogoutToken("7", nil))
	}
	if n := provider.Requests("/keys"); n > 1 {
		t.Errorf("wrong logouts have it asked for its keys %d times", n)
	}
}

func TestStrangersCannotFillTheAudit(t *testing.T) {
	t.Parallel()
	w, _ := peopleWorld(t)
	for range 50 {
		w.get("/sign-in/callback/gitea?code=a&state=b", fromElsewhere)
	}
	if rows := w.signInRows(); len(rows) != 1 {
		t.Errorf("%d rows", len(rows))
	}
	w.advance(time.Minute)
	w.get("/sign-in/callback/gitea?code=a&state=b", fromElsewhere)
	rows := w.signInRows() // the count of those that the guard let through, and the new one
	if len(rows) != 3 || !strings.Contains(rows[1].Message, "9 more refusals") {
		t.Errorf("%d rows: %s", len(rows), rows[1].Message)
	}
}

func TestSigningInLeadsToNoOtherSite(t *testing.T) {
	t.Parallel()
	w, provider := peopleWorld(t)
	provider.SignedIn(ann("viewers"))
	for _, next := range []string{"//evil.example", "https://evil.example", `/\evil.example`, "/sign-in/with/gitea",
		"javascript:alert(1)", "/a;url=https://evil.example/\n"} {
		back, kept := w.begin(next)
		w.says(w.status(w.get(back.String(), fromElsewhere, cookies(kept)), 200), `content="0;url=/"`)
	}
}

func TestAProviderThatIsDownIsSaidSoAndRecorded(t *testing.T) {
	t.Parallel()
	w, provider := peopleWorld(t)
	provider.Does(fakeoidc.Wrong{Status: 502})
	a := w.get("/sign-in/with/gitea", browser)
	if rows := w.signInRows(); a.StatusCode != 502 || !strings.Contains(string(a.body), "try again later") ||
		len(rows) != 1 || rows[0].Outcome != record.OutcomeFailed {
		t.Errorf("%d: %s, %+v", a.StatusCode, a.body, rows)
	}
	w.status(w.get("/sign-in/with/other", browser), 404)
}

// TestRightsFollowTheProvider takes rights away in the middle.
func TestRightsFollowTheProvider(t *testing.T) {
	t.Parallel()
	make := func(w *world, login *http.Cookie, name string) reply {
		return w.do("POST", "/api/v1/tokens", `{"name":"`+name+`","scopes":["read"]}`, cookies(login))
	}
	for name, c := range map[string]struct {
		lose   func(p *fakeoidc.Provider)
		status int  // of a write at once
		reads  int  // 16 minutes later
		ended  bool // the login has, by then
	}{
		"nothing":            {func(*fakeoidc.Provider) {}, 201, 200, false},
		"the account":        {func(p *fakeoidc.Provider) { p.Revoke() }, 401, 401, true},
		"every group":        {func(p *fakeoidc.Provider) { p.SignedIn(ann()) }, 401, 401, true},
		"the operators":      {func(p *fakeoidc.Provider) { p.SignedIn(ann("viewers")) }, 403, 200, false},
		"sight of it":        {func(p *fakeoidc.Provider) { p.Does(fakeoidc.Wrong{Status: 503}) }, 502, 502, false},
		"a key, for another": {func(p *fakeoidc.Provider) { p.RotateKey() }, 201, 200, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, writes := range []bool{true, false} {
				w, provider := peopleWorld(t)
				login := w.signInAs(provider, ann("operators"))
				w.status(make(w, login, "before"), 201)
				c.lose(provider)
				if a := w.get("/api/v1/me", cookies(login)); a.StatusCode != 200 { // what was said a moment ago holds for looking
					t.Errorf("reading at once: %d %s", a.StatusCode, a.body)
				}
				if writes {
					a := make(w, login, "after")
					if n := len(w.writtenTokens()); a.StatusCode != c.status || (n == 2) != (c.status == 201) {
						t.Errorf("writing: %d %s, %d tokens", a.StatusCode, a.body, n)
					}
				}
				w.advance(16 * time.Minute)
				if a := w.get("/api/v1/me", cookies(login)); a.StatusCode != c.reads {
					t.Errorf("reading later: %d %s", a.StatusCode, a.body)
				}
				logins, err := w.store.Access.Logins(t.Context())
				if err != nil || (len(logins) == 0) != c.ended {
					t.Errorf("%d logins, %v", len(logins), err)
				}
				if rows := w.signInRows(); c.ended && (rows[0].Action != access.ActionEnd || rows[0].Caller != "gitea:ann") {
					t.Errorf("%+v", rows[0].Attempt)
				}
			}
		})
	}
}

func TestOneOfManyRequestsAsksTheProvider(t *testing.T) {
	t.Parallel()
	w, provider := peopleWorld(t)
	login := w.signInAs(provider, ann("viewers"))
	w.advance(16 * time.Minute)
	before := provider.Requests("/token")
	atOnce(8, func(int) { w.status(w.get("/api/v1/me", cookies(login)), 200) })
	if asked := provider.Requests("/token") - before; asked != 1 {
		t.Errorf("the provider was asked %d times", asked)
	}
}

func TestALoginEndsAfterTwelveHoursOfRestAndAWeekInAll(t *testing.T) {
	t.Parallel()
	w, provider := peopleWorld(t)
	who := ann("viewers")
	idle := w.signInAs(provider, who)
	w.advance(12 * time.Hour)
	w.want(w.get("/api/v1/me", cookies(idle)), 401, fault.Unauthenticated)
	used := w.signInAs(provider, who)
	for range 16 {
		w.advance(10 * time.Hour)
		w.want(w.get("/api/v1/me", cookies(used)), 200, "")
	}
	w.advance(8*time.Hour - time.Second)
	w.want(w.get("/api/v1/me", cookies(used)), 200, "")
	w.advance(time.Second)
	w.want(w.get("/api/v1/me", cookies(used)), 401, fault.Unauthenticated)
}

func TestTheProviderEndsLogins(t *testing.T) {
	t.Parallel()
	w, provider := peopleWorld(t)
	ann, bob := w.signInAs(provider, ann("viewers")), w.signInAs(provider, account("8", "bob", "viewers"))
	for _, claims := range []map[string]any{{"aud": "other"}, {"nonce": "x"}} { // of another application; an ID token
		w.status(w.loggedOut(provider.LogoutToken("7", claims)), 400)
	}
	w.status(w.loggedOut(provider.LogoutToken("7", map[string]any{"sid": "another-session"})), 204)
	w.want(w.get("/api/v1/me", cookies(ann)), 200, "")
	w.status(w.loggedOut(provider.LogoutToken("7", nil)), 204)
	w.want(w.get("/api/v1/me", cookies(ann)), 401, fault.Unauthenticated)
	w.want(w.get("/api/v1/me", cookies(bob)), 200, "")
	if row := w.signInRows()[0]; row.Action != access.ActionEnd || row.Caller != "gitea:ann" ||
		!strings.Contains(row.Message, "signed out at the provider") {
		t.Errorf("%+v", row.Attempt)
	}
	old := provider.LogoutToken("8", nil)
	w.status(w.loggedOut(old), 204)
	again := w.signInAs(provider, account("8", "bob", "viewers"))
	w.status(w.loggedOut(old), 204) // a logout token of the past ends no later login
	w.want(w.get("/api/v1/me", cookies(again)), 200, "")
}

func TestANameOnTheRecordIsOnePersons(t *testing.T) {
	t.Parallel()
	w, provider := peopleWorld(t)
	w.token("gitea:eve", 1, access.Read)
	name := func(subject, user string) string {
		me := w.get("/api/v1/me", cookies(w.signInAs(provider, account(subject, user, "viewers"))))
		got, _ := me.json["name"].(string)
		return got
	}
	first, second := name("7", "ann"), name("8", "ann") // the account was given to somebody else
	renamed, token := name("7", "anna"), name("9", "eve")
	if first != "gitea:ann" || renamed != first || !strings.HasPrefix(second, "gitea:ann#") ||
		!strings.HasPrefix(token, "gitea:eve#") {
		t.Errorf("%q", []string{first, second, renamed, token})
	}
	login := w.signInAs(provider, account("1", "op", "operators"))
	w.want(w.do("POST", "/api/v1/tokens", `{"name":"Gitea:ANN","scopes":["read"]}`, cookies(login)), 400, fault.InvalidArgument)
}

func TestWithoutProvidersNothingIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strangers)
	for _, at := range []string{"/sign-in/with/gitea", "/sign-in/callback/gitea?code=a&state=b"} {
		w.status(w.get(at, browser), 404)
	}
	w.page("/sign-in", 200).lacks("or with a token")
}

func TestPeopleEndTheirOwnLoginsAndOperatorsAll(t *testing.T) {
	t.Parallel()
	w, provider := peopleWorld(t)
	ann, other := w.signInAs(provider, ann("viewers")), w.signInAs(provider, ann("viewers"))
	bob, op := w.signInAs(provider, account("8", "bob", "viewers")), w.signInAs(provider, account("1", "op", "operators"))
	ids := func(login *http.Cookie) (out []string) {
		a := w.get("/api/v1/logins", cookies(login))
		for _, l := range a.json["logins"].([]any) {
			out = append(out, l.(map[string]any)["id"].(string))
		}
		return out
	}
	mine := ids(ann)
	if len(mine) != 2 || len(ids(bob)) != 1 || len(ids(op)) != 4 {
		t.Fatalf("%q, %q, %q", mine, ids(bob), ids(op))
	}
	w.want(w.do("POST", "/api/v1/logins/"+mine[0]+"/end", "", cookies(bob)), 404, fault.NotFound)
	w.want(w.do("POST", "/api/v1/logins/"+mine[0]+"/end", "", cookies(ann)), 200, "") // the newest: the other one
	w.want(w.get("/api/v1/me", cookies(other)), 401, fault.Unauthenticated)
	w.want(w.get("/api/v1/me", cookies(ann)), 200, "")
	w.says(w.get("/logins", browser, cookies(ann)), "Firefox on Linux", "!gitea:bob")
	w.says(w.status(w.get("/logins/"+mine[1], browser, cookies(ann)), 200), "Sign it out")
	w.want(w.do("POST", "/api/v1/logins/"+mine[1]+"/end", "", cookies(op)), 200, "")
	w.want(w.get("/api/v1/me", cookies(ann)), 401, fault.Unauthenticated)
	if row := w.signInRows()[0]; row.Action != access.ActionEnd || row.Caller != "gitea:op" ||
		row.Outcome != record.OutcomeDone {
		t.Errorf("%+v", row.Attempt)
	}
}

func TestATokenOfAPersonMayDoNoMoreThanThey(t *testing.T) {
	t.Parallel()
	w, provider := peopleWorld(t)
	provider.Does(fakeoidc.Wrong{NoRefresh: true}) // else it is asked, and says that there is such a person
	login := w.signInAs(provider, ann("operators"))
	a := w.do("POST", "/api/v1/tokens", `{"name":"ci","max_tier":3,"scopes":["read","operate"]}`, cookies(login))
	w.want(a, 201, "")
	if until := w.Now().AddDate(0, 0, 90).Format(time.RFC3339); a.json["expires_at"] != until ||
		a.json["owner"] != "gitea:ann" {
		t.Errorf("%s; want it to end at %s", a.body, until)
	}
	secret, _ := a.json["token"].(string)
	use := func(status int, scopes int) {
		t.Helper()
		me := w.get("/api/v1/me", bearer(secret))
		list, _ := me.json["scopes"].([]any)
		if me.StatusCode != status || len(list) != scopes {
			t.Errorf("%d: %s", me.StatusCode, me.body)
		}
	}
	use(200, 2)
	w.page("/tokens/people", 200, cookies(login)).has("gitea:ann")
	w.signInAs(provider, ann("viewers"))
	use(200, 1)
	w.signInAs(provider, ann("viewers"))
	w.advance(29 * 24 * time.Hour)
	use(200, 1)
	w.advance(24 * time.Hour) // for 30 days there was no sign that the person exists
	use(401, 0)
	w.signInAs(provider, ann("operators"))
	use(200, 2)
	w.advance(16 * time.Minute)
	provider.SignedIn(ann())
	w.get("/api/v1/me", cookies(login)) // of a login that has long ended
	again, kept := w.begin("/")
	w.status(w.get(again.String(), fromElsewhere, cookies(kept)), 403)
	use(401, 0)
}

// Tokens and programs of a person are judged by what the provider said about them at most a quarter of an hour ago,
// while no browser of theirs asks; the provider's outage is bridged for an hour.
func TestTokensAndProgramsFollowTheProvider(t *testing.T) {
	t.Parallel()
	right, bare := fakeoidc.Wrong{}, fakeoidc.Wrong{NoRefresh: true}
	leaves := func(groups ...string) func(*fakeoidc.Provider) {
		return func(p *fakeoidc.Provider) { p.SignedIn(ann(groups...)) }
	}
	revoked := func(p *fakeoidc.Provider) { p.Revoke() }
	away := func(p *fakeoidc.Provider) { p.Does(fakeoidc.Wrong{Status: 503}) }
	const never = -1
	for name, c := range map[string]struct {
		gives fakeoidc.Wrong // what the provider does at the sign-in
		lose  func(p *fakeoidc.Provider)
		after time.Duration
		// Statuses: of ann's own token over REST, her agent's token and her program's access token at /mcp, and her
		// program's refresh.
		person, agent, program, refresh int
		asked                           int // how often the provider was
	}{
		"nothing is lost":              {right, nil, 16 * time.Minute, 200, 200, 200, 200, 1},
		"a group, a moment ago":        {right, leaves(), 14 * time.Minute, 200, 200, 200, 200, 0},
		"every group":                  {right, leaves(), 16 * time.Minute, 401, 401, 401, 400, 1},
		"the operators":                {right, leaves("viewers"), 16 * time.Minute, 200, 401, 401, 400, 1},
		"the account":                  {right, revoked, 16 * time.Minute, 401, 401, 401, 400, 1},
		"sight of it for a while":      {right, away, 50 * time.Minute, 200, 200, 200, 200, never},
		"sight of it for an hour":      {right, away, 61 * time.Minute, 502, 502, 401, 502, never},
		"a group, without refresh":     {bare, leaves(), 16 * time.Minute, 200, 200, 200, 200, 0},
		"a month, without refresh":     {bare, nil, 30 * 24 * time.Hour, 401, 401, 401, 400, 0},
		"a month, with refresh tokens": {right, nil, 29 * 24 * time.Hour, 200, 200, 401, 200, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w, provider := peopleWorld(t)
			provider.Does(c.gives)
			login := w.signInAs(provider, ann("operators"))
			p := w.register()
			key, refresh := p.keys(p.exchange(p.code(cookies(login)), nil))
			made := func(body string) string {
				a := w.do("POST", "/api/v1/tokens", body, cookies(login))
				w.want(a, 201, "")
				return a.json["token"].(string)
			}
			own, agent := made(`{"name":"own","scopes":["read"]}`), made(`{"name":"laptop","agent":true}`)
			page := string(w.get("/tokens", browser, cookies(login)).body)
			asking, _ := p.asked(nil, cookies(login))
			for at, text := range map[string]string{"the page of tokens": page, "the consent": string(asking.body)} {
				if strings.Contains(text, "no means to ask about you") != c.gives.NoRefresh {
					t.Errorf("%s says: %s", at, text)
				}
			}
			if c.lose != nil {
				c.lose(provider)
			}
			w.advance(c.after)
			before := provider.Requests("/token")
			if a := w.get("/api/v1/me", bearer(own)); a.StatusCode != c.person {
				t.Errorf("her own token: %d %s, want %d", a.StatusCode, a.body, c.person)
			}
			for who, at := range map[string]struct {
				secret string
				status int
			}{"her agent": {agent, c.agent}, "her program": {key, c.program}} {
				a := w.do("POST", "/mcp", greeting, bearer(at.secret), header("Accept", "application/json, text/event-stream"))
				if a.StatusCode != at.status {
					t.Errorf("%s: %d %s, want %d", who, a.StatusCode, a.body, at.status)
				}
			}
			if a := p.refresh(refresh, nil); a.StatusCode != c.refresh {
				t.Errorf("her program's refresh: %d %s, want %d", a.StatusCode, a.body, c.refresh)
			}
			if got := provider.Requests("/token") - before; c.asked != never && got != c.asked {
				t.Errorf("the provider was asked %d times, want %d", got, c.asked)
			}
			if c.person != 502 {
				return
			}
			provider.Does(fakeoidc.Wrong{})
			w.advance(time.Minute)
			w.want(w.get("/api/v1/me", bearer(own)), 200, "")
		})
	}
}

func TestAnAgentsTokenOfAPersonIsGoodAsLongAsTheyAreAnOperator(t *testing.T) {
	t.Parallel()
	w, provider := peopleWorld(t)
	login := w.signInAs(provider, ann("operators"))
	form := url.Values{"name": {"laptop"}, "tier": {"3"}, "repos": {"joe/infra"}}
	secret := shownSecret(w.read(w.submit("/tokens", form, cookies(login)), "/tokens", 201))
	w.page("/tokens", 200, cookies(login)).has("laptop", "of gitea:ann")
	was, err := w.web.Access.AgentToken(t.Context(), secret)
	if err != nil || was.MaxTier != 3 {
		t.Fatalf("%+v, %v", was, err)
	}
	for _, c := range []struct {
		group string
		code  fault.Code
	}{{"reviewers", fault.Unauthenticated}, {"operators", ""}, {"viewers", fault.Unauthenticated}} {
		w.signInAs(provider, ann(c.group))
		if _, err := w.web.Access.AgentToken(t.Context(), secret); fault.CodeOf(err) != c.code {
			t.Errorf("one of %s is let in: %v", c.group, err)
		}
		if err := w.web.Access.StillAgent(t.Context(), was); fault.CodeOf(err) != c.code {
			t.Errorf("one of %s goes on: %v", c.group, err)
		}
	}
}
