//go:build e2e && linux

package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegitea"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// forge is where a session's pull requests are: local repositories, or a Gitea.
type forge interface {
	// dotEnv is what the operator writes into .env for it.
	dotEnv() map[string]string
	// secrets are the contents of files in secrets/, by name.
	secrets() map[string]string
	// repo is the repository as owner and name.
	repo() (owner, name string)
	// review is a person who asks for changes to the first pull request.
	review(t *testing.T, c *container, comment string)
	// branches are those beside main.
	branches(t *testing.T) []string
	// opened counts the pull requests that there are.
	opened(t *testing.T, c *container) int
	// hold lets the next write of a proposal wait. writing returns when that of the session waits; write lets it go on.
	hold(t *testing.T, w *world) (writing func(underway), write func())
	// assertProposed holds that the branch is the only one and changes exactly what the proposal says.
	assertProposed(t *testing.T, branch string, p proposal)
}

// forges makes a forge of each kind.
func forges() map[string]func(*testing.T, *world) forge {
	return map[string]func(*testing.T, *world) forge{
		"local": func(_ *testing.T, w *world) forge { return localForge{w} },
		"gitea": newGiteaForge,
	}
}

// localForge is the repository of a world, which the container has below /git.
type localForge struct{ *world }

func (localForge) dotEnv() map[string]string {
	return map[string]string{"CLAUDEOPS_LOCAL_ROOT": "/git"}
}
func (localForge) secrets() map[string]string { return nil }
func (localForge) repo() (string, string)     { return "demo", "home-cluster" }

func (localForge) review(t *testing.T, c *container, comment string) {
	t.Helper()
	got := c.exec(t, nil, "/app/claudeops", "review", "request-changes", "1", "--repo", "demo/home-cluster", "--comment",
		comment)
	if got.code != 0 {
		t.Fatalf("review: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}

func (localForge) opened(t *testing.T, c *container) int {
	t.Helper()
	return len(listed(t, c, "demo", "home-cluster"))
}

// hold keeps the turn at the repository (flock(2) on its folder), which whoever writes there waits for. A proposal has
// reserved its files by then, and is known to be worked on.
func (localForge) hold(t *testing.T, w *world) (writing func(underway), write func()) {
	t.Helper()
	folder, err := os.Open(w.repo)
	if err != nil {
		t.Fatal(err)
	}
	write = sync.OnceFunc(func() { _ = folder.Close() })
	t.Cleanup(write)
	if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	return func(u underway) {
		for !w.isWorkedOn(t) {
			u.assertNotDone(t)
		}
	}, write
}

// isWorkedOn reports whether a process has a proposal in hand, as `pr resume` of another one says. That is this test's
// user, who must not be the one who makes the records.
func (w *world) isWorkedOn(t *testing.T) bool {
	t.Helper()
	if _, err := os.Stat(filepath.Join(w.vars["CLAUDEOPS_STATE_DIR"], "claudeops.db")); err != nil {
		return false
	}
	got := run(t, program{path: claudeops(t), args: []string{"pr", "resume", "--json"}, dir: w.home, env: w.environment()})
	if got.code != 0 {
		t.Fatalf("pr resume: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	return strings.Contains(got.stdout, `"live": true`)
}

// listed is what the command line lists.
func listed(t *testing.T, c *container, owner, name string) []any {
	t.Helper()
	got := c.exec(t, nil, "/app/claudeops", "pr", "list", "--repo", owner+"/"+name, "--json")
	if got.code != 0 {
		t.Fatalf("pr list: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	return decode[struct {
		PRs []any `json:"items"`
	}](t, got.stdout).PRs
}

// giteaForge is the fake Gitea on the loopback interface that the container shares. The server's token there is that of
// an account of its own, which may write to the repository.
type giteaForge struct {
	*fakegitea.Server
	ref   gitprovider.RepoRef
	world *memhost.World
	token string
}

func newGiteaForge(t *testing.T, _ *world) forge {
	s := fakegitea.New(t)
	var files []memhost.File
	for _, name := range slices.Sorted(maps.Keys(seed())) {
		files = append(files, memhost.File{Path: name, Content: seed()[name]})
	}
	const login = "claude-ops-1f0c93b7d2"
	g := giteaForge{Server: s, ref: s.AddRepo(files...), token: s.TokenOf(login)}
	g.world = s.Host().World(t, g.ref, nil)
	s.Configure(g.ref, func(set *fakegitea.Settings) { set.Collaborators = map[string]string{login: "write"} })
	return g
}

func (g giteaForge) dotEnv() map[string]string {
	return map[string]string{"GITEA_URL": g.URL(), "CLAUDEOPS_FORGE_PLAIN_HTTP": "true"}
}

func (g giteaForge) secrets() map[string]string { return map[string]string{"gitea_token": g.token} }

func (g giteaForge) repo() (string, string) { return g.ref.Owner, g.ref.Name }

func (g giteaForge) review(_ *testing.T, _ *container, comment string) {
	g.world.Review(1, "ann", gitprovider.ReviewChangesRequested, comment)
}

func (g giteaForge) hold(t *testing.T, _ *world) (writing func(underway), write func()) {
	t.Helper()
	reached, let := newGate(), newGate()
	t.Cleanup(let.open)
	g.Configure(g.ref, func(set *fakegitea.Settings) {
		set.Delays.BeforeRefUpdate = func() {
			reached.open()
			<-let.closed
		}
	})
	return func(u underway) { u.reached(t, reached.closed) }, let.open
}

func (g giteaForge) branches(*testing.T) []string {
	all := slices.Sorted(maps.Keys(g.world.Branches()))
	return slices.DeleteFunc(all, func(b string) bool { return b == memhost.MainBranch })
}

func (g giteaForge) opened(*testing.T, *container) (n int) {
	g.Host().Locked(func() { n = len(g.Host().Repo(g.ref).List(func(*memhost.PR) bool { return true })) })
	return n
}

func (g giteaForge) assertProposed(t *testing.T, branch string, p proposal) {
	t.Helper()
	if got := g.branches(t); !slices.Equal(got, []string{branch}) {
		t.Fatalf("branches beside main are %v, want only %s", got, branch)
	}
	tips := g.world.Branches()
	if got := g.world.Parents(tips[branch]); !slices.Equal(got, []string{tips[memhost.MainBranch]}) {
		t.Errorf("%s stands on %v, want one commit on main", branch, got)
	}
	want := seed()
	for _, f := range p.Files {
		want[f.Path] = f.Content
	}
	got := map[string]string{}
	for _, f := range g.world.Files(tips[branch]) {
		got[f.Path] = f.Content
	}
	if !maps.Equal(got, want) {
		t.Errorf("%s holds %v, want %v", branch, got, want)
	}
}

// writeSecrets fills the files that deploy/secrets.sh made.
func writeSecrets(t *testing.T, folder string, values map[string]string) {
	t.Helper()
	for name, value := range values {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(value+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
