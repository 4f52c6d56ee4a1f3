package oauth

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/access"
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

// Here holds the addresses at which a request arrived.
type Here struct{ Issuer, Resource string }

// Read reads the parameters of a request. A fault is shown only to the person: there is no address that the browser may
// safely be sent to. An *Error is for the program, at the address that Refusal gives.
func (s *Service) Read(ctx context.Context, given url.Values, at Here) (Request, error) {
	for _, name := range Fields() {
		if len(given[name]) > 1 && name != "resource" {
			return Request{}, fault.New(fault.InvalidArgument, "the address that brought you here has %s twice; "+
				"begin again in the program that sent you", name)
		}
	}
	c, found, err := s.Store().FindClient(ctx, given.Get("client_id"))
	if err != nil {
		return Request{}, err
	}
	if !found {
		return Request{}, fault.New(fault.InvalidArgument, "the program that sent you here has not registered with this "+
			"server, or so long ago that it is forgotten; remove the server from the program, and add it again")
	}
	r := Request{Client: c, Redirect: given.Get("redirect_uri"), State: given.Get("state"),
		Challenge: given.Get("code_challenge"), issuer: at.Issuer}
	if !slices.ContainsFunc(c.Redirects, func(known string) bool { return matches(known, r.Redirect) }) {
		return Request{}, fault.New(fault.InvalidArgument, "the program that sent you here wants you sent to an address "+
			"that it has not registered; nobody is let in, and you are sent nowhere")
	}
	if len(r.State) > maxState {
		r.State = ""
		return r, wrong(errRequest, "state is too long")
	}
	return r, checkRequest(given, at)
}

// checkRequest says what is wrong with a request of a known program; nil for nothing.
func checkRequest(given url.Values, at Here) error {
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
func isTarget(resources []string, at Here) bool {
	return !slices.ContainsFunc(resources, func(r string) bool { return strings.TrimSuffix(r, "/") != at.Resource })
}

// Refusal returns the address to which the browser is sent with a refusal.
func (r Request) Refusal(why *Error) string {
	return r.answer(url.Values{"error": {why.Code}, "error_description": {why.Description}})
}

// Denied returns the address to which the browser is sent when the person has not given consent.
func (r Request) Denied() string { return r.Refusal(wrong(errDenied, "the person has not allowed it")) }

// Allowed returns the address to which the browser is sent with a code.
func (r Request) Allowed(code string) string { return r.answer(url.Values{"code": {code}}) }

func (r Request) answer(answer url.Values) string {
	answer.Set("iss", r.issuer)
	if r.State != "" {
		answer.Set("state", r.State)
	}
	return answerAt(r.Redirect, answer)
}
