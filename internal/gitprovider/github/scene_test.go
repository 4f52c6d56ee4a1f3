package github_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/github"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func asUser(t testing.TB, s *fakegithub.Server) gitprovider.Provider {
	return setup(t, s.URL(), s.Token(), makingLabels)
}

func asApp(t testing.TB, s *fakegithub.Server) gitprovider.Provider {
	a := setupApp(t, s, makingLabels)
	s.ConfigureApp(func(app *fakegithub.App) { app.NotYet = []int{401, 403} })
	return a
}

func makingLabels(o *github.Options) { o.CreateLabels = func() bool { return true } }

func TestGitHubKeepsTheContract(t *testing.T) {
	providertest.Run(t, fakegithub.Harness{NewProvider: asUser})
}

// Nothing of the contract depends on GitHub's knowing at once what it has made, nor on whether a token or an app asks.
func TestALaggingGitHubKeepsTheContractForAnApp(t *testing.T) {
	providertest.Run(t, fakegithub.Harness{NewProvider: asApp, Lag: true})
}

// scene is a repository of a fake GitHub, and a test's steps on it.
type scene struct {
	*memhost.World
	t *testing.T
	s *fakegithub.Server
	p *github.Provider
}

func newScene(t *testing.T, files ...memhost.File) *scene {
	t.Helper()
	s := fakegithub.New(t)
	if len(files) == 0 {
		files = []memhost.File{
			{Path: "README.md", Content: "# Home\n"}, {Path: "checks/disk.md", Content: "# Disk\n"},
			{Path: "playbooks/restart.md", Content: "# Restart\n", Executable: true},
		}
	}
	p := setup(t, s.URL(), s.Token())
	return &scene{s.Host().World(t, s.AddRepo(files...), p), t, s, p}
}

func (s *scene) configure(change func(*fakegithub.Settings)) { s.s.Configure(s.Ref(), change) }

func (s *scene) query(paths ...string) gitprovider.SnapshotQuery {
	s.t.Helper()
	q := gitprovider.SnapshotQuery{Repo: s.Ref(), ClosedSince: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	for _, path := range paths {
		q.Paths = append(q.Paths, providertest.Path(s.t, path))
	}
	return q
}

func (s *scene) look(paths ...string) *gitprovider.Snapshot {
	s.t.Helper()
	snapshot, err := s.p.Snapshot(s.t.Context(), s.query(paths...))
	must.Do(s.t, err)
	return snapshot
}

func (s *scene) request(branch string, files ...gitprovider.FileChange) gitprovider.CommitRequest {
	s.t.Helper()
	if len(files) == 0 {
		files = []gitprovider.FileChange{providertest.Update("checks/disk.md", "new "+branch+"\n")}
	}
	var paths []string
	for _, file := range files {
		paths = append(paths, file.Path)
	}
	return gitprovider.CommitRequest{
		Snapshot: s.look(paths...), Branch: branch, Changes: providertest.ChangeSet(s.t, files...),
		Message: "Change\n\nWhy.\n",
	}
}

func (s *scene) commit(branch string, files ...gitprovider.FileChange) gitprovider.Commit {
	s.t.Helper()
	made, err := s.p.Commit(s.t.Context(), s.request(branch, files...))
	must.Do(s.t, err)
	return made
}

func (s *scene) spec(branch string) gitprovider.PullRequestSpec {
	return gitprovider.PullRequestSpec{Repo: s.Ref(), Base: memhost.MainBranch, Head: branch, Title: "Change",
		Body: "Why."}
}

// propose does all that a create_pr does.
func (s *scene) propose(branch string, files ...gitprovider.FileChange) gitprovider.PullRequest {
	s.t.Helper()
	s.commit(branch, files...)
	pr, err := s.p.OpenPullRequest(s.t.Context(), s.spec(branch))
	must.Do(s.t, err)
	must.Do(s.t, s.p.Label(s.t.Context(), s.Ref(), pr.Number, []string{gitprovider.LabelOurs}))
	return pr
}

// proposed is a scene with a pull request of ours.
func proposed(t *testing.T) (*scene, gitprovider.PullRequest) {
	t.Helper()
	s := newScene(t)
	return s, s.propose(branch)
}

func (s *scene) status(number int) gitprovider.Status {
	s.t.Helper()
	status, err := s.p.Status(s.t.Context(), s.Ref(), number)
	must.Do(s.t, err)
	return status
}

func (s *scene) list() []gitprovider.PullRequest {
	s.t.Helper()
	prs, err := s.p.ListOpen(s.t.Context(), s.Ref(), gitprovider.LabelOurs)
	must.Do(s.t, err)
	return prs
}

// cost counts the requests that do makes.
func (s *scene) cost(do func()) int {
	before := len(s.s.Faults().Requests())
	do()
	return len(s.s.Faults().Requests()) - before
}

// asked says what the last n requests were: method and path, and for GraphQL whether they read or write.
func (s *scene) asked(n int) []string {
	seen := s.s.Faults().Requests()
	var out []string
	for _, r := range seen[len(seen)-n:] {
		what := r.Method + " " + strings.TrimPrefix(r.Path, "/repos/"+s.Ref().String())
		for _, field := range []string{"createRef", "createCommitOnBranch", "updateRefs"} {
			if strings.Contains(string(r.Body), field+"(input") {
				what = field
			}
		}
		out = append(out, what)
	}
	return out
}

func (s *scene) same(what string, got, want any) {
	s.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func (s *scene) gone(branch string) {
	s.t.Helper()
	if _, left := s.Branches()[branch]; left {
		s.t.Errorf("the branch %s stays", branch)
	}
}

// setup makes a provider for an API root. Nothing waits: neither retries nor GitHub's delays.
func setup(t testing.TB, root, token string, change ...func(*github.Options)) *github.Provider {
	t.Helper()
	base, err := url.Parse(root)
	must.Do(t, err)
	noWait := func(context.Context, time.Duration) {}
	client, err := transport.New(transport.Options{
		Name: github.Name, Variables: transport.Variables{Token: "GITHUB_TOKEN", Address: "GITHUB_API_URL"}, Base: base,
		Token: token, Clock: transport.Clock{Sleep: noWait},
	})
	must.Do(t, err)
	t.Cleanup(client.CloseIdleConnections)
	opts := github.Options{API: base, Client: client, Sleep: noWait}
	for _, c := range change {
		c(&opts)
	}
	return github.New(opts)
}

// script is a server that answers what a test says, and remembers what it was asked.
func script(t testing.TB, handler http.Handler) (*httpfault.Handler, string) {
	t.Helper()
	faults := httpfault.New(handler)
	server := httptest.NewServer(faults)
	t.Cleanup(server.Close)
	return faults, server.URL
}

// always answers every request in the same way.
func always(status int, header http.Header, body string) httpfault.Fault {
	return httpfault.Fault{Kind: httpfault.Status, Status: status, Header: header, Body: body}
}

func repo() gitprovider.RepoRef { return gitprovider.RepoRef{Owner: "octo", Name: "cluster"} }

// wantCode demands an error of the port's type with the code.
func wantCode(t testing.TB, err error, want fault.Code) *fault.Error {
	t.Helper()
	e, ok := err.(*fault.Error) //nolint:errorlint // the port promises the type itself
	if !ok || e.Code != want {
		t.Fatalf("got %v (%T), want code %s", err, err, want)
	}
	return e
}
