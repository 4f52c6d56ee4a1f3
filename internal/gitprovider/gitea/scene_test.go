package gitea_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/gitea"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegitea"
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
	pr, err := p.OpenPullRequest(sc.t.Context(), sc.spec(branch))
	sc.must(err)
	if !slices.Contains(pr.Labels, gitprovider.LabelOurs) {
		sc.must(p.Label(sc.t.Context(), sc.Ref(), pr.Number, []string{gitprovider.LabelOurs}))
	}
	return pr
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
