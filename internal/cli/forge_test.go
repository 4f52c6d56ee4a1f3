package cli_test

import (
	"cmp"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// restToken is the token of REST callers in these tests.
const restToken = "a-token-of-rest-callers-0123"

// ask makes a request of REST and returns its status and body.
func (f *forged) ask(method, path, body string) (int, string) {
	f.Helper()
	token := cmp.Or(f.env["CLAUDEOPS_API_TOKENS"], config.OperatorToken(f.env["CLAUDEOPS_STATE_DIR"]))
	answer, text := exchange(f, http.DefaultClient, method, f.url+path, body,
		http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}})
	return answer.StatusCode, text
}

// proposal asks REST for a pull request whose body is the text.
func (f *forged) proposal(text string) (int, string) {
	f.Helper()
	return f.ask("POST", "/api/v1/prs", fmt.Sprintf(`{"repo_owner":%q,"repo_name":%q,"title":"Check more","body":%q,
		"files":[{"path":"checks/more.md","action":"create","content":"# More\n"}]}`, f.repo.Owner, f.repo.Name, text))
}

// A token in a file is replaced while the server runs: the new one is used, and neither is ever let out.
func TestAForgesTokenMayBeChangedWhileTheServerRuns(t *testing.T) {
	t.Parallel()
	for source, variable := range map[string]string{"github": "GITHUB_TOKEN", "gitea": "GITEA_TOKEN"} {
		t.Run(source, func(t *testing.T) {
			f := newForged(t, source)
			valid := f.env[variable]
			const first, second = "a-token-that-has-expired-0123456789", "another-one-that-has-expired-987654"
			file := filepath.Join(t.TempDir(), "token")
			write := func(token string) {
				t.Helper()
				must.Do(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
			}
			write(first)
			delete(f.env, variable)
			f.env[variable+"_FILE"], f.env["CLAUDEOPS_API_TOKENS"] = file, restToken
			f.serve()
			list := func(when string, want int) {
				t.Helper()
				status, body := f.ask("GET", "/api/v1/prs?repo_owner="+f.repo.Owner+"&repo_name="+f.repo.Name, "")
				if status != want {
					t.Errorf("%s: %d %s", when, status, body)
				}
				for _, token := range []string{first, second, valid} {
					if strings.Contains(body, token) {
						t.Errorf("%s: the answer holds a token", when)
					}
				}
			}
			list("with an expired token", 503)
			write(second)
			list("with another that has expired", 503)
			write(valid)
			list("with a good one", 200)
			for _, token := range []string{first, second, valid} {
				if status, body := f.proposal("It was " + token + "."); status != 403 || !strings.Contains(body, "own-token") ||
					strings.Contains(body, token) {
					t.Errorf("a proposal with a token that was used: %d %s", status, body)
				}
			}
			if status, body := f.proposal("It was nothing."); status != 201 {
				t.Errorf("a proposal without: %d %s", status, body)
			}
		})
	}
}

// get reads from the server, with the token that the operator has given it or that it has made itself.
func (f *forged) get(path string) (status int, body string) {
	f.Helper()
	return f.ask(http.MethodGet, path, "")
}

func TestAServerSaysWhetherTheForgeServesItAndHowLongThatTook(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"github", "gitea"} {
		t.Run(source, func(t *testing.T) {
			f := newForged(t, source)
			f.serve()
			if status, body := f.get("/readyz?providers=1"); status != 200 ||
				!strings.Contains(body, `{"name":"`+source+`","state":"ok"}`) {
				t.Errorf("got %d %s", status, body)
			}
			want := `claudeops_provider_request_duration_seconds_count{outcome="2xx",provider="` + source + `"} 1`
			if _, body := f.get("/metrics"); !strings.Contains(body, want) {
				t.Errorf("the metrics lack %s", want)
			}
		})
	}
}

func TestAServerWhoseTokenIsRefusedIsNotReadyForProviders(t *testing.T) {
	t.Parallel()
	f := newForged(t, "gitea")
	const revoked = "a-token-that-was-revoked-0123456789"
	f.env["GITEA_TOKEN"] = revoked
	f.serve()
	status, body := f.get("/readyz?providers=1")
	if status != 503 || !strings.Contains(body, `"code":"provider_disabled","rule":"gitea"`) ||
		strings.Contains(body, revoked) {
		t.Errorf("got %d %s", status, body)
	}
	if status, body := f.get("/readyz"); status != 200 {
		t.Errorf("a probe that did not ask: %d %s", status, body)
	}
	want := `claudeops_provider_request_duration_seconds_count{outcome="4xx",provider="gitea"} 1`
	if _, body := f.get("/metrics"); !strings.Contains(body, want) {
		t.Errorf("the metrics lack %s", want)
	}
}

// newApp makes an app that a fake GitHub knows, and returns its private key in PEM.
func newApp(t *testing.T, s *fakegithub.Server) string {
	t.Helper()
	key := must.Get(rsa.GenerateKey(rand.Reader, 2048))(t)
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
	must.Do(t, os.WriteFile(file, []byte(key), 0o600))
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
	out, _, code := runCommand(t, f.lookup, "doctor")
	if code == 0 || !strings.Contains(out, "GITHUB_APP_PRIVATE_KEY is not a key in PEM format") ||
		!strings.Contains(out, "GITHUB_TOKEN is not used") {
		t.Errorf("doctor ends with %d and says %s", code, out)
	}
}
