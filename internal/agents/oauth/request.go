package oauth

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/claudeops/claudeops/internal/agents/credentials"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// maxState bounds what a program wants back, in bytes.
const maxState = 1000

// Request is a program's authorization request, brought by a browser, for a person to allow.
type Request struct {
	Client    access.Client
	Redirect  string
	State     string
	Challenge string

	issuer string
}

// Fields returns the parameters of a request, in the order in which a form has them.
func Fields() []string {
	return []string{"response_type", "client_id", "redirect_uri", "state", "code_challenge", "code_challenge_method",
		"scope", "resource"}
}

// ServerAddresses holds the addresses at which a request arrived.
type ServerAddresses struct{ Issuer, Resource string }

// Read reads the parameters of a request. A fault is shown only to the person: there is no address that the browser may
// safely be sent to. An *Error is for the program, at the address that Refusal gives.
//
// The document of a program is read before the answer, if it is not known: see Browser.
func (s *Service) Read(ctx context.Context, given url.Values, at ServerAddresses, b Browser) (Request, error) {
	for _, name := range Fields() {
		if len(given[name]) > 1 && name != "resource" {
			return Request{}, fault.New(fault.InvalidArgument, "the address that brought you here has %s twice; "+
				"begin again in the program that sent you", name)
		}
	}
	c, err := s.program(ctx, given.Get("client_id"), b)
	if err != nil {
		return Request{}, err
	}
	r := Request{Client: c, Redirect: given.Get("redirect_uri"), State: given.Get("state"),
		Challenge: given.Get("code_challenge"), issuer: at.Issuer}
	if !slices.ContainsFunc(c.Redirects, func(known string) bool { return redirectMatches(known, r.Redirect) }) {
		return Request{}, fault.New(fault.InvalidArgument, "the program that sent you here wants you sent to an address "+
			"that it has not registered; nobody is let in, and you are sent nowhere")
	}
	if len(r.State) > maxState {
		r.State = ""
		return r, wrong(errRequest, "state is too long")
	}
	return r, checkRequest(given, at)
}

// program returns the program with an id: as its document describes it now, or as it has registered.
func (s *Service) program(ctx context.Context, id string, b Browser) (access.Client, error) {
	if IsDocumentID(id) {
		return s.Documents.program(ctx, id, b, s.Providers)
	}
	c, found, err := s.Store().FindClient(ctx, id)
	if err == nil && !found {
		err = fault.New(fault.InvalidArgument, "the program that sent you here has not registered with this "+
			"server, or so long ago that it is forgotten; remove the server from the program, and add it again")
	}
	return c, err
}

// checkRequest says what is wrong with a request of a known program; nil for nothing.
func checkRequest(given url.Values, at ServerAddresses) error {
	scopes := strings.Fields(given.Get("scope"))
	switch {
	case given.Get("response_type") != "code":
		return wrong(errResponse, "response_type must be code")
	case given.Get("code_challenge_method") != "S256" || !isSecret(given.Get("code_challenge")):
		return wrong(errRequest, "PKCE is needed: code_challenge of 43 characters, and code_challenge_method S256")
	case len(scopes) > 0 && !slices.Contains(scopes, Scope):
		return wrong(errScope, "the scope is "+Scope)
	case !isTarget(given["resource"], at):
		return wrong(errTarget, "resource must be "+at.Resource)
	}
	return nil
}

// isTarget reports whether a program asks for what is protected here. There is one thing, so that it may say nothing.
func isTarget(resources []string, at ServerAddresses) bool {
	return !slices.ContainsFunc(resources, func(r string) bool { return strings.TrimSuffix(r, "/") != at.Resource })
}

// Refusal returns the address to which the browser is sent with a refusal.
func (r Request) Refusal(why *Error) string {
	return r.redirectURL(url.Values{"error": {why.Code}, "error_description": {why.Description}})
}

// Denied returns the address to which the browser is sent when the person has not given consent.
func (r Request) Denied() string { return r.Refusal(wrong(errDenied, "the person has not allowed it")) }

// Allowed returns the address to which the browser is sent with a code.
func (r Request) Allowed(code string) string { return r.redirectURL(url.Values{"code": {code}}) }

func (r Request) redirectURL(answer url.Values) string {
	answer.Set("iss", r.issuer)
	if r.State != "" {
		answer.Set("state", r.State)
	}
	return answerAt(r.Redirect, answer)
}

