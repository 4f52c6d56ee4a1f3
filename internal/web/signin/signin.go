// Package signin leads browsers to a provider of identities and takes them back: authorization code with PKCE, with a
// state and a nonce that only the initiating browser has. It also receives notices of persons who have signed out at
// their provider.
package signin

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/identity"
	"github.com/claudeops/claudeops/internal/web/httpx"
)

// Addresses, without the base path. What the provider has to know ends with its name.
const (
	WithPath      = httpx.SignInPath + "/with/"
	CallbackPath  = httpx.SignInPath + "/callback/"
	LoggedOutPath = httpx.SignInPath + "/logged-out/"
)

// life limits how long a person may take at the provider.
const life = 10 * time.Minute

// Bounds of what a provider sends with the browser, in bytes.
const (
	maxCode   = 4 << 10
	maxCookie = 4 << 10
	maxLogout = 16 << 10
)

// Options configures a SignIn. All fields are required.
type Options struct {
	Providers []*identity.Provider // in the order of the buttons; none: sign-in by a provider is off
	Access    *access.Gatekeeper
	Guard     *httpx.Guard
	Random    io.Reader
	Now       func() time.Time
}

// Bounds a minute of rows about strangers, from one address and from all of them.
const rowsEach, rowsAll = 10, 200

// SignIn signs people in by their providers. It is safe for concurrent use.
type SignIn struct {
	Options
	rows  *httpx.Failures
	flows *flows
}

// New makes a SignIn.
func New(o Options) *SignIn {
	return &SignIn{o, httpx.NewFailures(o.Now, rowsEach, rowsAll, ""), newFlows(o.Now, o.Random)}
}

// begun is the state that the browser keeps while its person is at the provider.
type begun struct {
	Provider string        `json:"provider"`
	Flow     identity.Flow `json:"flow"`
	Next     string        `json:"next"`  // where to go then, without the base
	Until    int64         `json:"until"` // Unix time
}

// provider returns the one that the address names.
func (s *SignIn) provider(req *httpx.Request) (*identity.Provider, error) {
	for _, p := range s.Providers {
		if p.Name() == req.PathValue("provider") {
			return p, nil
		}
	}
	return nil, fault.New(fault.NotFound, "people do not sign in by this provider here")
}

// Begin sends a browser to the provider.
func (s *SignIn) Begin(req *httpx.Request) (httpx.Response, error) {
	req.Next = httpx.SafeNext(req.URL.Query().Get("next"))
	p, err := s.provider(req)
	if err != nil {
		return httpx.Response{}, err
	}
	if s.Guard.AtOwnName(req.Request) { // the provider sends the browser back to the shared host
		return httpx.Response{Status: http.StatusSeeOther, Header: http.Header{"Location": {
			s.Guard.Address(req.Request) + WithPath + p.Name() + "?next=" + url.QueryEscape(req.Next)}}}, nil
	}
	flow, err := identity.NewFlow(s.Random)
	if err != nil {
		return httpx.Response{}, err
	}
	address, err := p.Begin(req.Context(), flow)
	if err != nil {
		return httpx.Response{}, s.recordFailure(req, p, err)
	}
	sealed, err := s.flows.seal(begun{p.Name(), flow, req.Next, s.Now().Add(life).Unix()}, p.Key())
	if err != nil {
		return httpx.Response{}, fault.From(err)
	}
	return httpx.Response{Status: http.StatusSeeOther, Header: http.Header{
		"Location": {address}, "Set-Cookie": {s.cookie(req, sealed, int(life.Seconds()))},
	}}, nil
}

// SignedIn is a browser whose person is signed in.
type SignedIn struct {
	Who  access.Principal
	Next string // where to go, without the base
	// Elsewhere is the address at which the login goes on under a name of the browser's own; "" for this host.
	Elsewhere string
	Header    http.Header // of the answer
}

// Finish takes a browser back from the provider. Every failure is recorded, as often as the guard counts wrong
// credentials, and answered in clear words.
func (s *SignIn) Finish(req *httpx.Request) (SignedIn, error) {
	p, err := s.provider(req)
	if err != nil {
		return SignedIn{}, err
	}
	id, was, who, err := s.finishSignIn(req, p)
	if req.Next = was.Next; err != nil {
		if err = s.recordFailure(req, p, err); fault.CodeOf(err) == fault.Internal {
			return SignedIn{}, err
		}
		e := fault.From(err)
		// The code in the cookie's flow is used up, however the sign-in ended.
		return SignedIn{}, &httpx.StatusError{Status: e.Code.HTTPStatus(), Err: e,
			Header: http.Header{"Set-Cookie": {s.cookie(req, "", -1)}}}
	}
	req.Principal = who
	if s.Guard.Moves(req.Request) {
		at, err := s.Guard.HandOver(id, was.Next)
		return SignedIn{Who: who, Next: was.Next, Elsewhere: at,
			Header: http.Header{"Set-Cookie": {s.cookie(req, "", -1)}}}, err
	}
	return SignedIn{Who: who, Next: was.Next,
		Header: http.Header{"Set-Cookie": {s.cookie(req, "", -1), s.Guard.Cookie(req, id)}}}, nil
}

