package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/system/identity"
)

func TestProvidersOfSignInAreReadOrRefusedWhole(t *testing.T) {
	good := map[string]string{
		"CLAUDEOPS_PUBLIC_URL": "https://ops.example", "CLAUDEOPS_SIGN_IN": "gitea, my-company,github",
		"CLAUDEOPS_SIGN_IN_GITEA_ISSUER": "https://git.example/", "CLAUDEOPS_SIGN_IN_GITEA_CLIENT_ID": "c1",
		"CLAUDEOPS_SIGN_IN_GITEA_CLIENT_SECRET":  "se-cret",
		"CLAUDEOPS_SIGN_IN_MY_COMPANY_ISSUER":    "https://id.example/realms/a",
		"CLAUDEOPS_SIGN_IN_MY_COMPANY_CLIENT_ID": "c2",
		"CLAUDEOPS_SIGN_IN_MY_COMPANY_TEXT":      "Continue with your company account",
		"CLAUDEOPS_SIGN_IN_MY_COMPANY_SCOPES":    "profile offline_access",
		"CLAUDEOPS_SIGN_IN_GITHUB_CLIENT_ID":     "c3", "CLAUDEOPS_SIGN_IN_GITHUB_CLIENT_SECRET": "other-secret",
	}
	load := func(changes map[string]string) Config {
		return Load(Environment(func(name string) (string, bool) {
			if value, changed := changes[name]; changed {
				return value, value != ""
			}
			value, set := good[name]
			return value, set
		}), nil)
	}
	c := load(nil)
	want := []identity.Settings{
		{Name: "gitea", Kind: identity.OpenID, Issuer: "https://git.example/", ClientID: "c1", ClientSecret: "se-cret",
			Text: "Continue with Gitea"},
		{Name: "my-company", Kind: identity.OpenID, Issuer: "https://id.example/realms/a", ClientID: "c2",
			Text: "Continue with your company account", Scopes: []string{"profile", "offline_access"}},
		{Name: "github", Kind: identity.GitHub, Issuer: "https://github.com", ClientID: "c3", ClientSecret: "other-secret",
			Text: "Continue with GitHub"},
	}
	same := func(a, b identity.Settings) bool {
		scopes := slices.Equal(a.Scopes, b.Scopes)
		a.Scopes, b.Scopes, a.Hosts, b.Hosts = nil, nil, nil, nil
		return scopes && a.Name == b.Name && a.Kind == b.Kind && a.Issuer == b.Issuer && a.ClientID == b.ClientID &&
			a.ClientSecret == b.ClientSecret && a.Text == b.Text
	}
	if c.Web.Problem != "" || !slices.EqualFunc(c.Web.SignIn, want, same) {
		t.Errorf("%q, %+v", c.Web.Problem, c.Web.SignIn)
	}
	if !slices.Contains(c.Secrets, "se-cret") || !slices.Contains(c.Secrets, "other-secret") {
		t.Error("a client secret is not remembered as a secret")
	}
	for name, changes := range map[string]map[string]string{
		"no public address":         {"CLAUDEOPS_PUBLIC_URL": ""},
		"the same twice":            {"CLAUDEOPS_SIGN_IN": "gitea,Gitea"},
		"a name that is none":       {"CLAUDEOPS_SIGN_IN": "../gitea"},
		"no issuer":                 {"CLAUDEOPS_SIGN_IN_GITEA_ISSUER": ""},
		"no client id":              {"CLAUDEOPS_SIGN_IN_GITEA_CLIENT_ID": ""},
		"no secret at GitHub":       {"CLAUDEOPS_SIGN_IN_GITHUB_CLIENT_SECRET": ""},
		"plain http":                {"CLAUDEOPS_SIGN_IN_GITEA_ISSUER": "http://git.example/"},
		"an issuer with a user":     {"CLAUDEOPS_SIGN_IN_GITEA_ISSUER": "https://a:b@git.example/"},
		"a kind that is none":       {"CLAUDEOPS_SIGN_IN_GITEA_KIND": "saml"},
		"a host that is not a host": {"CLAUDEOPS_SIGN_IN_GITEA_HOSTS": "oauth2.example"},
		"more than one can count":   {"CLAUDEOPS_SIGN_IN": "a,b,c,d,e,f,g,h,i,j,k"},
	} {
		if c := load(changes); c.Web.Problem == "" || len(c.Web.SignIn) > 0 {
			t.Errorf("%s: %+v", name, c.Web.SignIn)
		} else if strings.Contains(c.Web.Problem, "a:b") {
			t.Errorf("%s: the problem tells the password: %s", name, c.Web.Problem)
		}
	}
	plain := map[string]string{"CLAUDEOPS_SIGN_IN_GITEA_ISSUER": "http://git.example/",
		"CLAUDEOPS_SIGN_IN_GITEA_PLAIN_HTTP": "true"}
	if c := load(plain); c.Web.Problem != "" || !c.Web.SignIn[0].PlainHTTP {
		t.Errorf("plain http, permitted: %q", c.Web.Problem)
	}
	if c := load(map[string]string{"CLAUDEOPS_SIGN_IN": ""}); c.Web.Problem != "" || c.Web.SignIn != nil {
		t.Errorf("without configuration: %q, %+v", c.Web.Problem, c.Web.SignIn)
	}
}
