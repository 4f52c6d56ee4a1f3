package gitea_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/gitea"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegitea"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// scene is a repository on the stateful fake, a provider that does not wait, and the people around.
type scene struct {
	*memhost.World
	t     *testing.T
	s     *fakegitea.Server
	p     *gitea.Provider
	slept []time.Duration
}

func newScene(t *testing.T, change ...func(*gitea.Options)) *scene {
	t.Helper()
	return sceneAt(t, "", change...)
}

func sceneAt(t *testing.T, root string, change ...func(*gitea.Options)) *scene {
	t.Helper()
	sc := &scene{t: t, s: fakegitea.NewAt(t, root)}
	sc.p = sc.provider(change...)
	repo := sc.s.AddRepo(
		memhost.File{Path: "README.md", Content: "# Home\n"}, memhost.File{Path: "checks/disk.md", Content: "old\n"},
		memhost.File{Path: "checks/memory.md", Content: "old\n"},
	)
	sc.World = sc.s.Host().World(t, repo, sc.p)
	return sc
}

// provider is another one on the same server, as in another process.
func (sc *scene) provider(change ...func(*gitea.Options)) *gitea.Provider {
	return newProvider(sc.t, sc.s.URL(), sc.s.Token(), append([]func(*gitea.Options){func(o *gitea.Options) {
		o.Sleep = func(_ context.Context, d time.Duration) { sc.slept = append(sc.slept, d) }
	}}, change...)...)
}

func (sc *scene) configure(change func(*fakegitea.Settings)) { sc.s.Configure(sc.Ref(), change) }

// requests returns the number of requests since the last call.
func (sc *scene) requests() int {
	n := len(sc.s.Faults().Requests())
	sc.s.Faults().Forget()
	return n
}

// asked lists the requests since the last time.
func (sc *scene) asked() []string {
	var out []string
	for _, r := range sc.s.Faults().Requests() {
		out = append(out, r.Method+" "+r.Path)
	}
	sc.s.Faults().Forget()
	return out
}

func (sc *scene) query(files []gitprovider.FileChange) gitprovider.SnapshotQuery {
	q := gitprovider.SnapshotQuery{Repo: sc.Ref(), ClosedSince: time.Unix(1, 0)}
	for _, f := range files {
		q.Paths = append(q.Paths, providertest.Path(sc.t, f.Path))
	}
	return q
}

// commit is snapshot and commit.
func (sc *scene) commit(p *gitea.Provider, branch string, files ...gitprovider.FileChange) (gitprovider.Commit, error) {
	sc.t.Helper()
	snap, err := p.Snapshot(sc.t.Context(), sc.query(files))
	sc.must(err)
	return sc.commitOn(p, snap, branch, files...)
}

func (sc *scene) commitOn(
	p *gitea.Provider, snap *gitprovider.Snapshot, branch string, files ...gitprovider.FileChange,
) (gitprovider.Commit, error) {
	sc.t.Helper()
	return p.Commit(sc.t.Context(), gitprovider.CommitRequest{
		Snapshot: snap, Branch: branch, Changes: providertest.ChangeSet(sc.t, files...), Message: "m\n",
		Time: time.Unix(1e9, 0),
	})
}

func (sc *scene) spec(branch string) gitprovider.PullRequestSpec {
	return gitprovider.PullRequestSpec{
		Repo: sc.Ref(), Base: memhost.MainBranch, Head: branch, Title: "t", Body: "b",
		Labels: []string{gitprovider.LabelOurs},
	}
}

// propose is everything that a create_pr asks of a provider.
func (sc *scene) propose(p *gitea.Provider, branch string, files ...gitprovider.FileChange) gitprovider.PullRequest {
	sc.t.Helper()
	if len(files) == 0 {
		files = []gitprovider.FileChange{providertest.Update("checks/disk.md", branch)}
	}
	_, err := sc.commit(p, branch, files...)
	sc.must(err)
	return sc.open(p, branch)
}

