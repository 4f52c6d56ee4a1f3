package identity

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/oauth2"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// openid is a provider of OpenID Connect.
type openid struct {
	*Provider
	keys  *keys
	mu    *sync.Mutex
	found *discovered // nil before it was asked
	// problem says why it could not be asked at the time, so that many who sign in do not wait for it one after the other.
	problem error
	at      time.Time
}

// retryAfter is the pause before a provider that could not be reached is asked again.
const retryAfter = 3 * time.Second

// discovered is a provider's description of itself.
type discovered struct {
	provider *oidc.Provider
	// answers verifies what the provider has given to us, and posts what anybody can post. Each keeps the provider's keys.
	answers, posts *oidc.IDTokenVerifier
	at             time.Time
	providerMetadata
}

// providerMetadata holds the members that we read beside those that the library reads.
type providerMetadata struct {
	Scopes        []string `json:"scopes_supported"`
	AuthMethods   []string `json:"token_endpoint_auth_methods_supported"`
	Challenges    []string `json:"code_challenge_methods_supported"`
	BackChannel   bool     `json:"backchannel_logout_supported"`
	Authorization string   `json:"authorization_endpoint"`
	Keys          string   `json:"jwks_uri"`
	Token         string   `json:"token_endpoint"`
	UserInfo      string   `json:"userinfo_endpoint"`
	Algorithms    []string `json:"id_token_signing_alg_values_supported"`
}

// discover asks the provider for its addresses, at most once an hour while it answers.
func (o *openid) discover(ctx context.Context) (*discovered, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch now := o.now(); {
	case o.found != nil && now.Sub(o.found.at) < rediscover:
		return o.found, nil
	case o.problem != nil && now.Sub(o.at) < retryAfter:
		return nil, o.problem
	}
	found, err := o.fetchDiscovery(context.WithoutCancel(ctx))
	o.problem, o.at = err, o.now()
	if err == nil {
		o.found = found
	}
	return found, err
}

// fetchDiscovery asks the provider for its addresses.
func (o *openid) fetchDiscovery(ctx context.Context) (*discovered, error) {
	provider, err := oidc.NewProvider(o.withClient(ctx), o.settings.Issuer)
	var other *oidc.IssuerMismatchError
	if errors.As(err, &other) {
		return nil, fault.Wrap(err, fault.UpstreamError,
			"the provider %s calls itself by another issuer than the configured one; the operator "+
				"sets CLAUDEOPS_SIGN_IN_%s_ISSUER to exactly what it gives", o.settings.Name, VariablePart(o.settings.Name))
	}
	if err != nil {
		return nil, o.convertError(err, "has no description of itself")
	}
	found := &discovered{provider: provider, at: o.now()}
	if err := provider.Claims(&found.providerMetadata); err != nil {
		return nil, o.convertError(err, "")
	}
	if err := o.usable(found.providerMetadata); err != nil {
		return nil, err
	}
	found.answers = provider.Verifier(&oidc.Config{ClientID: o.settings.ClientID, Now: o.now})
	rarely := context.WithValue(ctx, oauth2.HTTPClient, o.keys.client)
	found.posts = (&oidc.ProviderConfig{IssuerURL: o.settings.Issuer, JWKSURL: found.Keys,
		Algorithms: signatures(found.Algorithms)}).NewProvider(rarely).Verifier(
		&oidc.Config{ClientID: o.settings.ClientID, Now: o.now})
	return found, nil
}

// signatures returns the algorithms with a public key among those that a provider has.
func signatures(offered []string) []string {
	return slices.DeleteFunc(slices.Clone(offered), func(name string) bool {
		return !slices.Contains([]string{
			oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512,
			oidc.EdDSA,
		}, name)
	})
}

// usable refuses addresses that a browser, or we, must not be sent to.
func (o *openid) usable(m providerMetadata) error {
	for _, address := range []string{m.Authorization, m.Keys, m.Token} {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || u.User != nil || !transport.IsConfidential(u) &&
			(!o.settings.PlainHTTP || u.Scheme != "http") {
			return fault.New(fault.UpstreamError,
				"the provider %s lacks an address to sign in at, or names one that is not of https", o.settings.Name)
		}
	}
	return nil
}

