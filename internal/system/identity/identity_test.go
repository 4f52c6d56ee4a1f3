package identity_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/identity"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakeoidc"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

const redirect = "https://ops.example/sign-in/callback/"

// rig is a provider, and what asks it, with one clock for both.
type rig struct {
	*fakeoidc.Provider
	asks *identity.Provider
	now  time.Time
}

func newRig(t *testing.T, change func(*identity.Settings)) *rig {
	t.Helper()
	r := &rig{now: time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return r.now }
	r.Provider = fakeoidc.New(clock)
	t.Cleanup(r.Close)
	r.SignedIn(fakeoidc.Person{Subject: "7", User: "ann", Groups: []string{"b", "a", "b"}})
	s := identity.Settings{Name: "gitea", Kind: identity.OpenID, Issuer: r.Issuer(), ClientID: r.ID,
		ClientSecret: r.Secret}
	if change != nil {
		change(&s)
	}
	must.Do(t, s.Check())
	r.asks = identity.New(s, identity.Options{Redirect: redirect, Now: clock})
	return r
}

// code goes to the provider as a browser, and brings back what it was given.
func (r *rig) code(t *testing.T, f identity.Flow) string {
	t.Helper()
	address, err := r.asks.Begin(t.Context(), f)
	must.Do(t, err)
	resp, err := http.DefaultTransport.RoundTrip(request(t, address))
	must.Do(t, err)
	_ = resp.Body.Close()
	back, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || !strings.HasPrefix(back.String(), redirect+"gitea?") || back.Query().Get("state") != f.State {
		t.Fatalf("the provider sends the browser to %s: %v", back, err)
	}
	return back.Query().Get("code")
}

func request(t *testing.T, address string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	must.Do(t, err)
	return req
}

func flow(t *testing.T) identity.Flow {
	t.Helper()
	f, err := identity.NewFlow(rand.Reader)
	must.Do(t, err)
	return f
}

// signIn goes the whole way.
func (r *rig) signIn(t *testing.T) (identity.Person, identity.Grant, error) {
	t.Helper()
	f := flow(t)
	return r.asks.Finish(t.Context(), f, r.code(t, f))
}

func TestAPersonIsWhoTheProviderSays(t *testing.T) {
	r := newRig(t, nil)
	who, grant, err := r.signIn(t)
	if err != nil || who.Provider != "gitea" || who.Issuer != r.Issuer() || who.Subject != "7" || who.User != "ann" ||
		who.Session != "session-of-7" ||
		!slices.Equal(who.Groups, []string{"a", "b"}) || grant.Refresh == "" {
		t.Fatalf("%+v, %v", who, err)
	}
	r.SignedIn(fakeoidc.Person{Subject: "7", User: "ann", Groups: []string{"c"}})
	now, next, err := r.asks.Look(t.Context(), who, grant)
	if err != nil || !slices.Equal(now.Groups, []string{"c"}) || next.Refresh == grant.Refresh ||
		now.Session != who.Session {
		t.Errorf("looked at again: %+v, %v", now, err)
	}
	if _, _, err := r.asks.Look(t.Context(), who, grant); fault.CodeOf(err) != fault.Unauthenticated {
		t.Errorf("a refresh token that is used up: %v", err)
	}
	other := who
	other.Subject = "8"
	if _, _, err := r.asks.Look(t.Context(), other, next); fault.CodeOf(err) != fault.Unauthenticated {
		t.Errorf("another person: %v", err)
	}
}

func TestKeysMayBeRotatedAtAnyTime(t *testing.T) {
	r := newRig(t, nil)
	if _, _, err := r.signIn(t); err != nil {
		t.Fatal(err)
	}
	f := flow(t)
	code := r.code(t, f)
	r.RotateKey()
	if _, _, err := r.asks.Finish(t.Context(), f, code); err != nil {
		t.Errorf("a key that is new: %v", err)
	}
}

