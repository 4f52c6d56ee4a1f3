// Package fakeoidc is a provider of OpenID Connect for tests: discovery, keys, authorization code with PKCE, refresh
// tokens that are good once, userinfo, and logout. It is as strict as a certified one where that protects people, and
// makes the mistakes that a test asks for. It speaks GitHub's OAuth, too.
package fakeoidc

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Person is somebody who has an account.
type Person struct {
	Subject string
	User    string
	Groups  any // the claim as it is, such as []string{"acme"}; nil for none
}

// Wrong lists the mistakes that the provider makes.
type Wrong struct {
	Claims    map[string]any // of the ID token, in place of the right ones; nil takes one out
	Again     string         // a claim that each token has behind the others, word for word, such as one a second time
	Key       bool           // signs with a key that it does not publish
	Algorithm string         // in the header of the ID token, in place of ES256
	Status    int            // that every endpoint but keys answers with
	Issuer    string         // that discovery names
	NoIDToken bool
	NoRefresh bool            // gives no refresh token, as a provider does that was not asked for offline_access
	Huge      bool            // answers with megabytes
	Slow      <-chan struct{} // every endpoint waits for it
	Says      string          // about the person, word for word
	UserInfo  map[string]any  // more that it says there
}

// Provider is the provider.
type Provider struct {
	ID, Secret string // of its only client
	Now        func() time.Time

	server   *httptest.Server
	mu       sync.Mutex
	key      *ecdsa.PrivateKey
	keyID    int
	person   Person // who is signed in there
	wrong    Wrong
	codes    map[string]grant
	tokens   map[string]grant // access tokens
	refresh  map[string]grant
	requests []string
	next     int
}

type grant struct {
	person                     Person
	nonce, challenge, redirect string
}

// New starts a provider whose clock is now. Close ends it.
func New(now func() time.Time) *Provider {
	p := &Provider{ID: "claudeops", Secret: "the-client-secret-of-tests", Now: now, codes: map[string]grant{},
		tokens: map[string]grant{}, refresh: map[string]grant{}}
	p.RotateKey()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("GET /login/oauth/authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("POST /login/oauth/access_token", p.token)
	mux.HandleFunc("GET /userinfo", p.userinfo)
	mux.HandleFunc("GET /api/v3/user", p.githubUser)
	mux.HandleFunc("GET /api/v3/user/memberships/orgs", p.githubGroups)
	mux.HandleFunc("GET /api/v3/user/teams", p.githubGroups)
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.requests = append(p.requests, r.Method+" "+r.URL.Path)
		wrong := p.wrong
		p.mu.Unlock()
		if wrong.Slow != nil {
			select {
			case <-wrong.Slow:
			case <-r.Context().Done():
			}
		}
		if wrong.Status != 0 && r.URL.Path != "/keys" {
			http.Error(w, "a page of the provider with its inner life", wrong.Status)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	return p
}

// Close ends the provider.
func (p *Provider) Close() { p.server.Close() }

// Issuer returns its address.
func (p *Provider) Issuer() string { return p.server.URL }

// RotateKey signs from now on with another key, and publishes that alone.
func (p *Provider) RotateKey() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key, p.keyID = key, p.keyID+1
}

// SignedIn sets who is signed in at the provider from now on. Holders of tokens are changed with it, if they have the
// subject.
func (p *Provider) SignedIn(who Person) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.person = who
	for _, of := range []map[string]grant{p.tokens, p.refresh} {
		for name, g := range of {
			if g.person.Subject == who.Subject {
				g.person = who
				of[name] = g
			}
		}
	}
}

// Does has the provider do something wrong from now on; the zero value nothing.
func (p *Provider) Does(w Wrong) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrong = w
}

// Revoke makes every token useless.
func (p *Provider) Revoke() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.tokens)
	clear(p.refresh)
}

// Requests counts those of a path.
func (p *Provider) Requests(path string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.requests {
		if strings.HasSuffix(r, " "+path) {
			n++
		}
	}
	return n
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (p *Provider) discovery(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	issuer, huge := p.wrong.Issuer, p.wrong.Huge
	p.mu.Unlock()
	at := p.server.URL
	if issuer == "" {
		issuer = at
	}
	d := map[string]any{
		"issuer": issuer, "authorization_endpoint": at + "/authorize", "token_endpoint": at + "/token",
		"jwks_uri": at + "/keys", "userinfo_endpoint": at + "/userinfo",
		"id_token_signing_alg_values_supported": []string{"ES256"},
		"scopes_supported":                      []string{"openid", "profile", "groups"},
		"code_challenge_methods_supported":      []string{"S256"}, "backchannel_logout_supported": true,
	}
	if huge {
		d["padding"] = strings.Repeat("x", 2<<20)
	}
	answer(w, http.StatusOK, d)
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	point, err := p.key.PublicKey.Bytes()
	if err != nil {
		panic(err)
	}
	answer(w, http.StatusOK, map[string]any{"keys": []map[string]string{{
		"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": strconv.Itoa(p.keyID), "x": encode(point[1:33]),
		"y": encode(point[33:]),
	}}})
}

// authorize takes the person for one who agrees at once.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != p.ID || q.Get("response_type") != "code" || q.Get("state") == "" ||
		q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" {
		http.Error(w, "the request lacks something", http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	code := fmt.Sprintf("code-%d", p.next)
	p.codes[code] = grant{p.person, q.Get("nonce"), q.Get("code_challenge"), q.Get("redirect_uri")}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(),
		http.StatusFound)
}