func (s *SignIn) finishSignIn(req *httpx.Request, p *identity.Provider) (id string, was begun, who access.Principal,
	err error) {
	was, err = s.kept(req, p)
	if err != nil {
		return "", begun{Next: "/"}, who, err
	}
	code, err := s.code(req, p, was)
	if err == nil {
		err = s.Guard.Full(req)
	}
	if err == nil {
		err = s.flows.use(was)
	}
	if err != nil {
		return "", was, who, err
	}
	person, grant, err := p.Finish(req.Context(), was.Flow, code)
	if err != nil {
		return "", was, who, err
	}
	id, who, err = s.Access.Arrive(req.Context(), access.Identity{Person: person, Grant: grant,
		Browser: httpx.BrowserOf(req), ID: req.ID})
	return id, was, who, err
}

// kept returns the state that this browser was given when it began.
func (s *SignIn) kept(req *httpx.Request, p *identity.Provider) (was begun, err error) {
	cookies := req.CookiesNamed(s.cookieName(req))
	stranger := fault.New(fault.Unauthenticated,
		"this sign-in was not begun in this browser, or more than %d minutes ago; begin again", int(life.Minutes()))
	if len(cookies) != 1 || len(cookies[0].Value) > maxCookie {
		return begun{}, stranger
	}
	was, ok := s.flows.unsealFlow(cookies[0].Value, p.Key())
	if !ok || s.Now().Unix() > was.Until {
		return begun{}, stranger
	}
	was.Next = httpx.SafeNext(was.Next)
	return was, nil
}

// code returns the code that the provider has given to the browser for us.
func (s *SignIn) code(req *httpx.Request, p *identity.Provider, was begun) (string, error) {
	q, err := url.ParseQuery(req.URL.RawQuery)
	if err != nil || len(q["state"]) != 1 || len(q["code"]) > 1 || len(q["iss"]) > 1 {
		return "", fault.New(fault.Unauthenticated,
			"the address that the provider %s has sent you to is malformed; begin again", p.Name())
	}
	same := subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(was.Flow.State)) == 1
	switch issuer, code := q.Get("iss"), q.Get("code"); {
	case was.Provider != p.Name() || !same:
		return "", fault.New(fault.Unauthenticated,
			"the answer belongs to another sign-in than the one that was begun in this browser; begin again")
	case issuer != "" && p.Kind() == identity.OpenID && issuer != p.Issuer():
		return "", fault.New(fault.Unauthenticated, "the answer comes from another provider than %s; begin again", p.Name())
	case q.Get("error") != "":
		return "", fault.New(fault.Unauthenticated, "the provider %s has not let you in (%s)", p.Name(),
			errorCode(q.Get("error")))
	case code == "" || len(code) > maxCode:
		return "", fault.New(fault.Unauthenticated, "the provider %s has sent no code; begin again", p.Name())
	default:
		return code, nil
	}
}

// errorCode returns the code of an error as the provider has it, if it is one of OAuth's form.
func errorCode(given string) string {
	if regexp.MustCompile(`^[a-z_]{1,40}$`).MatchString(given) {
		return given
	}
	return "no reason that can be shown"
}

// recordFailure records why a sign-in failed, and returns it. Strangers may try as often as they like: they are
// recorded as often as wrong credentials are counted.
func (s *SignIn) recordFailure(req *httpx.Request, p *identity.Provider, why error) error {
	if fault.CodeOf(why) == fault.Forbidden { // it is recorded with the person's name
		return why
	}
	if fault.CodeOf(why) == fault.LimitReached {
		return why
	}
	if counted := s.Guard.Wrong(req, why); fault.CodeOf(counted) == fault.LimitReached {
		return counted
	}
	if !s.rows.Room(s.Guard.Client(req.Request)) {
		return why
	}
	return s.Access.Refused(req.Context(), req.ID, record.Actor{Client: p.Name()}, why)
}

