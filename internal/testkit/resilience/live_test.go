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
	k.start, k.real = startLive, true
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
	if into != nil {
		g.decode(answer, into)
	}
}

func (g *liveGitea) decode(answer []byte, into any) {
	g.t.Helper()
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

// What follows has what people do to a real server, beside the proxy.

// person makes a user, if there is none of the name. Another test may make it at the same moment.
func (g *liveGitea) person(name string) {
	g.t.Helper()
	exists := func() bool {
		status, _ := g.call("", http.MethodGet, "users/"+name, nil)
		return status == http.StatusOK
	}
	if exists() {
		return
	}
	status, answer := g.call("", http.MethodPost, "admin/users", map[string]any{
		"username": name, "email": name + "@example.test", "password": rand.Text(), "must_change_password": false,
	})
	if status >= 300 && !exists() {
		g.t.Fatalf("the user %s: %d %.300s", name, status, answer)
	}
}

// removeInTheEnd removes the repository when the test ends, whatever it is called by then.
func (g *liveGitea) removeInTheEnd(repo gitprovider.RepoRef) {
	g.t.Helper()
	var made struct {
		ID int64 `json:"id"`
	}
	g.must(http.MethodGet, "repos/"+repo.String(), nil, &made)
	g.t.Cleanup(func() {
		var now struct {
			FullName string `json:"full_name"`
		}
		g.must(http.MethodGet, fmt.Sprintf("repositories/%d", made.ID), nil, &now)
		g.must(http.MethodDelete, "repos/"+now.FullName, nil, nil)
		if g.organisation != "" {
			g.must(http.MethodDelete, "orgs/"+g.organisation, nil, nil)
		}
	})
}

func pullPath(repo gitprovider.RepoRef, number int, rest ...string) string {
	return strings.Join(append([]string{fmt.Sprintf("repos/%s/pulls/%d", repo, number)}, rest...), "/")
}

// AskForChanges implements outside.
func (g *liveGitea) AskForChanges(repo gitprovider.RepoRef, number int) {
	g.t.Helper()
	g.review("ann", repo, number, "REQUEST_CHANGES", "Say how.")
}

// AskAboutLines implements outside.
func (g *liveGitea) AskAboutLines(repo gitprovider.RepoRef, number int, lines ...gitprovider.LineComment) {
	g.t.Helper()
	g.review("ann", repo, number, "REQUEST_CHANGES", "See the lines.", lines...)
}

// Posted implements outside.
func (g *liveGitea) Posted(repo gitprovider.RepoRef, number int) []string {
	g.t.Helper()
	bodies := g.comments(repo, number)
	var reviews []struct {
		ID int64 `json:"id"`
	}
	g.must(http.MethodGet, pullPath(repo, number, "reviews"), nil, &reviews)
	for _, r := range reviews {
		var lines []struct {
			Body string `json:"body"`
		}
		g.must(http.MethodGet, pullPath(repo, number, "reviews", fmt.Sprint(r.ID), "comments"), nil, &lines)
		for _, c := range lines {
			bodies = append(bodies, c.Body)
		}
	}
	return bodies
}

// review is somebody's review, with comments on the first lines of the files.
func (g *liveGitea) review(who string, repo gitprovider.RepoRef, number int, event, body string,
	lines ...gitprovider.LineComment) {
	g.t.Helper()
	comments := []map[string]any{}
	for _, c := range lines {
		comments = append(comments, map[string]any{"path": c.Path, "body": c.Body, "new_position": c.Line})
	}
	g.mustAs(who, http.MethodPost, pullPath(repo, number, "reviews"),
		map[string]any{"event": event, "body": body, "comments": comments}, nil)
}

func (g *liveGitea) comment(who string, repo gitprovider.RepoRef, number int, body string) {
	g.t.Helper()
	g.mustAs(who, http.MethodPost, fmt.Sprintf("repos/%s/issues/%d/comments", repo, number), map[string]any{"body": body},
		nil)
}

// merge tries for a while: the server refuses as long as it finds out whether it can.
func (g *liveGitea) merge(repo gitprovider.RepoRef, number int) {
	g.t.Helper()
	status, answer := 0, []byte(nil)
	for end := time.Now().Add(20 * time.Second); ; <-time.After(100 * time.Millisecond) {
		status, answer = g.call("", http.MethodPost, pullPath(repo, number, "merge"), map[string]any{"Do": "merge"})
		if status < 300 {
			return
		}
		if time.Now().After(end) {
			g.t.Fatalf("merge of #%d: %d %.300s", number, status, answer)
		}
	}
}

// untilOpen waits for the pull request that a killed process has asked for.
func (g *liveGitea) untilOpen(repo gitprovider.RepoRef) {
	g.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; <-time.After(50 * time.Millisecond) {
		if _, open := g.Look(repo); len(open) > 0 {
			return
		}
		if time.Now().After(end) {
			g.t.Fatal("no pull request arrives")
		}
	}
}

func (g *liveGitea) close(repo gitprovider.RepoRef, number int) {
	g.t.Helper()
	g.must(http.MethodPatch, pullPath(repo, number), map[string]any{"state": "closed"}, nil)
}

func (g *liveGitea) change(repo gitprovider.RepoRef, fields map[string]any) {
	g.t.Helper()
	g.must(http.MethodPatch, "repos/"+repo.String(), fields, nil)
}

// Rename gives the repository another name, or another owner, which is an organisation that is made for it.
func (g *liveGitea) Rename(repo gitprovider.RepoRef, owner, name string) gitprovider.RepoRef {
	g.t.Helper()
	if owner != repo.Owner {
		g.must(http.MethodPost, "orgs", map[string]any{"username": owner}, nil)
		g.organisation = owner // removed after its repository
		g.must(http.MethodPost, "repos/"+repo.String()+"/transfer", map[string]any{"new_owner": owner}, nil)
		repo.Owner = owner
	}
	if name != repo.Name {
		g.change(repo, map[string]any{"name": name})
		repo.Name = name
	}
	return repo
}

// Seen implements outside.
func (g *liveGitea) Seen(repo gitprovider.RepoRef, number int, branch string) seen {
	g.t.Helper()
	var refs []struct {
		Ref    string `json:"ref"`
		Object struct {
			SHA string `json:"sha"`
		} `json:"object"`
	}
	g.must(http.MethodGet, "repos/"+repo.String()+"/git/refs/heads/"+branch, nil, &refs)
	out := seen{}
	for _, r := range refs {
		if r.Ref == "refs/heads/"+branch {
			out.tip = r.Object.SHA
		}
	}
	var commit struct {
		Parents []struct {
			SHA string `json:"sha"`
		} `json:"parents"`
	}
	g.must(http.MethodGet, "repos/"+repo.String()+"/git/commits/"+out.tip, nil, &commit)
	for _, p := range commit.Parents {
		out.parents = append(out.parents, p.SHA)
	}
	var file struct {
		Content []byte `json:"content"`
	}
	g.must(http.MethodGet, "repos/"+repo.String()+"/contents/checks/inodes.md?ref="+url.QueryEscape(out.tip), nil, &file)
	out.inodes = string(file.Content)
	var pr struct {
		Title string `json:"title"`
		Body  string `json:"body"`
	}
	g.must(http.MethodGet, pullPath(repo, number), nil, &pr)
	out.title, out.body = pr.Title, pr.Body
	for _, body := range g.comments(repo, number) {
		if strings.HasPrefix(body, gitprovider.AnswerOpening) {
			out.answers++
		}
	}
	return out
}

func (g *liveGitea) comments(repo gitprovider.RepoRef, number int) (bodies []string) {
	g.t.Helper()
	var all []struct {
		Body string `json:"body"`
	}
	g.must(http.MethodGet, fmt.Sprintf("repos/%s/issues/%d/comments", repo, number), nil, &all)
	for _, c := range all {
		bodies = append(bodies, c.Body)
	}
	return bodies
}
