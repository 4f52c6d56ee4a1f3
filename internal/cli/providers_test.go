package cli

import (
	"net/url"
	"testing"

	"github.com/claudeops/claudeops/internal/app"
)

func TestCloneURLsBeginWithTheAddressOfPagesNotOfTheAPI(t *testing.T) {
	t.Parallel()
	for api, c := range map[string]struct{ host, want string }{
		"https://api.github.com/":            {"github.com", "https://github.com"},
		"https://ghe.example.org/api/v3/":    {"ghe.example.org", "https://ghe.example.org"},
		"https://git.example.org:3000/":      {"git.example.org:3000", "https://git.example.org:3000"},
		"http://127.0.0.1:3000/":             {"127.0.0.1:3000", "http://127.0.0.1:3000"},
		"https://example.org/code/gitea/":    {"example.org", "https://example.org/code/gitea"},
		"https://api.acme.ghe.com/":          {"acme.ghe.com", "https://acme.ghe.com"},
		"https://example.org:8443/git/":      {"example.org:8443", "https://example.org:8443/git"},
		"https://ghe.example.org:84/api/v3/": {"ghe.example.org:84", "https://ghe.example.org:84"},
	} {
		at, err := url.Parse(api)
		if err != nil {
			t.Fatal(err)
		}
		if got := app.CloneBase(at, []string{c.host}); got != c.want {
			t.Errorf("%s: %s, want %s", api, got, c.want)
		}
	}
	if got := app.CloneBase(nil, nil); got != "" {
		t.Errorf("without an address: %q", got)
	}
}