// LoggedOut takes what a provider posts when a person has signed out there (OpenID Connect Back-Channel Logout 1.0).
func (s *SignIn) LoggedOut(req *httpx.Request) (httpx.Response, error) {
	p, err := s.provider(req)
	if err != nil {
		return httpx.Response{}, err
	}
	form, err := httpx.ReadForm(req)
	if err != nil {
		return httpx.Response{}, err
	}
	if len(form["logout_token"]) != 1 {
		return httpx.Response{}, fault.New(fault.InvalidArgument, "the form must have the field logout_token, once")
	}
	if err := s.Guard.Full(req); err != nil {
		return httpx.Response{}, err
	}
	logout, err := p.Logout(req.Context(), form.Get("logout_token"))
	if err == nil {
		_, err = s.Access.LoggedOut(req.Context(), logout)
		return httpx.Response{Status: http.StatusNoContent}, err
	}
	if err = s.recordFailure(req, p, err); fault.CodeOf(err) == fault.Unauthenticated { // the specification asks for 400
		e := fault.From(err)
		e.Code = fault.InvalidArgument
		return httpx.Response{}, e
	}
	return httpx.Response{}, err
}

// cookie returns the cookie that the browser keeps meanwhile. Browsers have to send it on the redirect from another
// site, so it is not strict, as the login's cookie is.
func (s *SignIn) cookie(req *httpx.Request, value string, maxAge int) string {
	cookie := http.Cookie{
		Name: s.cookieName(req), Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: s.Guard.Secured(req.Request),
	}
	return cookie.String()
}

// cookieName has a prefix over TLS by which browsers take the cookie from this host alone.
func (s *SignIn) cookieName(req *httpx.Request) string {
	if s.Guard.Secured(req.Request) {
		return "__Host-claudeops_sign_in"
	}
	return "claudeops_sign_in"
}

// Routes returns the routes without a page.
func (s *SignIn) Routes() []httpx.Route {
	if len(s.Providers) == 0 {
		return nil
	}
	return []httpx.Route{
		{Method: "GET", Pattern: WithPath + "{provider}", Page: true, Handle: s.Begin},
		{
			Method: "POST", Pattern: LoggedOutPath + "{provider}", Page: true, Handle: s.LoggedOut,
			Body: &httpx.BodyLimit{Bytes: maxLogout, Advice: "a logout token is shorter", Within: httpx.OpenBodyTime},
		},
	}
}

// Button is a way to sign in.
type Button struct {
	Href, Text string
	Kind       identity.Kind
}

// Buttons returns the ways to sign in, and to go on to a page then.
func (s *SignIn) Buttons(next string) (out []Button) {
	for _, p := range s.Providers {
		address := WithPath + p.Name()
		if next = httpx.SafeNext(next); next != "/" {
			address += "?next=" + url.QueryEscape(next)
		}
		out = append(out, Button{address, textscan.Clean(p.Text(), httpx.MaxLine), p.Kind()})
	}
	return out
}

// flows seals what a browser keeps while its person is at the provider, so that only flows that this server has begun
// are accepted, and each once: a forged cookie cannot cause a request to the provider. Other programs of a host that
// get the cookie, too, cannot read it.
type flows struct {
	now    func() time.Time
	random io.Reader
	local  []byte // the key where the provider has given no secret to this server

	mu   sync.Mutex
	used map[string]int64 // states of flows that came back, and until when they are remembered
}

func newFlows(now func() time.Time, random io.Reader) *flows {
	return &flows{now: now, random: random, local: []byte(rand.Text()), used: map[string]int64{}}
}

// sealer has a key that each process with the same secret has, so that a browser may come back to another one.
func (f *flows) sealer(secret string) (cipher.AEAD, error) {
	if secret == "" {
		secret = string(f.local)
	}
	key := sha256.Sum256([]byte("claudeops sign-in under way\x00" + secret))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func (f *flows) seal(b begun, secret string) (string, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return "", err
	}
	c, err := f.sealer(secret)
	if err != nil {
		return "", err
	}
	nonce := make([]byte, c.NonceSize())
	if _, err := io.ReadFull(f.random, nonce); err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(c.Seal(nonce, nonce, text, nil)), nil
}

func (f *flows) unsealFlow(sealed, secret string) (b begun, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	c, cerr := f.sealer(secret)
	if err != nil || cerr != nil || len(raw) < c.NonceSize() {
		return b, false
	}
	text, err := c.Open(nil, raw[:c.NonceSize()], raw[c.NonceSize():], nil)
	return b, err == nil && json.Unmarshal(text, &b) == nil
}

// use takes a flow that came back; unauthenticated if it did before.
func (f *flows) use(b begun) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now().Unix()
	for state, until := range f.used {
		if now > until {
			delete(f.used, state)
		}
	}
	if _, again := f.used[b.Flow.State]; again {
		return fault.New(fault.Unauthenticated, "this sign-in came back already; begin again")
	}
	f.used[b.Flow.State] = b.Until
	return nil
}
