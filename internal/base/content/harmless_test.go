package content

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// Of the examples that gitleaks calls harmless, some are credentials in the form of another provider; those are found
// on purpose, by the rule of that provider. Of the rest nearly none may be refused.
func TestHarmlessExamplesPass(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/gitleaks-harmless.json")
	if err != nil {
		t.Fatal(err)
	}
	var examples []struct{ Rule, Text string }
	if err := json.Unmarshal(data, &examples); err != nil || len(examples) != 373 {
		t.Fatalf("%d examples, %v", len(examples), err)
	}
	s := NewScanner(nil)
	guessed, known := 0, 0
	for _, example := range examples {
		found := secretsOf(t, s, "example", example.Text)
		switch {
		case len(found) == 0:
		case found[0].Rule == "generic-api-key" || found[0].Rule == example.Rule:
			guessed++
			t.Logf("%s: refused by %s: %.80q", example.Rule, found[0].Rule, example.Text)
		default:
			known++
			t.Logf("%s: is a credential of %s: %.80q", example.Rule, found[0].Rule, example.Text)
		}
	}
	t.Logf("%d are refused, %d of them as credentials of another provider", guessed+known, known)
	if guessed > 15 || known > 21 {
		t.Errorf("%d harmless examples are refused (at most 15), and %d as credentials of another provider (at most 21)",
			guessed, known)
	}
}

func TestWhatReadsLikeASecretButIsNone(t *testing.T) {
	t.Parallel()
	tests := []struct {
		rule, value string
		want        bool
	}{
		{"generic-api-key", "rc0.15.0_20231217_1420-SNAPSHOT", true},
		{"generic-api-key", "0123456789abcdefghijklmnopqrstuvwxyz_-.", true},
		{"generic-api-key", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", true},
		{"generic-api-key", strings.ToLower("ABCDEFGH") + noise(alnum, 12, 200), false},
		{"generic-api-key", "AKIA" + "IOSFODNN7EXAMPLE", true},
		{"generic-api-key", "x" + "AKIA" + "IOSFODNN7EXAMPLE", false},
		{"curl-auth-user", "test:test", true},
		{"curl-auth-user", "<user>:<password>", true},
		{"curl-auth-user", "$(cat ./login.txt):$(cat ./password.txt)", true},
		{"curl-auth-user", "test:" + noise(alnum, 12, 201), false},
		{"curl-auth-user", "$(cat " + noise(alnum, 12, 202) + "9):x", false},
		{"hashicorp-tf-password", "rootpasswd", true},
		{"hashicorp-tf-password", "summer2024", false},
		{"nuget-config-password", "Clear" + "textPassword1", true},
		{"nuget-config-password", "Password" + noise(alnum, 12, 203), false},
		{"github-pat", "rootpasswd", false},
	}
	for _, tt := range tests {
		if got := harmless(tt.rule, tt.value); got != tt.want {
			t.Errorf("harmless(%s, %q) = %t, want %t", tt.rule, tt.value, got, tt.want)
		}
	}
}

func TestSamplesOfDocumentationPass(t *testing.T) {
	t.Parallel()
	s := NewScanner(nil)
	b64 := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	begin, end := "-----BEGIN PRIVATE"+" KEY-----", "-----END PRIVATE"+" KEY-----"
	for _, text := range []string{
		"curl http://127.0.0.1:9180/admin/routes/1 -H 'X-API-KEY: your-admin-key' -X PUT -d '{}'\n",
		"curl -i http://127.0.0.1:9080/get -H 'apikey: john-key'\n", "curl -u admin:password1 https://example.com\n",
		"curl -H \"Authorization: Bearer secret-token\" https://example.com\n",
		"curl --user 'claude-ops-cli:' https://example.com\n",
		"curl -H 'Authorization: Basic " + b64("user:password") + "' https://example.com\n",
		"kind: Secret\ndata:\n  password: " + b64("secure-password") + "\n",
		"kind: Secret\ndata:\n  service.teams: |\n    recipientUrls:\n      a: b\n",
		"kind: Secret\ndata:\n  tls.key: " + b64(begin+"\n"+end+"\n") + "\n", `"key": "` + begin + `\n...\n` + end + `\n"` +
			strings.Repeat("\n", 80),
		"rootPassword: \"newRootPassword123\"\n", "password = \"your_secret_password\"\n", "token: eyJhbGciOiJIUzI1Ni...\n",
		"Generated from https://github.com/sourcegraph/handbook/tree/" + noise("0123456789abcdef", 40, 210) + "\n",
	} {
		if found := secretsOf(t, s, "docs/a.md", text); len(found) != 0 {
			t.Errorf("found %v in %q", found, text)
		}
	}
}

// What a sample stands beside is found all the same.
func TestSamplesHideNothing(t *testing.T) {
	t.Parallel()
	s := NewScanner(nil)
	password := noise(alnum, 16, 211)
	begin, end := "-----BEGIN PRIVATE"+" KEY-----\n", "-----END PRIVATE"+" KEY-----\n"
	for _, tt := range []struct{ rule, text string }{
		{"curl-auth-user", "curl -u joe:" + password + " https://example.com -u user:password\n"},
		{"curl-auth-user", "curl -u user:password https://example.com\ncurl -u joe:" + password + " https://example.com\n"},
		{"url-password", "from http://user:password@a to http://joe:" + password + "@b"},
		{"private-key", begin + "...\n" + end + fakePrivateKey()},
		{"private-key", begin + "...\n" + fakePrivateKey()},
		{"netrc-password", "machine a login joe password <token>\nmachine b login joe password " + password},
		{"generic-api-key", "token: your-token-here\ntoken: " + password + noise(alnum, 8, 212) + "\n"},
	} {
		if found := secretsOf(t, s, "docs/a.md", tt.text); !hasRule(found, tt.rule) {
			t.Errorf("%s: found %v in %q", tt.rule, found, tt.text)
		}
	}
}
