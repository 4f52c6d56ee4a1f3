package identity

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/claudeops/claudeops/internal/base/weborigin"
)

// Kind is a provider's protocol.
type Kind string

// The kinds.
const (
	OpenID Kind = "oidc"
	GitHub Kind = "github" // OAuth, without ID tokens
)

// DefaultGroups is the claim that names a person's groups unless the operator names another one.
const DefaultGroups = "groups"

// GitHubIssuer is the address where people of GitHub sign in, unless the operator names a server of GitHub Enterprise.
const GitHubIssuer = "https://github.com"

// Settings is the operator's configuration of one provider.
type Settings struct {
	Name         string // in addresses, in the policy and before names on the record: a-z, 0-9 and hyphens
	Kind         Kind
	Issuer       string   // address, as the provider itself gives it; of GitHub that of its pages
	ClientID     string   // of the application that is registered there
	ClientSecret string   // "" for a public client, which has PKCE alone
	Text         string   // of the button
	Scopes       []string // to ask for; none: what Kind needs
	GroupsClaim  string   // "" for DefaultGroups
	Hosts        []string // origins that may be asked beside the issuer's, such as https://oauth2.example
	PlainHTTP    bool     // the provider may be asked by plain http on another machine
}

// Check says what is wrong with the settings; nil for nothing. It sends no request.
func (s Settings) Check() error {
	switch {
	case !regexp.MustCompile(`^[a-z][a-z0-9-]{0,19}$`).MatchString(s.Name):
		return fmt.Errorf("%.30q is no name of a provider: a letter, then letters, digits and hyphens, 20 at most", s.Name)
	case s.Kind != OpenID && s.Kind != GitHub:
		return fmt.Errorf("the kind is %q or %q", OpenID, GitHub)
	case s.ClientID == "":
		return fmt.Errorf("the client id is missing")
	case s.Kind == GitHub && s.ClientSecret == "":
		return fmt.Errorf("GitHub needs a client secret")
	}
	for _, address := range append([]string{s.Issuer}, s.Hosts...) {
		u, err := url.Parse(address)
		switch {
		case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" ||
			u.Fragment != "":
			return fmt.Errorf("the issuer, and each host, is an address such as https://id.example")
		case !s.PlainHTTP && !weborigin.Confidential(u):
			return fmt.Errorf("%s is asked by plain http, so that anybody on the way could be anybody; use https", u.Redacted())
		}
	}
	return nil
}

// hosts returns the addresses that may be asked.
func (s Settings) hosts() (out []*url.URL) {
	for _, address := range append([]string{s.Issuer, s.api()}, s.Hosts...) {
		if u, err := url.Parse(address); err == nil && u.Host != "" {
			out = append(out, u)
		}
	}
	return out
}

// api returns the address of GitHub's API; "" for other kinds.
func (s Settings) api() string {
	switch {
	case s.Kind != GitHub:
		return ""
	case s.Issuer == GitHubIssuer:
		return "https://api.github.com"
	}
	return strings.TrimRight(s.Issuer, "/") + "/api/v3"
}
