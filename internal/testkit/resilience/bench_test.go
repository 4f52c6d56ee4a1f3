package resilience

import (
	"encoding/json"
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

// latency is added to each request in the benchmarks.
const latency = 50 * time.Millisecond

// benched are the forges of the benchmarks that are about both.
func benched() []kind { return []kind{gitHub(), giteaForge()} }

// BenchmarkCreate measures create_pr from a process that has just started, with latency on every request.
func BenchmarkCreate(b *testing.B) {
	for _, k := range benched() {
		for _, files := range []int{1, 3, 30} {
			b.Run(fmt.Sprintf("%s/files=%d", k.name, files), func(b *testing.B) {
				requests := 0
				for range b.N {
					b.StopTimer()
					w := newWorld(b, k)
					raw := manyFiles(b, w.repo, files)
					service := w.service()
					service.Authority.Tier = gitprovider.TierRemediate
					w.forge.Faults().SetLatency(latency)
					w.forge.Faults().Forget()
					b.StartTimer()
					if _, err := service.Create(b.Context(),
						agent(), raw); err != nil {
						b.Fatal(err)
					}
					b.StopTimer()
					requests += len(w.forge.Faults().Requests())
					w.forge.Faults().SetLatency(0)
					b.StartTimer()
				}
				b.ReportMetric(float64(requests)/float64(b.N), "requests/op")
				b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(latency), "latencies/op")
			})
		}
	}
}

func manyFiles(b *testing.B, repo gitprovider.RepoRef, n int) []byte {
	b.Helper()
	var files []any
	for i := range n {
		files = append(files, map[string]any{
			"path": fmt.Sprintf("checks/n%02d.md", i), "action": "create", "content": "# New\n",
		})
	}
	raw, err := json.Marshal(map[string]any{
		"repo_owner": repo.Owner, "repo_name": repo.Name, "title": "Check more", "body": "Why not.", "files": files,
	})
	if err != nil {
		b.Fatal(err)
	}
	return raw
}

// BenchmarkListOpen measures list_prs over open pull requests of which two in five are ours: the first call of a
// process, and a further one.
func BenchmarkListOpen(b *testing.B) {
	for _, k := range benched() {
		sizes := []int{250}
		if k.name == "github" {
			sizes = append(sizes, 1000)
		}
		for _, all := range sizes {
			w := newWorld(b, k)
			openMany(b, w, all)
			for _, first := range []bool{true, false} {
				b.Run(fmt.Sprintf("%s/open=%d/first=%t", k.name, all, first), func(b *testing.B) {
					p := k.connect(b, w.forge, transport.Options{})
					if !first {
						listMany(b, w, p, all)
					}
					w.forge.Faults().Forget()
					for range b.N {
						b.StopTimer()
						if first {
							p = k.connect(b, w.forge, transport.Options{})
						}
						b.StartTimer()
						listMany(b, w, p, all)
					}
					b.ReportMetric(float64(len(w.forge.Faults().Requests()))/float64(b.N), "requests/op")
				})
			}
		}
	}
}

// openMany opens pull requests, one a minute.
func openMany(b *testing.B, w *world, all int) {
	b.Helper()
	host, now := w.forge.Host(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	host.SetClock(func() time.Time { return now })
	for i := range all {
		labels := []string{}
		if i%5 < 2 {
			labels = append(labels, gitprovider.LabelOurs)
		}
		path := fmt.Sprintf("checks/n%03d.md", i)
		err := host.Act(w.repo, func(r *memhost.Repo) error {
			branch := fmt.Sprintf("feature/n%03d", i)
			r.Write(branch, "change", []memhost.File{{Path: path, Content: "n\n"}})
			host.Open(r, gitprovider.PullRequestSpec{Repo: w.repo, Base: r.Default, Head: branch, Title: "n", Labels: labels})
			now = now.Add(time.Minute)
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func listMany(b *testing.B, w *world, p gitprovider.Provider, all int) {
	b.Helper()
	prs, err := p.ListOpen(b.Context(), w.repo, gitprovider.LabelOurs)
	if err != nil || len(prs) != all*2/5 {
		b.Fatalf("%d pull requests, %v", len(prs), err)
	}
}

// manyOurs is the number of our open pull requests in BenchmarkListOurs.
const manyOurs = 120

// BenchmarkListOurs measures list_prs on Gitea over 120 pull requests of ours in a process that has just started: when
// they were opened with the same records, when another program opened them, and when another process has listed those
// before.
func BenchmarkListOurs(b *testing.B) {
	k := giteaForge()
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
	k.adapter = func(t testing.TB, f forge, client *transport.Transport, now func() time.Time) gitprovider.Provider {
		return gitea.New(gitea.Options{
			Base: base(t, f), Client: client, Now: now, Sleep: noSleep, Paths: records.PullPaths("gitea"),
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
