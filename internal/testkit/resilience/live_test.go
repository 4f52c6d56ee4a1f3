//go:build live

package resilience

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

const (
	// livePatience bounds one request to a real server that may be busy.
	livePatience = time.Minute
	// liveStallPatience is the patience while a request stalls: the test waits that long for each.
	liveStallPatience = 5 * time.Second
)

// TestLiveEffectsThatComeLate is the part of the fault table of late effects that a real Gitea can show: the requests
// that make the branch and the pull request reach it only after their caller has given up. GITEA_URL and GITEA_TOKEN
// are those of the contract suite.
func TestLiveEffectsThatComeLate(t *testing.T) {
	writes := []struct {
		name  string
		match func(*http.Request) bool
	}{
		{"the branch", makesBranch},
		{"the pull request", opensPull},
	}
	for _, write := range writes {
		for _, c := range lateCases() {
			t.Run(fmt.Sprintf("%s, %s", write.name, c), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, liveKind())
				w.forge.Faults().Plan(write.match, httpfault.Fault{Kind: c.kind()})
				w.meetsLate(t.Context(), c)
				if !slices.ContainsFunc(w.forge.Faults().Requests(), unanswered) {
					t.Error("no request met the fault")
				}
			})
		}
	}
}

// liveKind is the real server.
func liveKind() kind {
	k := giteaForge()
	k.start, k.patience, k.stallPatience = startLive, livePatience, liveStallPatience
	return k
}

func makesBranch(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/contents")
}

func unanswered(r httpfault.Seen) bool { return r.Status == 0 }

// liveGitea is a real Gitea behind a proxy that misbehaves.
type liveGitea struct {
	t            testing.TB
	base         *url.URL
	token        string
	owner        string
	organisation string // that was made
	faults       *httpfault.Handler
	proxy        *httptest.Server
}

var _ outside = (*liveGitea)(nil)

func startLive(t testing.TB) forge {
	t.Helper()
	address, token := os.Getenv("GITEA_URL"), os.Getenv("GITEA_TOKEN")
	if address == "" || token == "" {
		t.Fatal("set GITEA_URL to the address of a Gitea that may be thrown away, and GITEA_TOKEN to a token of one of its " +
			"administrators")
	}
	base, err := url.Parse(strings.TrimSuffix(address, "/"))
	if err != nil {
		t.Fatal("GITEA_URL is not an address")
	}
	g := &liveGitea{t: t, base: base, token: token}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(base) }}
	g.faults = httpfault.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxy.ServeHTTP(w, r.WithContext(context.WithoutCancel(r.Context()))) // the server acts though its client was killed
	}))
	g.proxy = httptest.NewServer(g.faults)
	t.Cleanup(g.proxy.Close)
	var me struct {
		Login string `json:"login"`
	}
	g.must(http.MethodGet, "user", nil, &me)
	g.owner = me.Login
	for _, name := range []string{"ann", "bob"} {
		g.person(name)
	}
	return g
}

func (g *liveGitea) URL() string                { return g.proxy.URL }
func (g *liveGitea) Token() string              { return g.token }
func (g *liveGitea) Host() *memhost.Host        { return nil }
func (g *liveGitea) Faults() *httpfault.Handler { return g.faults }

// AddRepo makes a repository that is removed when the test ends. It has the labels that ours carry.
func (g *liveGitea) AddRepo(files ...memhost.File) gitprovider.RepoRef {
	g.t.Helper()
	repo := gitprovider.RepoRef{Owner: g.owner, Name: "ad-late-" + strings.ToLower(rand.Text())}
	g.must(http.MethodPost, "user/repos", map[string]any{
		"name": repo.Name, "default_branch": memhost.MainBranch, "auto_init": true, "readme": "Default",
	}, nil)
	g.removeInTheEnd(repo)
	for _, name := range []string{"ann", "bob"} {
		g.must(http.MethodPut, "repos/"+repo.String()+"/collaborators/"+name, map[string]any{"permission": "write"}, nil)
	}
	for _, label := range []string{gitprovider.LabelOurs, "automated"} {
		g.must(http.MethodPost, "repos/"+repo.String()+"/labels", map[string]any{"name": label, "color": "#00aabb"}, nil)
	}
	var changes []map[string]any
	for _, f := range files {
		if f.Path != "README.md" { // the server has made one
			changes = append(changes, map[string]any{"operation": "create", "path": f.Path, "content": []byte(f.Content)})
		}
	}
	g.must(http.MethodPost, "repos/"+repo.String()+"/contents", map[string]any{
		"branch": memhost.MainBranch, "message": "pushed", "files": changes,
	}, nil)
	return repo
}