// TestAnAnswerThatIsNoGoodSignsNobodyIn tries answers that an attacker, a fault or a setting may cause.
func TestAnAnswerThatIsNoGoodSignsNobodyIn(t *testing.T) {
	at := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	claim := func(name string, value any) fakeoidc.Wrong {
		return fakeoidc.Wrong{Claims: map[string]any{name: value}}
	}
	groups := make([]string, 1001)
	for i := range groups {
		groups[i] = strings.Repeat("g", 1+i%200) + string(rune('a'+i%26))
	}
	for name, c := range map[string]struct {
		wrong fakeoidc.Wrong
		code  fault.Code
		says  string
	}{
		"another issuer":   {claim("iss", "https://evil.example"), fault.Unauthenticated, "issuer"},
		"another audience": {claim("aud", "other"), fault.Unauthenticated, "audience"},
		"two audiences": {claim("aud", []string{"claudeops", "other"}), fault.Unauthenticated,
			"another application"},
		"for another application":    {claim("azp", "other"), fault.Unauthenticated, "another application"},
		"another nonce":              {claim("nonce", "replayed"), fault.Unauthenticated, "another sign-in"},
		"no nonce":                   {claim("nonce", nil), fault.Unauthenticated, "another sign-in"},
		"expired":                    {claim("exp", at.Add(-time.Second).Unix()), fault.Unauthenticated, "clocks"},
		"a clock ten minutes ahead":  {claim("iat", at.Add(10*time.Minute).Unix()), fault.Unauthenticated, "clock"},
		"a clock ten minutes behind": {claim("iat", at.Add(-10*time.Minute).Unix()), fault.Unauthenticated, "clock"},
		"not yet": {claim("nbf", at.Add(10*time.Minute).Unix()), fault.Unauthenticated,
			"time has not come"},
		"another access token":        {claim("at_hash", "AAAAAAAAAAAAAAAAAAAAAA"), fault.Unauthenticated, "access token"},
		"a key that is not published": {fakeoidc.Wrong{Key: true}, fault.Unauthenticated, "signature"},
		"no signature":                {fakeoidc.Wrong{Algorithm: "none"}, fault.Unauthenticated, "signature"},
		"a signature by the secret":   {fakeoidc.Wrong{Algorithm: "HS256"}, fault.Unauthenticated, "signature"},
		"no ID token":                 {fakeoidc.Wrong{NoIDToken: true}, fault.Unauthenticated, "no ID token"},
		"no subject": {fakeoidc.Wrong{Claims: map[string]any{"sub": ""},
			UserInfo: map[string]any{"sub": ""}}, fault.Unauthenticated, "subject"},
		"two persons at once": {fakeoidc.Wrong{UserInfo: map[string]any{"sub": "8"}}, fault.Unauthenticated,
			"two persons"},
		"a name with a hidden letter": {fakeoidc.Wrong{UserInfo: map[string]any{"preferred_username": "an\u200bn"}},
			fault.Unauthenticated, "hidden"},
		"a name from right to left": {fakeoidc.Wrong{UserInfo: map[string]any{"preferred_username": "\u202enna"}},
			fault.Unauthenticated, "hidden"},
		"a name of two lines": {fakeoidc.Wrong{UserInfo: map[string]any{"preferred_username": "ann\nbob"}},
			fault.Unauthenticated, "hidden"},
		"a name without end": {fakeoidc.Wrong{UserInfo: map[string]any{"preferred_username": strings.Repeat("a",
			200)}}, fault.Unauthenticated, "too long"},
		"a thousand groups and one": {fakeoidc.Wrong{UserInfo: map[string]any{"groups": groups}}, fault.Unauthenticated,
			"more than 1000"},
		"a group without end": {fakeoidc.Wrong{UserInfo: map[string]any{"groups": []string{strings.Repeat("a",
			300)}}}, fault.Unauthenticated, "256"},
		"groups that are a number": {fakeoidc.Wrong{UserInfo: map[string]any{"groups": 7}}, fault.Unauthenticated,
			"neither a list nor a text"},
		"groups of megabytes": {fakeoidc.Wrong{UserInfo: map[string]any{"groups": strings.Repeat("a", 2<<20)}},
			fault.UpstreamError, "bytes"},
		"the provider fails":           {fakeoidc.Wrong{Status: 500}, fault.UpstreamError, "error of its own"},
		"the provider is in the works": {fakeoidc.Wrong{Status: 503}, fault.UpstreamError, "error of its own"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			f := flow(t)
			code := r.code(t, f)
			r.Does(c.wrong)
			who, _, err := r.asks.Finish(t.Context(), f, code)
			if fault.CodeOf(err) != c.code || who.Subject != "" && err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("%+v, %s %v; want %s with %q", who, fault.CodeOf(err), err, c.code, c.says)
			}
			if strings.Contains(err.Error(), "inner life") {
				t.Errorf("it tells what the provider said: %v", err)
			}
		})
	}
}

