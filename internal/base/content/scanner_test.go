package content

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// secretsOf scans and gives the rules that spoke.
func secretsOf(t *testing.T, s *Scanner, name, text string) []Secret {
	t.Helper()
	found, err := s.Secrets(t.Context(), name, text)
	if err != nil {
		t.Fatalf("Secrets: %v", err)
	}
	return found
}

func hasRule(found []Secret, rule string) bool {
	for _, s := range found {
		if s.Rule == rule {
			return true
		}
	}
	return false
}

func percentEncoded(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		b.WriteString("%" + hex.EncodeToString([]byte{c}))
	}
	return b.String()
}

func TestSecretsFindsCredentials(t *testing.T) {
	t.Parallel()
	s := NewScanner(nil)
	std, urls := base64.StdEncoding.EncodeToString, base64.RawURLEncoding.EncodeToString
	assign := func(name, value string) string { return name + ` = "` + value + `"` }
	tests := []struct{ name, text, rule string }{
		{"an AWS key id", "use " + fakeAWSKeyID() + " here", "aws-access-token"},
		{"an AWS secret key", assign("aws_secret_"+"access_key", fakeAWSSecret()), "generic-api-key"},
		{"a GitHub token", "token " + fakeGitHub(), "github-pat"},
		{"a fine-grained GitHub token", fakeGitHubFine(), "github-fine-grained-pat"},
		{"a GitLab token", fakeGitLab(), "gitlab-pat"},
		{"a Slack token", fakeSlack(), "slack-bot-token"},
		{"an Anthropic key", fakeAnthropic(), "anthropic-api-key"},
		{"a private key block", "```\n" + fakePrivateKey() + "```\n", "private-key"},
		{"a JSON web token", "cookie: " + fakeJWT(), "jwt"},
		{"a password", "pass" + "word: " + noise(alnum, 20, 50), "generic-api-key"},
		{"a password in quotes", assign("pass"+"word", "summer"+"2024"), "hashicorp-tf-password"},
		{"a Kubernetes secret in Markdown", "```yaml\nkind: Secret\ndata:\n  pw: " + std([]byte(noise(alnum, 24, 51))) +
			"\n```\n", "kubernetes-secret-yaml"},
		{"a header of curl", `curl -H "Authorization: Bearer ` + noise(alnum, 32, 52) + `" https://example.com`,
			"curl-auth-header"},
		{"a token in base64", "data: " + std([]byte("x="+fakeGitHub())), "github-pat"},
		{"a token in URL base64", "data: " + urls([]byte("x="+fakeGitHub())), "github-pat"},
		{"a token in hex", "data: " + hex.EncodeToString([]byte(fakeGitHub())), "github-pat"},
		{"a token percent-encoded", "https://example.com/?t=" + percentEncoded(fakeGitHub()), "github-pat"},
		{"a token in base64 of base64", std([]byte(std([]byte(fakeGitHub() + "?")))), "github-pat"},
		{"a token in percent-encoded hex of base64",
			percentEncoded(hex.EncodeToString([]byte(std([]byte(fakeGitHub() + "?"))))), "github-pat"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			found := secretsOf(t, s, "checks/a.md", tt.text)
			if !hasRule(found, tt.rule) {
				t.Errorf("found %v, want rule %s", found, tt.rule)
			}
		})
	}
}

func TestSecretsLocatesFindingsInRunes(t *testing.T) {
	t.Parallel()
	s := NewScanner([]string{fakeToken()})
	encoded := base64.StdEncoding.EncodeToString([]byte("=" + fakeGitHub()))
	tests := []struct {
		name, text   string
		rule         string
		line, column int
	}{
		{"at the start", fakeGitHub(), "github-pat", 1, 1},
		{"on the first line", "日本 " + fakeGitHub() + "\n", "github-pat", 1, 4},
		{"on a later line", "one\ntwo\n日本 " + fakeGitHub() + "\nfour\n", "github-pat", 3, 4},
		{"at the start of a later line", "one\n\n" + fakeGitHub(), "github-pat", 3, 1},
		{"on the last line", "one\n日本 " + fakeGitHub(), "github-pat", 2, 4},
		{"after Windows line ends", "one\r\ntwo\r\n x " + fakeGitHub(), "github-pat", 3, 4},
		{"encoded", "one\n日本 " + encoded, "github-pat", 2, 4},
		{"an own token", "one\n日本 " + fakeToken() + "\n", OwnTokenRule, 2, 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, found := range secretsOf(t, s, "checks/a.md", tt.text) {
				if found.Rule == tt.rule && (found.Line != tt.line || found.Column != tt.column) {
					t.Errorf("found at %d:%d, want %d:%d", found.Line, found.Column, tt.line, tt.column)
				}
				if found.Rule == tt.rule {
					return
				}
			}
			t.Errorf("rule %s found nothing", tt.rule)
		})
	}
}

