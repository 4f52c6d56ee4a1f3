package resilience

import (
	"fmt"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/gitea"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegitea"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// manyOurs is how many pull requests of ours are open in BenchmarkListOurs.
const manyOurs = 120

// BenchmarkListOurs measures list_prs on Gitea over 120 pull requests of ours in a process that has just started: when
// they were opened with the same records, when another program opened them, and when another process has listed those
// before.
func BenchmarkListOurs(b *testing.B) {
	k := kinds()[1]
	for _, opened := range []string{"by us", "by others", "by others, seen"} {
		b.Run("opened "+opened, func(b *testing.B) {
			f := k.start(b)
			repo := f.AddRepo(memhost.File{Path: "README.md", Content: "# Home cluster\n"})
			dir := b.TempDir()
			process := func() (gitprovider.Provider, func()) {
				records := store.New(dir, store.Options{Now: time.Now})
				return k.connectWith(b, f, records), func() { _ = records.Close() }
			}
			p, end := process()
			for i := range manyOurs {
				openOne(b, f, p, repo, i, opened == "by us")
			}
			if opened == "by others, seen" {
				listOurs(b, p, repo)
			}
			end()
			f.Faults().Forget()
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				p, end := process()
				if opened == "by others" {
					end()
					dir = b.TempDir()
					p, end = process()
				}
				b.StartTimer()
				listOurs(b, p, repo)
				b.StopTimer()
				end()
				b.StartTimer()
			}
			b.ReportMetric(float64(len(f.Faults().Requests()))/float64(b.N), "requests/op")
		})
	}
}

// connectWith makes the adapter of Gitea with the memory of a store.
func (k kind) connectWith(b *testing.B, f forge, records *store.Store) gitprovider.Provider {
	b.Helper()
	k.adapter = func(t testing.TB, f forge, client *transport.Transport) gitprovider.Provider {
		return gitea.New(gitea.Options{
			Base: base(t, f), Client: client, Now: time.Now, Sleep: noSleep, Paths: records.PullPaths("gitea"),
		})
	}
	return k.connect(b, f, transport.Options{})
}

func listOurs(b *testing.B, p gitprovider.Provider, repo gitprovider.RepoRef) {
	b.Helper()
	prs, err := p.ListOpen(b.Context(), repo, gitprovider.LabelOurs)
	if err != nil || len(prs) != manyOurs {
		b.Fatalf("%d pull requests, %v", len(prs), err)
	}
}

func openOne(b *testing.B, f forge, p gitprovider.Provider, repo gitprovider.RepoRef, i int, byUs bool) {
	b.Helper()
	branch, path := fmt.Sprintf("claude-ops/check/n%03d", i), fmt.Sprintf("checks/n%03d.md", i)
	spec := gitprovider.PullRequestSpec{
		Repo: repo, Base: memhost.MainBranch, Head: branch, Title: "n", Labels: []string{gitprovider.LabelOurs},
	}
	if !byUs {
		err := f.Host().Act(repo, func(r *memhost.Repo) error {
			r.Write(branch, "change", []memhost.File{{Path: path, Content: "n\n"}})
			f.Host().Open(r, spec)
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		return
	}
	f.(*fakegitea.Server).Faults().Forget()
	snapshot, err := p.Snapshot(b.Context(), gitprovider.SnapshotQuery{
		Repo: repo, Paths: []gitprovider.Path{providertest.Path(b, path)},
	})
	if err == nil {
		_, err = p.Commit(b.Context(), gitprovider.CommitRequest{
			Snapshot: snapshot, Branch: branch, Changes: providertest.ChangeSet(b, providertest.Create(path, "n\n")),
			Message: "n\n",
		})
	}
	var pr gitprovider.PullRequest
	if err == nil {
		pr, err = p.OpenPullRequest(b.Context(), spec)
	}
	if err == nil {
		err = p.Label(b.Context(), repo, pr.Number, spec.Labels)
	}
	if err != nil {
		b.Fatal(err)
	}
}