func TestACodeIsForTheBrowserThatBeganAndGoodOnce(t *testing.T) {
	r := newRig(t, nil)
	mine, other := flow(t), flow(t)
	if _, _, err := r.asks.Finish(t.Context(), other, r.code(t, mine)); fault.CodeOf(err) != fault.Unauthenticated {
		t.Errorf("another browser's code: %v", err)
	}
	code := r.code(t, mine)
	if _, _, err := r.asks.Finish(t.Context(), mine, code); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.asks.Finish(t.Context(), mine, code); fault.CodeOf(err) != fault.Unauthenticated {
		t.Errorf("a replayed code: %v", err)
	}
}

func TestAProviderThatIsNotAsItShouldBeIsSaidSo(t *testing.T) {
	for name, c := range map[string]struct {
		wrong  fakeoidc.Wrong
		change func(*identity.Settings)
		says   string
	}{
		"another issuer than configured": {fakeoidc.Wrong{Issuer: "https://evil.example"}, nil,
			"CLAUDEOPS_SIGN_IN_GITEA_ISSUER"},
		"a description of megabytes": {fakeoidc.Wrong{Huge: true}, nil, "cannot be read"},
		"down":                       {fakeoidc.Wrong{Status: 502}, nil, "try again later"},
		"nobody there": {fakeoidc.Wrong{}, func(s *identity.Settings) { s.Issuer = "http://127.0.0.1:1" },
			"try again later"},
	} {
		r := newRig(t, c.change)
		r.Does(c.wrong)
		if _, err := r.asks.Begin(t.Context(), flow(t)); fault.CodeOf(err) != fault.UpstreamError ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := r.asks.Check(t.Context()); err == nil {
			t.Errorf("%s: doctor finds nothing", name)
		}
	}
	r := newRig(t, func(s *identity.Settings) { s.ClientSecret = "wrong-secret" })
	if _, _, err := r.signIn(t); fault.CodeOf(err) != fault.Misconfigured {
		t.Errorf("a wrong client secret: %v", err)
	}
}

func TestADownedProviderIsNotWaitedForByEverybodyInTurn(t *testing.T) {
	r := newRig(t, nil)
	r.Does(fakeoidc.Wrong{Status: 502})
	for range 5 {
		if _, err := r.asks.Begin(t.Context(), flow(t)); err == nil {
			t.Fatal("it is down")
		}
	}
	if asked := r.Requests("/.well-known/openid-configuration"); asked != 1 {
		t.Errorf("it was asked %d times at one moment", asked)
	}
	r.Does(fakeoidc.Wrong{})
	r.now = r.now.Add(5 * time.Second)
	if _, err := r.asks.Begin(t.Context(), flow(t)); err != nil {
		t.Errorf("it is up again: %v", err)
	}
}

func TestTheProviderIsTheOnlyHostThatIsAsked(t *testing.T) {
	r := newRig(t, nil)
	far := strings.Replace(r.Issuer(), "127.0.0.1", "localhost", 1)
	s := identity.Settings{Name: "gitea", Kind: identity.OpenID, Issuer: far, ClientID: r.ID, ClientSecret: r.Secret}
	asks := identity.New(s, identity.Options{Redirect: redirect, Now: func() time.Time { return r.now }})
	r.Does(fakeoidc.Wrong{Issuer: far}) // its other addresses are of 127.0.0.1, which is not configured
	f := flow(t)
	address, err := asks.Begin(t.Context(), f)
	must.Do(t, err)
	if _, _, err = asks.Finish(t.Context(), f, "code"); fault.CodeOf(err) != fault.UpstreamError ||
		!strings.Contains(err.Error(), "CLAUDEOPS_SIGN_IN_GITEA_HOSTS") {
		t.Errorf("%s: %v", address, err)
	}
	if r.Requests("/token") != 0 {
		t.Error("a host was asked that nobody has named")
	}
}