func TestSecretsAreSortedAndBounded(t *testing.T) {
	t.Parallel()
	s := NewScanner([]string{fakeToken()})
	found := secretsOf(t, s, "checks/a.md", strings.Repeat(fakeGitHub()+"\n"+fakeToken()+"\n", 60))
	if len(found) != MaxSecrets {
		t.Fatalf("%d findings, want %d", len(found), MaxSecrets)
	}
	for i, f := range found {
		if f.Line != i+1 {
			t.Fatalf("finding %d %v is on line %d, want %d: sorted, one for each line", i, f, f.Line, i+1)
		}
	}
}

func TestSecretsNeverHoldsTheSecret(t *testing.T) {
	t.Parallel()
	s := NewScanner([]string{fakeToken()})
	for _, secret := range []string{fakeGitHub(), fakeSlack(), fakeAWSKeyID(), fakeToken()} {
		for _, f := range secretsOf(t, s, "checks/a.md", secret) {
			for at := range len(secret) - 8 {
				if strings.Contains(f.Rule+f.Description, secret[at:at+8]) {
					t.Errorf("%+v holds a part of the secret", f)
				}
			}
		}
	}
}

func TestSecretsStopsWhenTheCallIsCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := NewScanner(nil).Secrets(ctx, "checks/a.md", "text")
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "checks/a.md") {
		t.Errorf("error %v, want a cancellation that names the text", err)
	}
}

func TestScannerIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	s := NewScanner([]string{fakeToken()})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			found, err := s.Secrets(context.Background(), "checks/a.md", fakeGitHub()+"\n"+percentEncoded(fakeToken()))
			if err != nil || !hasRule(found, "github-pat") || !hasRule(found, OwnTokenRule) {
				t.Errorf("found %v, %v", found, err)
			}
			if got := s.Redact(fakeToken()); got != "[redacted]" {
				t.Errorf("Redact gives %q", got)
			}
		})
	}
	group.Wait()
}

func TestThisPackageHoldsNoSecret(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 5 {
		t.Fatalf("source files: %v, %v", files, err)
	}
	s := NewScanner(nil)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := secretsOf(t, s, file, string(text)); len(found) != 0 {
			t.Errorf("%s: %v", file, found)
		}
	}
}

func FuzzSecrets(f *testing.F) {
	s := NewScanner([]string{fakeToken()})
	f.Add("a\n" + fakeGitHub())
	f.Add("日本 " + percentEncoded(fakeGitHub()) + "\r\n" + fakeToken())
	f.Add(base64.StdEncoding.EncodeToString([]byte("pass" + "word: " + noise(alnum, 20, 120))))
	f.Add("%41%\xff U+0041 \\u00e9 " + hex.EncodeToString([]byte(fakeJWT())))
	f.Fuzz(func(t *testing.T, text string) {
		found, err := s.Secrets(t.Context(), "fuzz", text)
		if err != nil {
			t.Fatalf("Secrets(%q): %v", text, err)
		}
		lines := strings.Split(text, "\n")
		for _, secret := range found {
			if secret.Line < 1 || secret.Line > len(lines) {
				t.Fatalf("%+v is on no line of %q", secret, text)
			}
			if columns := len([]rune(lines[secret.Line-1])); secret.Column < 1 || secret.Column > columns+1 {
				t.Errorf("%+v is beyond its line in %q", secret, text)
			}
		}
	})
}