// take takes what a request for tokens shows.
func (p *Provider) take(r *http.Request) (grant, string) {
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	if id != p.ID || secret != p.Secret {
		return grant{}, "invalid_client"
	}
	from, name := p.codes, r.PostFormValue("code")
	if r.PostFormValue("grant_type") == "refresh_token" {
		from, name = p.refresh, r.PostFormValue("refresh_token")
	}
	g, known := from[name]
	delete(from, name) // good once
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !known || r.PostFormValue("grant_type") == "authorization_code" &&
		(g.challenge != encode(sum[:]) || g.redirect != r.PostFormValue("redirect_uri")) {
		return grant{}, "invalid_grant"
	}
	return g, ""
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g, refused := p.take(r)
	if refused != "" {
		answer(w, http.StatusBadRequest, map[string]string{"error": refused})
		return
	}
	p.next++
	access, refresh := fmt.Sprintf("access-%d", p.next), fmt.Sprintf("refresh-%d", p.next)
	p.tokens[access], p.refresh[refresh] = g, g
	out := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": 300, "refresh_token": refresh}
	if !p.wrong.NoIDToken {
		out["id_token"] = p.idToken(g)
	}
	if p.wrong.NoRefresh {
		delete(out, "refresh_token")
	}
	if strings.HasPrefix(r.URL.Path, "/login/") {
		delete(out, "id_token")
		delete(out, "refresh_token")
		delete(out, "expires_in")
	}
	answer(w, http.StatusOK, out)
}

func (p *Provider) idToken(g grant) string {
	now := p.Now()
	claims := map[string]any{
		"iss": p.server.URL, "sub": g.person.Subject, "aud": p.ID, "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(),
		"nonce":              g.nonce,
		"preferred_username": g.person.User, "sid": "session-of-" + g.person.Subject,
	}
	if g.person.Groups != nil {
		claims["groups"] = g.person.Groups
	}
	maps.Copy(claims, p.wrong.Claims)
	return p.sign(claims)
}

// LogoutToken returns the token that the provider posts when a person signs out; claims change it.
func (p *Provider) LogoutToken(subject string, claims map[string]any) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.Now()
	all := map[string]any{
		"iss": p.server.URL, "aud": p.ID, "iat": now.Unix(), "exp": now.Add(2 * time.Minute).Unix(), "jti": rand.Text(),
		"sub":    subject,
		"events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}},
	}
	maps.Copy(all, claims)
	return p.sign(all)
}

func (p *Provider) sign(claims map[string]any) string {
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	header := map[string]string{"alg": "ES256", "kid": strconv.Itoa(p.keyID), "typ": "JWT"}
	key := p.key
	if p.wrong.Algorithm != "" {
		header["alg"] = p.wrong.Algorithm
	}
	if p.wrong.Key {
		key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	text := encodeJSON(header) + "." + p.encodeClaims(claims)
	if header["alg"] == "none" {
		return text + "."
	}
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		panic(err)
	}
	var signature [64]byte
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return text + "." + encode(signature[:])
}

func (p *Provider) bearer(w http.ResponseWriter, r *http.Request) (grant, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g, known := p.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	if !known {
		http.Error(w, "no such token", http.StatusUnauthorized)
	}
	return g, known
}

func (p *Provider) userinfo(w http.ResponseWriter, r *http.Request) {
	g, known := p.bearer(w, r)
	if !known {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	info := map[string]any{"sub": g.person.Subject, "preferred_username": g.person.User}
	if g.person.Groups != nil {
		info["groups"] = g.person.Groups
	}
	maps.Copy(info, p.wrong.UserInfo)
	if p.wrong.Says != "" {
		answer(w, http.StatusOK, json.RawMessage(p.wrong.Says))
		return
	}
	answer(w, http.StatusOK, info)
}

func (p *Provider) githubUser(w http.ResponseWriter, r *http.Request) {
	if g, known := p.bearer(w, r); known {
		if says := p.says(); says != "" {
			answer(w, http.StatusOK, json.RawMessage(says))
			return
		}
		id, _ := strconv.Atoi(g.person.Subject)
		answer(w, http.StatusOK, map[string]any{"id": id, "login": g.person.User})
	}
}

func (p *Provider) says() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wrong.Says
}

// githubGroups answers with organisations and teams, a page of each.
func (p *Provider) githubGroups(w http.ResponseWriter, r *http.Request) {
	g, known := p.bearer(w, r)
	if !known {
		return
	}
	list := []map[string]any{}
	groups, _ := g.person.Groups.([]string)
	for _, group := range groups {
		organisation, team, isTeam := strings.Cut(group, "/")
		if isTeam == strings.HasSuffix(r.URL.Path, "/teams") {
			state := "active"
			if strings.HasPrefix(organisation, "invited-") { // a server of GitHub Enterprise that ignores ?state=active
				state = "pending"
			}
			list = append(list, map[string]any{"slug": team, "state": state,
				"organization": map[string]any{"login": organisation}})
		}
	}
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	size, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
	from := min(len(list), (page-1)*size)
	answer(w, http.StatusOK, list[from:min(len(list), from+size)])
}

func (p *Provider) encodeClaims(claims map[string]any) string {
	text, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	if p.wrong.Again != "" {
		text = []byte(strings.TrimSuffix(string(text), "}") + "," + p.wrong.Again + "}")
	}
	return encode(text)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func encodeJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return encode(b)
}