func TestASlowProviderEndsWithTheCaller(t *testing.T) {
	r := newRig(t, nil)
	f := flow(t)
	code := r.code(t, f)
	never := make(chan struct{})
	defer close(never)
	r.Does(fakeoidc.Wrong{Slow: never})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := r.asks.Finish(ctx, f, code); fault.CodeOf(err) != fault.Timeout &&
		!errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%s: %v", fault.CodeOf(err), err)
	}
}

func TestGitHubSaysWhoByItsAPI(t *testing.T) {
	r := newRig(t, func(s *identity.Settings) { s.Kind = identity.GitHub })
	groups := []string{"acme", "acme/sre", "invited-to", "invited-to/sre"} // the last two are pending
	for i := range 150 {
		groups = append(groups, "acme/team-"+strings.Repeat("x", i+1))
	}
	r.SignedIn(fakeoidc.Person{Subject: "7", User: "ann", Groups: groups})
	who, grant, err := r.signIn(t)
	if err != nil || who.Subject != "7" || who.User != "ann" || len(who.Groups) != 152 ||
		!slices.Contains(who.Groups, "acme/sre") || grant.Refresh != "" {
		t.Fatalf("%+v, %v", who, err)
	}
	r.SignedIn(fakeoidc.Person{Subject: "7", User: "ann"})
	if now, _, err := r.asks.Look(t.Context(), who, grant); err != nil || len(now.Groups) != 0 {
		t.Errorf("%+v, %v", now, err)
	}
	r.Does(fakeoidc.Wrong{Status: http.StatusForbidden})
	if _, _, err := r.asks.Look(t.Context(), who, grant); fault.CodeOf(err) != fault.RateLimited {
		t.Errorf("the limit: %v", err)
	}
	r.Does(fakeoidc.Wrong{})
	r.Revoke()
	if _, _, err := r.asks.Look(t.Context(), who, grant); fault.CodeOf(err) != fault.Unauthenticated {
		t.Errorf("a token that was revoked: %v", err)
	}
}

// People can often set claims of their own at a provider. One that differs in letter case is not the provider's.
func TestClaimsCountByTheirExactNames(t *testing.T) {
	for name, c := range map[string]struct {
		claims map[string]any
		user   string // "" where the answer is refused
	}{
		"a name in capital letters": {map[string]any{"PREFERRED_USERNAME": "boss", "Groups": []string{"operators"}}, "ann"},
		"a subject":                 {map[string]any{"SUB": "1"}, ""},
		"an audience":               {map[string]any{"Aud": "claudeops"}, ""},
		"a nonce":                   {map[string]any{"Nonce": "x"}, ""},
		"an issuer":                 {map[string]any{"ISS": "https://evil.example"}, ""},
	} {
		r := newRig(t, nil)
		r.Does(fakeoidc.Wrong{Claims: c.claims})
		who, _, err := r.signIn(t)
		if c.user == "" && fault.CodeOf(err) != fault.Unauthenticated || c.user != "" && (err != nil || who.User != c.user ||
			slices.Contains(who.Groups, "operators")) {
			t.Errorf("%s: %+v, %v", name, who, err)
		}
	}
	r := newRig(t, nil)
	for _, doubled := range []string{
		`{"sub":"7","preferred_username":"ann","preferred_username":"boss"}`, `{"sub":"7","sub":"8"}`,
		`{"sub":"7","Sub":"8"}`,
	} {
		r.Does(fakeoidc.Wrong{Says: doubled})
		if who, _, err := r.signIn(t); fault.CodeOf(err) != fault.Unauthenticated {
			t.Errorf("%s: %+v, %v", doubled, who, err)
		}
	}
	r.Does(fakeoidc.Wrong{Says: `{"sub":"7","preferred_username":"ann","PREFERRED_USERNAME":"boss"}`})
	if who, _, err := r.signIn(t); err != nil || who.User != "ann" {
		t.Errorf("%+v, %v", who, err)
	}
	g := newRig(t, func(s *identity.Settings) { s.Kind = identity.GitHub })
	for text, want := range map[string]string{
		`{"id":7,"login":"ann","LOGIN":"boss","ID":1}`: "ann", `{"id":7,"login":"ann","login":"boss"}`: "",
	} {
		g.Does(fakeoidc.Wrong{Says: text})
		if who, _, err := g.signIn(t); (err == nil) != (want != "") || who.User != want || want != "" && who.Subject != "7" {
			t.Errorf("%s: %+v, %v", text, who, err)
		}
	}
}

