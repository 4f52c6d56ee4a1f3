package textscan

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
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

func TestSecretsCannotBeSilenced(t *testing.T) {
	t.Parallel()
	s := NewScanner(nil)
	password := "pass" + "word: "
	value := noise(alnum, 20, 60)
	tests := []struct{ name, file, text, rule string }{
		{"by an inline comment", "checks/a.md", fakeGitHub() + " # gitleaks" + ":allow", "github-pat"},
		{"by a lock file's name", "go.sum", fakeGitHub(), "github-pat"},
		{"by a dependency folder", "node_modules/a.md", fakeGitHub(), "github-pat"},
		{"by the name of the rules", "gitleaks.toml", fakeGitHub(), "github-pat"},
		{"by a picture's name", "checks/a.svg", fakeGitHub(), "github-pat"},
		{"by the word example in the value", "checks/a.md", password + value + "example", "generic-api-key"},
		{"by the word false in the value", "checks/a.md", password + value + "false", "generic-api-key"},
		{"by a name that is excepted, inside the value", "checks/a.md", password + value + "author", "generic-api-key"},
		{"by words on the line", "checks/a.md", password + value + " --mount=type=secret,", "generic-api-key"},
		{"by the form of the line", "checks/a.md", `import {a} from "key: ` + value + `"`, "generic-api-key"},
		{"by the alphabet in a key block", "checks/a.md",
			strings.Replace(fakePrivateKey(), "\n", "\nabcdefghijklmnopqrstuvwxyz", 1), "private-key"},
		{"by a user name that is excepted", "checks/a.md",
			"curl -u bob:test" + noise(alnum, 16, 61) + " https://example.com", "curl-auth-user"},
		{"by a kind of file that a rule is meant for", "checks/a.md",
			`<add key="Pass` + `word" value="` + value + `" />`, "nuget-config-password"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if found := secretsOf(t, s, tt.file, tt.text); !hasRule(found, tt.rule) {
				t.Errorf("found %v, want rule %s", found, tt.rule)
			}
		})
	}
}

func TestTokensOfTheServerAreFound(t *testing.T) {
	t.Parallel()
	token := "cops" + "_" + noise(alnum+"_-", 43, 90)
	for _, text := range []string{token, "curl -H 'Authorization: Bearer " + token + "' x",
		base64.StdEncoding.EncodeToString([]byte("t=" + token))} {
		if found := secretsOf(t, NewScanner(nil), "checks/a.md", text); !hasRule(found, "claude-ops-token") {
			t.Errorf("%q: found %v", text, found)
		}
	}
	if found := secretsOf(t, NewScanner(nil), "checks/a.md", "the cops_ prefix, and cops_short"); len(found) != 0 {
		t.Errorf("found %v", found)
	}
}

func TestSecretsPassesOrdinaryText(t *testing.T) {
	t.Parallel()
	s := NewScanner([]string{fakeToken()})
	icon := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("\x89PNG\r\n\x1a\n\x00\x01\x02\xfe"), 12))
	digest := noise("0123456789abcdef", 64, 70)
	tests := []struct{ name, text string }{
		{"nothing", ""},
		{"a check", "# Disk space\n\nRun `df -h /var` and warn when usage is above 85%.\n"},
		{"kubectl commands", "kubectl -n kube-system get pods -l app.kubernetes.io/name=traefik -o wide\n" +
			"kubectl get secret grafana-admin -o jsonpath='{.data.admin-password}' | base64 -d\n" +
			"kubectl create secret generic db --from-literal=password=\"$DB_PASSWORD\"\n"},
		{"a secret reference",
			"env:\n- name: API_TOKEN\n  valueFrom:\n    secretKeyRef:\n      name: api-token-v2\n      key: token\n"},
		{"names of secrets", "secret_name: claude-ops-gitea-token\ntokenSecret: \"home-cluster-api-token-01\"\n" +
			"secretName: wildcard-example-com-tls\naccessKey: minio-root-credentials.access-key\n"},
		{"an image digest", "image: ghcr.io/example/app@sha256:" + digest + "\n"},
		{"a checksum", "sha256sum -c <<< '" + digest + "  backup.tar.gz'\n"},
		{"a commit", "Fixed in " + noise("0123456789abcdef", 40, 71) + ".\n"},
		{"UUIDs", "UUID=550e8400-e29b-41d4-a716-446655440000 /data ext4 defaults 0 2\n"},
		{"an icon", "![ok](data:image/png;base64," + icon + ")\n"},
		{"an environment placeholder",
			"GITHUB_TOKEN=${GITHUB_TOKEN}\npassword: \"{{ vault_password }}\"\ntoken: <your token here>\n"},
		{"curl with a variable", "curl -fsS -H \"Authorization: Bearer $TOKEN\" https://api.example.com/health\n" +
			"curl -u \"$USER:$PASSWORD\" https://example.com\n"},
		{"a public key", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + noise(alnum, 43, 72) + " joe@example\n"},
		{"a fingerprint", "SHA256:" + noise(alnum+"+/", 43, 73) + "\n"},
		{"a key name", "key_id = \"arn-aws-kms-eu-central-1\"\npublic_key: " + noise(alnum, 32, 74) + "\n"},
		{"a documented example key", "AK" + "IAIOSFODNN7EXAMPLE\n"},
		{"an API version", "apiVersion: networking.k8s.io/v1\nkind: Ingress\napi_version = \"2024-10-01-preview\"\n"},
		{"prose about secrets", "Rotate the access token: see playbooks/rotate-token.md. The key: never paste the secret.\n"},
		{"a table", "| secret | key | token |\n|---|---|---|\n| db | password | yes |\n"},
		{"PromQL", "sum(rate(http_requests_total{job=\"api-server\",code=~\"5..\"}[5m])) by (authority) > 0.05\n"},
		{"a systemd unit", "ExecStart=/usr/local/bin/restic backup --password-file=/etc/restic/password.txt /srv\n"},
		{"names of a map of JSON", "```json\n{\n  \"modules\": {\n" +
			"    \"Strip\": {\"exists\": false, \"live_data\": false},\n" +
			"    \"OriginAndConfidences\": {\"exists\": false},\n" +
			"    \"CategoryIntelligence\": {\"exists\": false}\n  }\n}\n```\n"},
		{"a config map", "kind: ConfigMap\ndata:\n  config.yaml: |\n    interval: 30s\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if found := secretsOf(t, s, "checks/a.md", tt.text); len(found) != 0 {
				t.Errorf("found %v in %q", found, tt.text)
			}
		})
	}
}

func TestIdentifiersAreToldFromSecrets(t *testing.T) {
	t.Parallel()
	tests := []struct {
		value string
		want  bool
	}{
		{"claude-ops-gitea-token", true},
		{"oauth2_client.v2", true},
		{"apps.k8s.io/name", true},
		{"2024-10-01", true},
		{`"home-cluster"`, true},
		{"plain", false},
		{"hunter2example", false},
		{"abc1234-def", false},
		{"12345-67890", false},
		{"550e8400-e29b-41d4-a716-446655440000", false},
		{url.QueryEscape(noise(alnum, 30, 80)), false},
		{"", false},
	}
	for _, tt := range tests {
		t.Run(tt.value, func(t *testing.T) {
			t.Parallel()
			if got := identifier(tt.value); got != tt.want {
				t.Errorf("identifier(%q) = %t, want %t", tt.value, got, tt.want)
			}
		})
	}
}
