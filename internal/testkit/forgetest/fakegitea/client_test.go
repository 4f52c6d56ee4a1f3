package fakegitea

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// bench is a server with one repository, and somebody who sends requests about it.
type bench struct {
	t     *testing.T
	s     *Server
	ref   gitprovider.RepoRef
	token string
}

func newBench(t *testing.T, files ...memhost.File) *bench {
	t.Helper()
	return benchAt(t, "", files...)
}

func benchAt(t *testing.T, root string, files ...memhost.File) *bench {
	t.Helper()
	s := NewAt(t, root)
	if len(files) == 0 {
		files = []memhost.File{{Path: "README.md", Content: "# Home\n"}, {Path: "run.sh", Content: "x\n", Executable: true}}
	}
	return &bench{t: t, s: s, ref: s.AddRepo(files...), token: s.Token()}
}

// said is an answer.
type said struct {
	status int
	header http.Header
	raw    string
}

// do sends a request to a path below the repository, or below the API if it begins with a slash.
func (b *bench) do(method, path, body string) said {
	b.t.Helper()
	got, err := b.try(method, path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	return got
}

func (b *bench) try(method, path, body string) (said, error) {
	address := b.s.URL() + "/api/v1"
	if !strings.HasPrefix(path, "/") {
		address += "/repos/" + b.ref.String() + "/"
	}
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(b.t.Context(), method, address+path, content)
	if err != nil {
		return said{}, err
	}
	if b.token != "" {
		req.Header.Set("Authorization", "token "+b.token)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return said{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	return said{status: resp.StatusCode, header: resp.Header, raw: string(raw)}, err
}

// want sends a request that must be answered with a status and a text.
func (b *bench) want(status int, text, method, path, body string) said {
	b.t.Helper()
	got := b.do(method, path, body)
	if got.status != status || !strings.Contains(got.raw, text) {
		b.t.Fatalf("%s %s: got %d %s, want %d with %q", method, path, got.status, got.raw, status, text)
	}
	return got
}

// into decodes an answer.
func into[T any](b *bench, got said) (out T) {
	b.t.Helper()
	if err := json.Unmarshal([]byte(got.raw), &out); err != nil {
		b.t.Fatalf("%v in %s", err, got.raw)
	}
	return out
}

// commitBody is a POST contents that creates one file on a new branch.
func commitBody(branch, path string) string {
	return fmt.Sprintf(
		`{"branch":"main","new_branch":%q,"message":"m","files":[{"operation":"create","path":%q,"content":%q}]}`,
		branch, path, base64.StdEncoding.EncodeToString([]byte("x\n")))
}

// propose makes a branch with one new file and opens a pull request for it.
func (b *bench) propose(branch string) pullJSON {
	b.t.Helper()
	b.want(http.StatusCreated, "", http.MethodPost, "contents", commitBody(branch, branch+".md"))
	return into[pullJSON](b, b.want(http.StatusCreated, "", http.MethodPost, "pulls", pullBody(branch)))
}

func pullBody(branch string) string {
	return fmt.Sprintf(`{"head":%q,"base":"main","title":"t"}`, branch)
}