// open is propose after the commit.
func (sc *scene) open(p *gitea.Provider, branch string) gitprovider.PullRequest {
	sc.t.Helper()
	pr, err := p.OpenPullRequest(sc.t.Context(), sc.spec(branch))
	sc.must(err)
	if !slices.Contains(pr.Labels, gitprovider.LabelOurs) {
		sc.must(p.Label(sc.t.Context(), sc.Ref(), pr.Number, []string{gitprovider.LabelOurs}))
	}
	return pr
}

// mustCommit commits a change on ourBranch.
func (sc *scene) mustCommit() gitprovider.Commit {
	sc.t.Helper()
	made, err := sc.commit(sc.p, ourBranch, providertest.Update("checks/disk.md", "new\n"))
	sc.must(err)
	return made
}

func (sc *scene) status(number int) gitprovider.Status {
	sc.t.Helper()
	status, err := sc.p.Status(sc.t.Context(), sc.Ref(), number)
	sc.must(err)
	return status
}

func (sc *scene) must(err error) {
	sc.t.Helper()
	if err != nil {
		sc.t.Fatal(err)
	}
}

func (sc *scene) same(what string, got, want any) {
	sc.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		sc.t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func newFiles(n int) []gitprovider.FileChange {
	var files []gitprovider.FileChange
	for i := range n {
		files = append(files, providertest.Create(fmt.Sprintf("checks/new-%03d.md", i), fmt.Sprint(i)))
	}
	return files
}

func numbers(prs []gitprovider.PullRequest) []int {
	out := []int{}
	for _, pr := range prs {
		out = append(out, pr.Number)
	}
	return out
}

func harness() fakegitea.Harness {
	return fakegitea.Harness{NewProvider: func(t testing.TB, s *fakegitea.Server) gitprovider.Provider {
		return newProvider(t, s.URL(), s.Token())
	}}
}

func TestGiteaFulfilsTheContract(t *testing.T) {
	t.Parallel()
	providertest.Run(t, harness())
}

const (
	baseCommit = "1111111111111111111111111111111111111111"
	madeCommit = "2222222222222222222222222222222222222222"
	otherID    = "3333333333333333333333333333333333333333"
	ourBranch  = "claude-ops/check/disk"
	repoPath   = "/repos/joe/home-cluster"
)

// reply is one answer of a script. A body that is not a string is sent as JSON.
type reply struct {
	status int
	header map[string]string
	body   any
}

// routes maps "METHOD /path", the path as it is escaped and without /api/v1, to what is answered: a reply; []reply, one
// after the other and the last one ever after; a function; anything else is the body of a 200.
type routes map[string]any

// scripted answers by a script, where a test needs answers that the stateful fake would not give. What is not in the
// script is unknown to it, as to a server of another version.
type scripted struct {
	*httptest.Server
	faults *httpfault.Handler
	mu     sync.Mutex
	script routes
	counts map[string]int
	slept  []time.Duration
}

func serve(t testing.TB, script routes) *scripted {
	t.Helper()
	s := &scripted{script: script, counts: map[string]int{}}
	s.faults = httpfault.New(http.HandlerFunc(s.answer))
	s.Server = httptest.NewServer(s.faults)
	t.Cleanup(s.Close)
	return s
}

func (s *scripted) answer(w http.ResponseWriter, r *http.Request) {
	_, path, _ := strings.Cut(r.URL.EscapedPath(), "/api/v1")
	key := r.Method + " " + path
	s.mu.Lock()
	found, known := s.script[key]
	n := s.counts[key]
	s.counts[key]++
	s.mu.Unlock()
	var out reply
	switch v := found.(type) {
	case reply:
		out = v
	case []reply:
		out = v[min(n, len(v)-1)]
	case func(*http.Request) reply:
		out = v(r)
	default:
		out = reply{body: v}
	}
	if !known {
		out = reply{status: http.StatusNotFound, body: "404 page not found\n"}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	for name, value := range out.header {
		w.Header().Set(name, value)
	}
	text, isText := out.body.(string)
	if !isText && out.body != nil {
		encoded, err := json.Marshal(out.body)
		if err != nil {
			panic(err)
		}
		text = string(encoded)
		w.Header().Set("Content-Type", "application/json;charset=utf-8")
	}
	if out.status != 0 {
		w.WriteHeader(out.status)
	}
	fmt.Fprint(w, text)
}

// provider is one over the script, that does not wait.
func (s *scripted) provider(t testing.TB, change ...func(*gitea.Options)) *gitea.Provider {
	t.Helper()
	return newProvider(t, s.URL, "secret-token", append([]func(*gitea.Options){func(o *gitea.Options) {
		o.Sleep = func(_ context.Context, d time.Duration) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.slept = append(s.slept, d)
		}
	}}, change...)...)
}

func newProvider(t testing.TB, address, token string, change ...func(*gitea.Options)) *gitea.Provider {
	t.Helper()
	base, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	client, err := transport.New(transport.Options{
		Name: gitea.Name, Variables: transport.Variables{Token: "GITEA_TOKEN", Address: "GITEA_URL"},
		Base: base.JoinPath("api", "v1"), Token: token,
		Scheme: "token", Clock: transport.Clock{Sleep: func(context.Context, time.Duration) {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	opts := gitea.Options{Base: base, Client: client, CreateLabels: func() bool { return true },
		Sleep: func(context.Context, time.Duration) {}}
	for _, c := range change {
		c(&opts)
	}
	return gitea.New(opts)
}

func (s *scripted) count(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[key]
}

func ref() gitprovider.RepoRef { return gitprovider.RepoRef{Owner: "joe", Name: "home-cluster"} }

type object = map[string]any

// asRefusal is an error as the API words it.
func asRefusal(status int, message string) reply {
	return reply{status: status, body: object{"message": message, "url": "https://gitea.example/api/swagger"}}
}

// list is a page of a list.
func list(total int, items ...object) reply {
	return reply{header: map[string]string{"X-Total-Count": fmt.Sprint(total)}, body: append([]object{}, items...)}
}

// pull is an open pull request of ours, with changes.
func pull(number int, change object) object {
	pr := object{
		"number": number, "title": "t", "state": "open", "mergeable": true,
		"html_url":   fmt.Sprintf("https://x/pulls/%d", number),
		"head":       object{"label": ourBranch, "ref": ourBranch, "sha": madeCommit, "repo_id": 1},
		"base":       object{"label": "main", "ref": "main", "sha": baseCommit, "repo_id": 1},
		"merge_base": baseCommit, "labels": []object{{"id": 7, "name": gitprovider.LabelOurs}},
		"created_at": "2026-11-20T18:50:38Z", "updated_at": "2026-11-20T18:50:38Z",
	}
	for name, value := range change {
		pr[name] = value
	}
	return pr
}

func repository() object {
	return object{
		"name": "home-cluster", "owner": object{"login": "joe"}, "full_name": "joe/home-cluster", "default_branch": "main",
		"html_url": "https://x/joe/home-cluster", "has_pull_requests": true,
		"permissions": object{"admin": false, "push": true, "pull": true},
	}
}

func wantCode(t *testing.T, err error, want fault.Code) {
	t.Helper()
	if _, ok := err.(*fault.Error); !ok && want != "" { //nolint:errorlint // the port promises the type itself
		t.Fatalf("got %#v, want a *fault.Error", err)
	}
	if got := fault.CodeOf(err); got != want {
		t.Fatalf("got code %q (%v), want %q", got, err, want)
	}
	if err != nil && strings.Contains(err.Error(), "secret-token") {
		t.Fatalf("the message holds the token: %v", err)
	}
}

func wantSays(t *testing.T, err error, says string) {
	t.Helper()
	if err != nil && !strings.Contains(err.Error(), says) {
		t.Errorf("the message is %q; want %q in it", err, says)
	}
}