// Bounds of redirect addresses.
const (
	maxRedirects = 10
	maxRedirect  = 500 // bytes
)

// appSchemes returns the schemes of programs on the person's machine that have no dot, contrary to RFC 8252: those of
// MCP clients that register with them.
func appSchemes() []string { return []string{"cursor", "vscode", "vscode-insiders"} }

// parseRedirect reads an address that browsers may be sent back to: by https; by http to this machine; or by the scheme
// of a program on it. ok is false for all others, above all for those that a browser could run.
func parseRedirect(text string) (u *url.URL, ok bool) {
	odd := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\\\"'<>`{}|^,;", r) }
	if len(text) > maxRedirect || strings.ContainsFunc(text, odd) || strings.Contains(text, "#") {
		return nil, false
	}
	u, err := url.Parse(text)
	if err != nil || u.User != nil || u.Scheme == "" || strings.ContainsFunc(u.Host, unicode.IsUpper) {
		return nil, false
	}
	switch u.Scheme {
	case "https":
		return u, u.Opaque == "" && isHost(text, u)
	case "http":
		return u, u.Opaque == "" && isHost(text, u) && transport.IsLoopback(u.Hostname())
	}
	return u, strings.Contains(u.Scheme, ".") || slices.Contains(appSchemes(), u.Scheme)
}

