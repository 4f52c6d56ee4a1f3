//go:build live

package gitea_test

import (
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/gitea"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// TestLive holds the adapter against a real Gitea or Forgejo, one that may be thrown away: GITEA_URL is its address and
// GITEA_TOKEN a token of an administrator's, with all scopes. It makes and removes repositories of that
// administrator's, and, once, the users ann, bob and eve, in whose names it reviews and comments. Only eve may not
// write.
func TestLive(t *testing.T) {
	address, token := os.Getenv("GITEA_URL"), os.Getenv("GITEA_TOKEN")
	if address == "" || token == "" {
		t.Fatal("set GITEA_URL to the address of a Gitea that may be thrown away, and GITEA_TOKEN to a token of one of its " +
			"administrators")
	}
	base, err := url.Parse(address)
	if err != nil {
		t.Fatal("GITEA_URL is not an address")
	}
	h := &live{base: base, token: token}
	var me struct {
		Login string `json:"login"`
	}
	h.must(t, "", http.MethodGet, "user", nil, &me)
	h.owner = me.Login
	for _, name := range []string{"ann", "bob", "eve"} {
		h.person(t, name)
	}
	providertest.Run(t, h)
}

// live makes repositories on the server.
type live struct {
	base  *url.URL
	token string
	owner string
}

// ManyPRs is more than the server's largest page.
func (h *live) ManyPRs() int { return 55 }

func (h *live) NewRepo(t testing.TB, files ...providertest.File) providertest.World {
	w := &liveWorld{t: t, live: h, name: "ad-live-" + strings.ToLower(rand.Text()), dir: t.TempDir()}
	h.must(t, "", http.MethodPost, "user/repos", map[string]any{
		"name": w.name, "default_branch": providertest.MainBranch, "auto_init": len(files) > 0,
	}, nil)
	t.Cleanup(func() { h.must(t, "", http.MethodDelete, "repos/"+h.owner+"/"+w.name, nil, nil) })
	for _, name := range []string{"ann", "bob"} {
		w.api("", http.MethodPut, "collaborators/"+name, map[string]any{"permission": "write"}, nil)
	}
	w.label(gitprovider.LabelOurs)
	w.git("", "init", "--quiet", "--bare", "--initial-branch="+providertest.MainBranch)
	if len(files) > 0 {
		w.pushGit(providertest.MainBranch, "", files)
	}
	w.provider = h.provider(t)
	return w
}

func (h *live) provider(t testing.TB) *gitea.Provider {
	client, err := transport.New(transport.Options{
		Name: gitea.Name, Variables: transport.Variables{Token: "GITEA_TOKEN"}, Base: h.base.JoinPath("api", "v1"),
		Token: h.token, Scheme: "token",
		UserAgent: "claudeops-test",
	})
	if err != nil {
		t.Fatal(err)
	}
	return gitea.New(gitea.Options{Base: h.base, Client: client, CreateLabels: func() bool { return true }})
}

// person makes a user, if there is none of the name.
func (h *live) person(t testing.TB, name string) {
	if status, _ := h.call(t, "", http.MethodGet, "users/"+name, nil, nil); status == http.StatusOK {
		return
	}
	h.must(t, "", http.MethodPost, "admin/users", map[string]any{
		"username": name, "email": name + "@example.test", "password": rand.Text(), "must_change_password": false,
	}, nil)
}

// call is one request, in somebody's name if as is not empty.
func (h *live) call(t testing.TB, as, method, path string, body, into any) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method,
		strings.TrimSuffix(h.base.String(), "/")+"/api/v1/"+path, encode(t, body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "token "+h.token)
	req.Header.Set("Content-Type", "application/json")
	if as != "" {
		req.Header.Set("Sudo", as)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if into != nil && resp.StatusCode < 300 {
		decode(t, answer, into)
	}
	return resp.StatusCode, string(answer)
}

func (h *live) must(t testing.TB, as, method, path string, body, into any) {
	t.Helper()
	if status, answer := h.call(t, as, method, path, body, into); status >= 300 {
		t.Fatalf("%s %s: %d %.300s", method, path, status, answer)
	}
}
