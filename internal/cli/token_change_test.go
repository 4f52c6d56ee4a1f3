package cli_test

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/settings/config"
)

// restToken is the token of REST callers in these tests.
const restToken = "a-token-of-rest-callers-0123"

// ask makes a request of REST and returns its status and body.
func (f *forged) ask(method, path, body string) (int, string) {
	f.Helper()
	r, err := http.NewRequestWithContext(f.Context(), method, f.url+path, strings.NewReader(body))
	if err != nil {
		f.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+cmp.Or(f.env["CLAUDEOPS_API_TOKENS"],
		config.OperatorToken(f.env["CLAUDEOPS_STATE_DIR"])))
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		f.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		f.Fatal(err)
	}
	return answer.StatusCode, string(text)
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
				if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
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
