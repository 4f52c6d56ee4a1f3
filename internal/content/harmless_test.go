package content

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// Of the examples that gitleaks calls harmless, some are credentials in the form of another provider; those are found on
// purpose, by the rule of that provider. Of the rest nearly none may be refused.
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
	if guessed > 15 || known > 19 {
		t.Errorf("%d harmless examples are refused (at most 15), and %d as credentials of another provider (at most 19)", guessed, known)
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
