package web_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/system/identity"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakeoidc"
	"github.com/claudeops/claudeops/internal/web/guard"
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
	if err != nil {
		w.Fatal(err)
	}
	at, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		w.Fatal(err)
	}
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
	a := w.get(back.String(), fromElsewhere, cookies(kept))
	if a.StatusCode != http.StatusOK {
		w.Fatalf("%d: %s", a.StatusCode, a.body)
	}
	return loginOf(w, a)
}

// loginOf is the cookie of the login that an answer sets.
func loginOf(t testing.TB, a reply) *http.Cookie {
	t.Helper()
	for _, c := range a.Cookies() {
		if c.Name == guard.CookieName {
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
