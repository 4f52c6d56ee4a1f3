package content

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"strings"
	"testing"
)

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