// isHost reports whether an address spells its host as names of hosts are resolved: ASCII letters, digits and hyphens,
// or an IP address. A person reads it on the page of consent, and the page's policy takes it over as it is: an escaped
// letter could look like another one, and a * stands for every host there.
func isHost(text string, u *url.URL) bool {
	_, rest, _ := strings.Cut(text, "://")
	if !strings.HasPrefix(rest, u.Host) { // it was escaped
		return false
	}
	if _, err := netip.ParseAddr(u.Hostname()); err == nil {
		return !strings.Contains(u.Host, "%")
	}
	return len(u.Hostname()) <= 253 &&
		regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`).MatchString(u.Hostname())
}

// redirectMatches reports whether a browser may be sent to an address by a program that has registered another one:
// they are the same to the letter, or differ in the port on this machine alone, which a program does not know ahead
// (RFC 8252, 7.3).
func redirectMatches(registered, given string) bool {
	if registered == given {
		_, ok := parseRedirect(given)
		return ok
	}
	r, ok := parseRedirect(registered)
	g, too := parseRedirect(given)
	if !ok || !too || r.Scheme != "http" || g.Scheme != "http" || r.Hostname() != g.Hostname() {
		return false
	}
	return withoutPort(r) == withoutPort(g)
}

// withoutPort returns a loopback address without its port.
func withoutPort(u *url.URL) string {
	v := *u
	v.Host = u.Hostname()
	return v.String()
}

// Place says where an address leads, for a person.
func Place(redirect string) string {
	u, ok := parseRedirect(redirect)
	switch {
	case !ok:
		return "an unknown place"
	case u.Scheme == "http":
		return "a program on your computer (" + u.Host + ")"
	case u.Scheme == "https":
		return u.Host
	}
	return "the program for " + u.Scheme + ": on your computer"
}

// IsFar reports whether an address leads to another machine. Anybody may have registered it, so that a browser goes
// there by the will of its person alone, and not for an error (RFC 9700, 4.11.2).
func IsFar(redirect string) bool {
	u, ok := parseRedirect(redirect)
	return !ok || u.Scheme == "https"
}

// FormAction returns the source by which a page may send its form on to an address (Content-Security-Policy,
// form-action).
func FormAction(redirect string) string {
	u, ok := parseRedirect(redirect)
	switch {
	case !ok:
		return ""
	case u.Scheme == "http" || u.Scheme == "https":
		return u.Scheme + "://" + u.Host
	}
	return u.Scheme + ":"
}

// answerAt returns an address with what is answered there.
func answerAt(redirect string, answer url.Values) string {
	separator := "?"
	if strings.Contains(redirect, "?") {
		separator = "&"
	}
	return redirect + separator + answer.Encode()
}

// Names of the acts of people. They have the page that asks alone, since a person has to have seen it.
const (
	OpAllow = "allow_client"
	OpDeny  = "deny_client"
)

// maxPerson bounds the person's part of the name of a token, in runes.
const maxPerson = 36

// Allow is a person's consent. The consent page makes it of a Request and of the person's choice.
type Allow struct {
	Request Request  `json:"-"`
	Tier    int      `json:"max_tier"`
	Repos   []string `json:"repos,omitempty"`
	DryRun  bool     `json:"dry_run,omitempty"`
}

// Code is the authorization code that the program gets after a person's consent.
type Code struct {
	Code string `json:"code" redact:"never"`
}

// Deny is a person's refusal.
type Deny struct {
	Request Request `json:"-"`
}

// Operations returns the operations for people.
func (s *Service) Operations() []operation.Operation {
	act := func(name, action, summary string, scope access.Scope) operation.Operation {
		return operation.Operation{Name: name, Action: action, Summary: summary, Effect: operation.Write,
			Needs: operation.Needs{For: operation.Person, Scope: scope, Dry: operation.DryDone}}
	}
	allow := act(OpAllow, ActionAllow, "Let a program in as an agent", access.Operate)
	allow.Needs.Policy = true // no new consent while the rules cannot be read
	return []operation.Operation{
		operation.Define(s.Kernel, "", allow, operation.CallSpec[Allow]{}, s.allow),
		operation.Define(s.Kernel, "", act(OpDeny, ActionDeny, "Do not let a program in", access.Read),
			operation.CallSpec[Deny]{}, s.deny),
	}
}

// Highest returns the highest tier that a person may give.
func (s *Service) Highest(ceiling gitprovider.Tier) gitprovider.Tier {
	return max(min(ceiling, s.MaxTier()), gitprovider.TierObserve)
}

// allow makes a code.
//
// Errors: forbidden for what the person may not give, invalid_argument for a tier or repositories that are none.
func (s *Service) allow(ctx context.Context, call operation.Call, in Allow) (Code, error) {
	tier, c := gitprovider.Tier(in.Tier), in.Request.Client
	switch err := credentials.CheckRepos(in.Repos); {
	case !call.Scopes.Has(access.Operate):
		return Code{}, fault.New(fault.Forbidden, "letting a program in needs the scope operate; %s has %s",
			call.Caller, call.Scopes)
	case err != nil:
		return Code{}, fault.New(fault.InvalidArgument, "%s", err)
	case tier < gitprovider.TierObserve || tier > gitprovider.TierRemediate:
		return Code{}, fault.New(fault.InvalidArgument, "choose a tier")
	case tier > s.Highest(call.Ceiling):
		return Code{}, fault.New(fault.Forbidden, "you can give tier %s at most, and not tier %s",
			s.Highest(call.Ceiling), tier)
	}
	if err := call.Scopes.MayGive(call.Caller.String(), tier, false); err != nil {
		return Code{}, err
	}
	code, err := s.secret()
	if err != nil {
		return Code{}, err
	}
	name := textscan.Clean(call.Caller.String(), maxPerson) + " by " + c.Name
	kept := access.Code{
		Hash: access.Hash(code), ClientID: c.ID, Redirect: in.Request.Redirect, Challenge: in.Request.Challenge,
		Token: access.Token{Name: name, MaxTier: tier, Repos: in.Repos, DryRun: in.DryRun, Maker: call.Caller.Actor,
			Grantor: call.Caller.TokenHash},
		ExpiresAt: s.Now().Add(CodeLife),
	}
	if who := call.Caller.Person; who.SignedIn() {
		kept.Token.Owner = who.Account()
	}
	row := call.Done(fmt.Sprintf("%s: at most tier %s, for %s; browser sent back to %s", programLabel(c), tier,
		limitsOf(in.Repos, in.DryRun), in.Request.Redirect))
	if IsDocumentID(c.ID) { // what the program is let in by, whatever its document says later
		if err := s.Store().InsertClient(ctx, c, maxClients); err != nil {
			return Code{}, err
		}
	}
	return Code{code}, s.Store().InsertCode(ctx, kept, s.Now().Add(-codeKept), row)
}

func (s *Service) deny(ctx context.Context, call operation.Call, in Deny) (struct{}, error) {
	return struct{}{}, s.Record(ctx, call.Done(programLabel(in.Request.Client)))
}

// programLabel returns a program for the record.
func programLabel(c access.Client) string { return fmt.Sprintf("%s (client %s)", c.Name, c.ID) }

func limitsOf(repos []string, dryRun bool) string {
	limits := strings.Join(repos, ", ")
	if len(repos) == 0 {
		limits = "every repository that the server allows"
	}
	if dryRun {
		limits += ", in a dry run"
	}
	return limits
}