func (o *openid) config(ctx context.Context) (oauth2.Config, error) {
	found, err := o.discover(ctx)
	if err != nil {
		return oauth2.Config{}, err
	}
	endpoint := found.provider.Endpoint()
	endpoint.AuthStyle = oauth2.AuthStyleInHeader
	secret := o.secret()
	if secret == "" || len(found.AuthMethods) > 0 &&
		!slices.Contains(found.AuthMethods, "client_secret_basic") {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return oauth2.Config{
		ClientID: o.settings.ClientID, ClientSecret: secret, Endpoint: endpoint, RedirectURL: o.redirect,
		Scopes: o.scopes(found),
	}, nil
}

// scopes returns the scopes that the operator names, or the usual ones as far as the provider has them.
func (o *openid) scopes(found *discovered) []string {
	if len(o.settings.Scopes) > 0 {
		return append([]string{oidc.ScopeOpenID},
			slices.DeleteFunc(slices.Clone(o.settings.Scopes), func(s string) bool { return s == oidc.ScopeOpenID })...)
	}
	out := []string{oidc.ScopeOpenID, "profile"}
	for _, scope := range []string{"email", "groups"} {
		if slices.Contains(found.Scopes, scope) {
			out = append(out, scope)
		}
	}
	return out
}

func (o *openid) beginOptions(f Flow) []oauth2.AuthCodeOption {
	options := []oauth2.AuthCodeOption{oidc.Nonce(f.Nonce)}
	if slices.Contains(o.settings.Scopes, oidc.ScopeOfflineAccess) { // without it, providers leave the scope out
		options = append(options, oauth2.SetAuthURLParam("prompt", "consent"))
	}
	return options
}

// claims holds the claims of an ID token and of the provider's userinfo.
type claims struct {
	Subject       string         `json:"sub"`
	User          string         `json:"preferred_username"`
	Email         string         `json:"email"`
	EmailVerified jsontext.Value `json:"email_verified"`
	Session       string         `json:"sid"`
	Party         string         `json:"azp"`
}

func (o *openid) who(ctx context.Context, t *oauth2.Token, nonce string) (Person, error) {
	found, err := o.discover(ctx)
	if err != nil {
		return Person{}, err
	}
	var who Person
	raw, _ := t.Extra("id_token").(string)
	switch {
	case raw != "":
		if who, err = o.fromIDToken(ctx, found, raw, t.AccessToken, nonce); err != nil {
			return Person{}, err
		}
	case nonce != "":
		return Person{}, o.badAnswer("gave no ID token: it does not speak OpenID Connect here")
	}
	if found.UserInfo == "" {
		return who, nil
	}
	info, err := found.provider.UserInfo(o.withClient(ctx),
		oauth2.StaticTokenSource(&oauth2.Token{AccessToken: t.AccessToken, TokenType: "Bearer"}))
	if err != nil {
		return Person{}, o.failedInfo(err)
	}
	more, err := o.parseClaims(info.Claims)
	if err != nil {
		return Person{}, err
	}
	if who.Subject != "" && more.Subject != who.Subject {
		return Person{}, o.badAnswer("speaks of two persons at once")
	}
	return merged(who, more), nil
}

// failedInfo distinguishes an invalid token from a provider that is down. The library gives the status as a text.
func (o *openid) failedInfo(err error) error {
	if strings.HasPrefix(err.Error(), "401 ") || strings.HasPrefix(err.Error(), "403 ") {
		return fault.Wrap(err, fault.Unauthenticated, "the provider %s does not stand by the sign-in any more",
			o.settings.Name)
	}
	return o.convertError(err, "")
}

// merged combines a person's claims from both. The provider's present answer wins over its ID token, except that the
// groups may come from either.
func merged(token, info Person) Person {
	if token.Subject == "" {
		return info
	}
	if info.User != "" {
		token.User = info.User
	}
	if info.Groups != nil {
		token.Groups = info.Groups
	}
	return token
}

// fromIDToken verifies an ID token, and reads it.
func (o *openid) fromIDToken(ctx context.Context, found *discovered, raw, access, nonce string) (Person, error) {
	token, err := found.answers.Verify(ctx, raw)
	var expired *oidc.TokenExpiredError
	switch {
	case errors.As(err, &expired):
		return Person{}, fault.Wrap(err, fault.Unauthenticated,
			"the ID token of the provider %s has expired already; compare the clocks of both machines",
			o.settings.Name)
	case err != nil && strings.Contains(err.Error(), "fetching keys"): // the library has no error of its own for it
		return Person{}, o.convertError(err, "")
	case err != nil:
		return Person{}, fault.Wrap(err, fault.Unauthenticated,
			"the ID token of the provider %s is not valid: its signature, issuer or audience is not "+
				"the one that is expected, or its time has not come", o.settings.Name)
	case nonce != "" && token.Nonce != nonce:
		return Person{}, o.badAnswer("answered to another sign-in than this browser's")
	case nonce != "" && token.IssuedAt.Sub(o.now()).Abs() > allowedGap:
		return Person{}, o.badAnswer("has a clock that differs from this server's by more than " + allowedGap.String() +
			"; set both")
	case token.AccessTokenHash != "" && token.VerifyAccessToken(access) != nil:
		return Person{}, o.badAnswer("gave an ID token that belongs to another access token")
	}
	var c claims
	if exactly(token.Claims, &c) != nil {
		return Person{}, o.badAnswer("gave an ID token that cannot be read: a claim is there twice, or in capital letters")
	}
	if (len(token.Audience) > 1 || c.Party != "") && c.Party != o.settings.ClientID {
		return Person{}, o.badAnswer("gave an ID token that is for another application")
	}
	who, err := o.parseClaims(token.Claims)
	who.Session = c.Session
	return who, err
}

// parseClaims reads a person's claims.
func (o *openid) parseClaims(into func(any) error) (Person, error) {
	var c claims
	var all map[string]jsontext.Value
	if exactly(into, &c) != nil || exactly(into, &all) != nil {
		return Person{}, o.badAnswer("describes the person in a way that cannot be read")
	}
	who := Person{Subject: c.Subject, User: c.User}
	if who.User == "" && strings.Trim(string(c.EmailVerified), `"`) == "true" {
		who.User = c.Email
	}
	name := o.settings.GroupsClaim
	if name == "" {
		name = DefaultGroups
	}
	var err error
	if raw, there := all[name]; there && string(raw) != "null" {
		who.Groups, err = groups(raw)
	}
	if err != nil {
		return Person{}, o.badAnswer("names groups in a form that is neither a list nor a text")
	}
	return who, nil
}

// exactly reads a person's claims: names count with their letter case, and none may be there twice. Otherwise a claim
// that people can set themselves could stand in for one that the provider sets. The library matches names in any case:
// a name that matches one of its names only in another case is refused.
func exactly(claims func(any) error, into any) error {
	var raw rawJSON
	if err := claims(&raw); err != nil {
		return err
	}
	var all map[string]jsontext.Value
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	for name := range all {
		for _, read := range []string{
			"iss", "sub", "aud", "exp", "iat", "nbf", "nonce", "at_hash", "jti", "sid", "events", "_claim_names",
			"_claim_sources",
		} {
			if name != read && strings.EqualFold(name, read) {
				return errors.New("a claim in another letter case: " + read)
			}
		}
	}
	return json.Unmarshal(raw, into)
}

// rawJSON is a document that is not read yet.
type rawJSON []byte

// UnmarshalJSON implements encoding/json's Unmarshaler.
func (r *rawJSON) UnmarshalJSON(text []byte) error {
	*r = slices.Clone(text)
	return nil
}

// groups reads a claim of groups: a list of texts, or one text.
func groups(raw jsontext.Value) ([]string, error) {
	list := []string{}
	if err := json.Unmarshal(raw, &list); err == nil {
		return list, nil
	}
	var one string
	if err := json.Unmarshal(raw, &one); err != nil {
		return nil, err
	}
	return []string{one}, nil
}

func (o *openid) checkProvider(ctx context.Context) (notes []string, err error) {
	found, err := o.discover(ctx)
	if err != nil {
		return nil, err
	}
	if len(found.Challenges) > 0 && !slices.Contains(found.Challenges, "S256") {
		notes = append(notes, "it does not say that it heeds PKCE")
	}
	if found.BackChannel {
		notes = append(notes, "it can end sessions here (back-channel logout)")
	}
	return notes, nil
}

func (o *openid) logout(ctx context.Context, raw string) (Logout, error) {
	found, err := o.discover(ctx)
	if err != nil {
		return Logout{}, err
	}
	token, err := found.posts.VerifyLogout(ctx, raw)
	var c claims
	switch {
	case err != nil && strings.Contains(err.Error(), "fetching keys"):
		return Logout{}, o.convertError(err, "")
	case err != nil:
		return Logout{}, fault.Wrap(err, fault.Unauthenticated, "the logout token is not valid")
	case exactly(token.Claims, &c) != nil:
		return Logout{}, o.badAnswer("sent a logout token that cannot be read: a claim is there twice, or in capital letters")
	}
	if token.IssuedAt.Sub(o.now()).Abs() > allowedGap {
		return Logout{}, o.badAnswer("sent a logout token that is too old, or from the future")
	}
	return Logout{Issuer: o.settings.Issuer, Subject: token.Subject, Session: token.SessionID, ID: token.TokenID}, nil
}

// refetch is how long an answer with a provider's keys is cached. A token with an unknown key makes the library ask for
// the keys again, and anybody can post such tokens.
const refetch = 10 * time.Second

// keys asks a provider for its keys, on behalf of the library that verifies what strangers post: at most once in
// refetch, however many ask.
type keys struct {
	client *http.Client // to be given to the library
	over   *http.Client
	now    func() time.Time

	mu        sync.Mutex
	fetchedAt time.Time
	status    int
	text      []byte
	err       error
}

func newKeys(over *http.Client, now func() time.Time) *keys {
	k := &keys{over: over, now: now}
	k.client = &http.Client{Transport: k}
	return k
}

// RoundTrip implements http.RoundTripper. The client below follows redirects.
func (k *keys) RoundTrip(r *http.Request) (*http.Response, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := k.now(); k.fetchedAt.IsZero() || now.Sub(k.fetchedAt) >= refetch || now.Before(k.fetchedAt) {
		k.fetchedAt = now
		k.status, k.text, k.err = k.fetchKeys(r.Clone(r.Context()))
	}
	if k.err != nil {
		return nil, k.err
	}
	return &http.Response{Status: http.StatusText(k.status), StatusCode: k.status, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(len(k.text)),
		Body: io.NopCloser(bytes.NewReader(k.text)), Request: r}, nil
}

func (k *keys) fetchKeys(r *http.Request) (status int, text []byte, err error) {
	answer, err := k.over.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err = io.ReadAll(answer.Body)
	return answer.StatusCode, text, err
}
