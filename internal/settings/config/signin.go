package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/system/identity"
)

// maxSignIn limits the providers that people can choose from.
const maxSignIn = 10

// signIn reads the providers by which people sign in. problem names the variable that is missing or malformed: a server
// must not start with fewer providers than the operator wants, or with others.
func (e *env) signIn(publicURL string) (out []identity.Settings, problem string) {
	names := splitList(strings.ToLower(e.get("CLAUDEOPS_SIGN_IN")))
	switch {
	case len(names) == 0:
		return nil, ""
	case len(names) > maxSignIn:
		return nil, fmt.Sprintf("CLAUDEOPS_SIGN_IN names more than %d providers", maxSignIn)
	case publicURL == "":
		return nil, "CLAUDEOPS_SIGN_IN needs CLAUDEOPS_PUBLIC_URL, the address at which browsers reach this server"
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, fmt.Sprintf("CLAUDEOPS_SIGN_IN names %s twice", shown(name))
		}
		s := e.signInAt(name)
		if err := s.Check(); err != nil {
			return nil, fmt.Sprintf("CLAUDEOPS_SIGN_IN: the provider %s: %s", shown(name), err)
		}
		out = append(out, s)
	}
	return out, ""
}

// signInAt reads the variables of one provider.
func (e *env) signInAt(name string) identity.Settings {
	of := func(what string) string { return signInVariable(name, what) }
	s := identity.Settings{
		Name: name, Kind: identity.Kind(cmp.Or(strings.ToLower(e.get(of("KIND"))), string(identity.OpenID))),
		Issuer:   e.get(of("ISSUER")),
		ClientID: e.get(of("CLIENT_ID")), ClientSecret: e.secret(of("CLIENT_SECRET")), Text: e.get(of("TEXT")),
		Scopes:      splitList(e.get(of("SCOPES"))),
		GroupsClaim: e.get(of("GROUPS_CLAIM")), Hosts: splitList(e.get(of("HOSTS"))),
		PlainHTTP: e.permission(of("PLAIN_HTTP")),
	}
	if name == "github" && e.get(of("KIND")) == "" {
		s.Kind = identity.GitHub
	}
	if s.Kind == identity.GitHub {
		s.Issuer = strings.TrimRight(cmp.Or(s.Issuer, identity.GitHubIssuer), "/")
	}
	if s.Text == "" {
		s.Text = "Continue with " + signInName(name)
	}
	return s
}

// signInSecretFiles returns the files of their client secrets.
func (e *env) signInSecretFiles() (out []string) {
	for _, name := range splitList(e.get("CLAUDEOPS_SIGN_IN")) {
		out = append(out, signInVariable(name, "CLIENT_SECRET_FILE"))
	}
	return out
}

// signInName returns a provider's name as people write it.
func signInName(name string) string {
	if known := map[string]string{"github": "GitHub", "gitlab": "GitLab"}[name]; known != "" {
		return known
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// signInVariables lists them, with NAME in place of a provider's name.
func signInVariables() []Variable {
	return []Variable{
		{Name: "CLAUDEOPS_SIGN_IN", Meaning: "providers by which people sign in; each has the variables below",
			Values: "names of your choice, such as gitea,github, separated by commas; needs CLAUDEOPS_PUBLIC_URL"},
		{Name: "CLAUDEOPS_SIGN_IN_NAME_ISSUER", Each: true,
			Meaning: "address of the provider NAME, exactly as it gives it itself",
			Values:  "such as https://git.example/; of GitHub its pages, https://github.com if unset"},
		{Name: "CLAUDEOPS_SIGN_IN_NAME_CLIENT_ID", Each: true,
			Meaning: "client id of the application that is registered there"},
		{Name: "CLAUDEOPS_SIGN_IN_NAME_CLIENT_SECRET", Each: true, Meaning: "its client secret; unset for a public client",
			Secret: true},
		{Name: "CLAUDEOPS_SIGN_IN_NAME_KIND", Each: true, Meaning: "what the provider speaks",
			Values: "oidc or github; unset means github for the name github, else oidc"},
		{Name: "CLAUDEOPS_SIGN_IN_NAME_TEXT", Each: true, Meaning: "text of its button",
			Values: "unset means Continue with NAME"},
		{Name: "CLAUDEOPS_SIGN_IN_NAME_SCOPES", Each: true, Meaning: "scopes to ask for, in place of the usual ones",
			Values: "such as profile groups offline_access"},
		{Name: "CLAUDEOPS_SIGN_IN_NAME_GROUPS_CLAIM", Each: true, Meaning: "claim that names the groups of a person",
			Default: identity.DefaultGroups},
		{Name: "CLAUDEOPS_SIGN_IN_NAME_HOSTS", Each: true, Meaning: "further addresses that the provider may name for itself",
			Values: "such as https://oauth2.example, separated by commas"},
		{Name: "CLAUDEOPS_SIGN_IN_NAME_PLAIN_HTTP", Each: true,
			Meaning: "lets the provider be asked over plain http on another machine",
			Values:  "true or false; unset and anything else is false"},
	}
}
