package cli_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/cli"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// newApp makes an app that a fake GitHub knows, and returns its private key in PEM.
func newApp(t *testing.T, s *fakegithub.Server) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	s.SetApp(fakegithub.App{ID: "12345", Slug: "claude-ops", Key: &key.PublicKey, Permissions: map[string]string{
		"contents": "write", "pull_requests": "write", "actions": "read", "checks": "read", "statuses": "read",
	}})
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

// A server that acts as an app opens pull requests, and lets out neither its key nor a token that it was made.
func TestAServerActsAsAGitHubApp(t *testing.T) {
	t.Parallel()
	f := newForged(t, "github")
	s := fakegithub.New(t)
	f.repo = s.AddRepo(memhost.File{Path: "README.md", Content: "# Infra\n"})
	key := newApp(t, s)
	file := filepath.Join(t.TempDir(), "app.pem")
	if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	delete(f.env, "GITHUB_TOKEN")
	f.env["GITHUB_API_URL"], f.env["GITHUB_APP_ID"], f.env["GITHUB_APP_PRIVATE_KEY_FILE"] = s.URL(), "12345", file
	f.env["CLAUDEOPS_API_TOKENS"] = restToken

	doctor := f.run("doctor", "--online", "--repo", f.repo.String())
	for _, want := range []string{
		"we act as claude-ops[bot]", "all repositories of the owner", "contents: write", "pull_requests: write",
		"/settings/installations/",
	} {
		if !strings.Contains(doctor, want) {
			t.Errorf("doctor does not say %q: %s", want, doctor)
		}
	}
	ofDoctor := len(s.AppTokens())
	f.serve()
	if status, body := f.get("/readyz?providers=1"); status != 200 {
		t.Errorf("ready: %d %s", status, body)
	}
	if status, body := f.proposal("It is needed."); status != 201 {
		t.Fatalf("a proposal: %d %s", status, body)
	}
	secrets := strings.Fields(key)[4:6]
	for _, token := range s.AppTokens()[ofDoctor:] {
		secrets = append(secrets, token.Token)
	}
	if len(secrets) < 4 {
		t.Fatalf("only %d tokens were made", len(secrets)-2)
	}
	for _, secret := range secrets {
		strewn := secret[:10] + " " + secret[10:] // as the rules of gitleaks do not find it
		if status, body := f.proposal("See " + strewn + "."); status != 403 || !strings.Contains(body, "own-token") {
			t.Errorf("a proposal with a secret: %d %s", status, body)
		}
	}
}

func TestAnAppsKeyThatIsNoneTurnsTheProviderOff(t *testing.T) {
	t.Parallel()
	f := newForged(t, "github")
	f.env["GITHUB_APP_ID"], f.env["GITHUB_APP_PRIVATE_KEY"] = "12345", "-----BEGIN NOTHING-----"
	f.env["CLAUDEOPS_LOCAL_ROOT"] = t.TempDir()
	var out, problems bytes.Buffer
	code := cli.Run(t.Context(), []string{"doctor"}, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &problems},
		f.lookup)
	if code == 0 || !strings.Contains(out.String(), "GITHUB_APP_PRIVATE_KEY is no key in PEM") ||
		!strings.Contains(out.String(), "GITHUB_TOKEN is not used") {
		t.Errorf("doctor ends with %d and says %s", code, out.String())
	}
}