// A claim that is there twice is read by others as the first one, or as the last one, so that it is neither.
func TestATokenWithAClaimTwiceIsRefused(t *testing.T) {
	r := newRig(t, nil)
	for again, refused := range map[string]bool{`"more":1`: false, `"sub":"8"`: true, `"preferred_username":"boss"`: true,
		`"groups":["operators"],"groups":["viewers"]`: true, `"nonce":"x"`: true} {
		r.Does(fakeoidc.Wrong{Again: again})
		who, _, err := r.signIn(t)
		if (fault.CodeOf(err) == fault.Unauthenticated) != refused || !refused && (err != nil || who.User != "ann") {
			t.Errorf("an ID token with %s behind it: %+v, %v", again, who, err)
		}
	}
	for again, refused := range map[string]bool{`"more":1`: false, `"sub":"8"`: true, `"sid":"a","sid":"b"`: true} {
		r.Does(fakeoidc.Wrong{Again: again})
		got, err := r.asks.Logout(t.Context(), r.LogoutToken("7", nil))
		if (fault.CodeOf(err) == fault.Unauthenticated) != refused || !refused && (err != nil || got.Subject != "7") {
			t.Errorf("a logout token with %s behind it: %+v, %v", again, got, err)
		}
	}
}

// Anybody can post tokens. However many come, the provider is asked for its keys now and then.
func TestStrangersTokensDoNotMakeTheProviderBeAsked(t *testing.T) {
	r := newRig(t, nil)
	if _, err := r.asks.Logout(t.Context(), r.LogoutToken("7", nil)); err != nil {
		t.Fatal(err)
	}
	r.Does(fakeoidc.Wrong{Key: true})
	for range 60 {
		if _, err := r.asks.Logout(t.Context(), r.LogoutToken("7", nil)); fault.CodeOf(err) != fault.Unauthenticated {
			t.Fatal(err)
		}
	}
	if n := r.Requests("/keys"); n > 1 {
		t.Errorf("the provider was asked for its keys %d times", n)
	}
	r.Does(fakeoidc.Wrong{})
	r.RotateKey()
	r.now = r.now.Add(11 * time.Second)
	// The library's own goroutine may still hold the answer of before for a moment. It gives it to who asks then.
	token, limit := r.LogoutToken("7", nil), time.Now().Add(time.Minute)
	for _, err := r.asks.Logout(t.Context(), token); err != nil; _, err = r.asks.Logout(t.Context(), token) {
		if time.Now().After(limit) || fault.CodeOf(err) != fault.Unauthenticated {
			t.Fatalf("a new key: %v", err)
		}
		runtime.Gosched()
	}
	for range 5 { // each with the same keys
		if _, _, err := r.signIn(t); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.Requests("/keys"); n > 3 {
		t.Errorf("the provider was asked for its keys %d times", n)
	}
}

func TestOnlyTheProviderSignsPeopleOut(t *testing.T) {
	r := newRig(t, nil)
	got, err := r.asks.Logout(t.Context(), r.LogoutToken("7", map[string]any{"sid": "s"}))
	if err != nil || got.Subject != "7" || got.Session != "s" || got.Issuer != r.Issuer() || got.ID == "" {
		t.Errorf("%+v, %v", got, err)
	}
	for name, claims := range map[string]map[string]any{
		"of another application": {"aud": "other"}, "of another provider": {"iss": "https://evil.example"},
		"an ID token": {"nonce": "x"}, "an ID token in capital letters": {"NONCE": "x"}, "another person": {"SUB": "8"},
		"of nobody": {"sub": nil}, "no logout": {"events": map[string]any{}},
		"expired":    {"exp": r.now.Add(-time.Second).Unix()},
		"an old one": {"iat": r.now.Add(-time.Hour).Unix()},
	} {
		if got, err := r.asks.Logout(t.Context(), r.LogoutToken("7", claims)); fault.CodeOf(err) != fault.Unauthenticated {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
