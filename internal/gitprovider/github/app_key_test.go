package github_test

import (
	"crypto/rand"
	"crypto/rsa"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider/githubapp"
)

func TestKeysAreReadAsGitHubGivesThem(t *testing.T) {
	small, err := rsa.GenerateKey(rand.Reader, 1024) //nolint:gosec // to be refused
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSpace(pemOf(appKey())), "\n")
	for name, tt := range map[string]struct{ text, says string }{
		"as it is":         {pemOf(appKey()), ""},
		"PKCS #8":          {pkcs8Of(t, appKey()), ""},
		"nothing":          {"", "no key in PEM"},
		"cut off":          {lines[0] + lines[1] + lines[2] + lines[len(lines)-1], "GitHub gave, whole"},
		"a public key":     {strings.ReplaceAll(pemOf(appKey()), "RSA PRIVATE", "RSA PUBLIC"), "something else"},
		"a small one":      {pemOf(small), "1024 bits"},
		"an elliptic one":  {ellipticPEM(t), "no RSA key"},
		"with CRLF breaks": {strings.ReplaceAll(pemOf(appKey()), "\n", "\r\n"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			key, err := githubapp.ParseKey(tt.text)
			switch {
			case tt.says == "" && (err != nil || !key.Equal(appKey())):
				t.Errorf("got %v", err)
			case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)):
				t.Errorf("got %v, want %q", err, tt.says)
			}
		})
	}
}