// Look implements outside.
func (g *liveGitea) Look(repo gitprovider.RepoRef) (branches []string, open []int) {
	g.t.Helper()
	var all []struct {
		Name string `json:"name"`
	}
	g.must(http.MethodGet, "repos/"+repo.String()+"/branches?limit=50", nil, &all)
	for _, b := range all {
		if strings.HasPrefix(b.Name, gitprovider.BranchPrefix) {
			branches = append(branches, b.Name)
		}
	}
	var prs []struct {
		Number int `json:"number"`
	}
	g.must(http.MethodGet, "repos/"+repo.String()+"/pulls?state=open&limit=50", nil, &prs)
	for _, pr := range prs {
		open = append(open, pr.Number)
	}
	slices.Sort(branches)
	return branches, open
}

// AssertChange implements outside.
func (g *liveGitea) AssertChange(repo gitprovider.RepoRef, number int) {
	g.t.Helper()
	pull := fmt.Sprintf("repos/%s/pulls/%d", repo, number)
	var commits []json.RawMessage
	g.must(http.MethodGet, pull+"/commits", nil, &commits)
	if len(commits) != 1 {
		g.t.Errorf("the pull request has %d commits", len(commits))
	}
	var files []struct {
		Name   string `json:"filename"`
		Status string `json:"status"`
	}
	g.must(http.MethodGet, pull+"/files", nil, &files)
	var changed []string
	for _, f := range files {
		changed = append(changed, f.Name+" "+f.Status)
	}
	slices.Sort(changed)
	if want := []string{"checks/disk.md changed", "checks/inodes.md added",
		"checks/old.md deleted"}; !slices.Equal(changed, want) {
		g.t.Errorf("the pull request changes %v, want %v", changed, want)
	}
	var pr struct {
		Head struct {
			SHA string `json:"sha"`
		} `json:"head"`
	}
	g.must(http.MethodGet, pull, nil, &pr)
	for path, want := range map[string]string{"checks/inodes.md": "# Inodes\n", "checks/disk.md": "# Disk\n\ndf -h\n"} {
		var file struct {
			Content []byte `json:"content"`
		}
		g.must(http.MethodGet, "repos/"+repo.String()+"/contents/"+path+"?ref="+pr.Head.SHA, nil, &file)
		if string(file.Content) != want {
			g.t.Errorf("%s holds %q", path, file.Content)
		}
	}
}

// must is one request beside the proxy, which succeeds.
func (g *liveGitea) must(method, path string, body, into any) {
	g.t.Helper()
	g.mustAs("", method, path, body, into)
}

// mustAs is must in somebody's name; "" for the administrator's.
func (g *liveGitea) mustAs(who, method, path string, body, into any) {
	g.t.Helper()
	status, answer := g.call(who, method, path, body)
	if status >= 300 {
		g.t.Fatalf("%s %s: %d %.300s", method, path, status, answer)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(answer, into); err != nil {
		g.t.Fatal(err)
	}
}

// call is one request beside the proxy.
func (g *liveGitea) call(who, method, path string, body any) (status int, answer []byte) {
	g.t.Helper()
	return g.callWith("token "+g.token, who, method, path, body)
}

// callWith is call with a credential.
func (g *liveGitea) callWith(credential, who, method, path string, body any) (status int, answer []byte) {
	g.t.Helper()
	sent := []byte{}
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			g.t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(context.WithoutCancel(g.t.Context()), method, g.base.String()+"/api/v1/"+path,
		bytes.NewReader(sent))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Authorization", credential)
	req.Header.Set("Content-Type", "application/json")
	if who != "" {
		req.Header.Set("Sudo", who)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, err = io.ReadAll(resp.Body); err != nil {
		g.t.Fatal(err)
	}
	return resp.StatusCode, answer
}
