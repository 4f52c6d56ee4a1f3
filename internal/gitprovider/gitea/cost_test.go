package gitea_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/gitea"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

func TestAProposalCostsSevenRequestsWhateverTheNumberOfItsFiles(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3, 30, gitprovider.MaxFilesPerPR} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			sc := newScene(t)
			sc.propose(sc.p, ourBranch, newFiles(n)...)
			sc.same("requests", sc.requests(), 7)
		})
	}
}

func TestAProposalCostsOneMoreForEachOpenPullRequestThatWasNotSeen(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.OpenMany(3, "claude-ops/check", gitprovider.LabelOurs)
	sc.propose(sc.p, ourBranch)
	sc.same("requests at first: the label's id is known from the open ones", sc.requests(), 6+3)
	sc.propose(sc.p, ourBranch+"-again", providertest.Create("checks/x.md", "x"))
	sc.same("requests later: the one that was opened since is our own", sc.requests(), 6)
	sc.propose(sc.p, ourBranch+"-more", providertest.Create("checks/y.md", "y"))
	sc.Push("claude-ops/check/n000", memhost.File{Path: "checks/pushed.md", Content: "p"})
	sc.requests()
	sc.propose(sc.p, ourBranch+"-last", providertest.Create("checks/z.md", "z"))
	sc.same("requests after a push to one, and one opened by us", sc.requests(), 6+1)
}

func TestOurOwnPullRequestsCostOtherProcessesNothing(t *testing.T) {
	t.Parallel()
	const many = 120
	shared := &memory{paths: map[string][]string{}}
	remember := func(o *gitea.Options) { o.Paths = shared }
	sc := newScene(t, remember)
	var files []gitprovider.FileChange
	for i := range many {
		files = append(files, providertest.Create(fmt.Sprintf("checks/n%03d.md", i), "n"))
	}
	snap, err := sc.p.Snapshot(t.Context(), sc.query(files)) // one for all: each lists those that are open
	sc.must(err)
	for i, file := range files {
		branch := fmt.Sprintf("%s-%03d", ourBranch, i)
		_, err := sc.commitOn(sc.p, snap, branch, file)
		sc.must(err)
		sc.open(sc.p, branch)
	}
	list := func(when string, cost int) {
		t.Helper()
		sc.requests()
		prs, err := sc.provider(remember).ListOpen(t.Context(), sc.Ref(), gitprovider.LabelOurs)
		sc.must(err)
		sc.same("requests "+when, sc.requests(), cost)
		sc.same("pull requests", len(prs), many)
		for i, pr := range prs[2:] {
			sc.same("paths", pr.Paths, []string{fmt.Sprintf("checks/n%03d.md", i+2)})
		}
		sc.same("paths of the first", prs[0].Paths, map[string][]string{
			"at once": {"checks/n000.md"}, "after a push": {"checks/n000.md", "checks/pushed.md"},
		}[when])
	}
	list("at once", 3)
	sc.Push(ourBranch+"-000", memhost.File{Path: "checks/pushed.md", Content: "p"})
	list("after a push", 3+1)
}

func TestPullRequestsOfOthersCostAtMostTwentyRequestsAndLessLater(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	const others = gitprovider.MaxForeign + 5
	sc.OpenMany(others, "feature")
	look := func(wantRequests, wantUnread int) {
		t.Helper()
		q := sc.query(nil)
		q.Foreign = true
		sc.requests()
		snap, err := sc.p.Snapshot(t.Context(), q)
		sc.must(err)
		sc.same("requests", sc.requests(), wantRequests)
		sc.same("not looked at", snap.ForeignUnread, wantUnread)
		sc.same("looked at", len(snap.Foreign), others-wantUnread)
	}
	look(4+gitprovider.MaxForeign, 5)
	look(4+5, 0)
	look(4, 0)
	sc.Push("feature/n000", memhost.File{Path: "src/more.md", Content: "n"})
	look(4+1, 0)
}

func TestAPullRequestOfOthersThatCannotBeReadIsCounted(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.Push("feature/x", memhost.File{Path: "checks/disk.md", Content: "n"})
	sc.OpenPR("feature/x", "A person's")
	sc.s.Faults().Plan(func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/files") },
		httpfault.Fault{Kind: httpfault.Status, Status: 404, Body: `{"message":"not found"}`})
	q := sc.query(nil)
	q.Foreign = true
	snap, err := sc.p.Snapshot(t.Context(), q)
	sc.must(err)
	sc.same("not looked at", snap.ForeignUnread, 1)
}

// errOf is the error of a call whose answer does not matter.
func errOf[T any](_ T, err error) error { return err }

func TestWhatTheMethodsCost(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{
		"Label": 1, "FindByHead": 1, "BranchTip": 1, "BranchTip of none": 2, "DeleteBranch": 2, "ListOpen": 1, "Details": 2,
		"Remarks": 3, "Status": 3, "OpenPullRequest again": 2, "Snapshot with two branch names of one stem": 5,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc, ctx := newScene(t), t.Context()
			pr := sc.propose(sc.p, ourBranch)
			sc.must(errOf(sc.p.ListOpen(ctx, sc.Ref(), gitprovider.LabelOurs))) // its files are known by now
			q := sc.query(nil)
			q.Branches = []string{pr.Branch, pr.Branch + "-abc"}
			calls := map[string]func() error{
				"Label": func() error {
					return sc.p.Label(ctx, sc.Ref(), pr.Number, []string{gitprovider.LabelOurs, "automated"})
				},
				"FindByHead":            func() error { return errOf(sc.p.FindByHead(ctx, sc.Ref(), pr.Branch)) },
				"BranchTip":             func() error { return errOf(sc.p.BranchTip(ctx, sc.Ref(), pr.Branch)) },
				"BranchTip of none":     func() error { return errOf(sc.p.BranchTip(ctx, sc.Ref(), "claude-ops/none")) },
				"DeleteBranch":          func() error { return sc.p.DeleteBranch(ctx, sc.Ref(), pr.Branch, pr.HeadCommit) },
				"ListOpen":              func() error { return errOf(sc.p.ListOpen(ctx, sc.Ref(), gitprovider.LabelOurs)) },
				"Details":               func() error { return errOf(sc.p.Details(ctx, sc.Ref(), pr.Number)) },
				"Remarks":               func() error { return errOf(sc.p.Remarks(ctx, sc.Ref(), pr.Number)) },
				"Status":                func() error { return errOf(sc.p.Status(ctx, sc.Ref(), pr.Number)) },
				"OpenPullRequest again": func() error { return errOf(sc.p.OpenPullRequest(ctx, sc.spec(pr.Branch))) },
				"Snapshot with two branch names of one stem": func() error { return errOf(sc.p.Snapshot(ctx, q)) },
			}
			sc.requests()
			sc.must(calls[name]())
			sc.same("requests", sc.requests(), want)
		})
	}
}

// TestSnapshotReadsSideBySide ends only if the first round's requests are under way together.
func TestSnapshotReadsSideBySide(t *testing.T) {
	t.Parallel()
	var round sync.WaitGroup
	round.Add(4)
	once := func(body any) func(*http.Request) reply {
		var first sync.Once
		return func(r *http.Request) reply {
			first.Do(func() {
				round.Done()
				all := make(chan struct{})
				go func() {
					round.Wait()
					close(all)
				}()
				select {
				case <-all:
				case <-r.Context().Done():
				}
			})
			if page, ok := body.(reply); ok {
				return page
			}
			return reply{body: body}
		}
	}
	s := serve(t, routes{
		"GET " + repoPath:                     once(repository()),
		"GET " + repoPath + "/git/trees/HEAD": once(object{"sha": baseCommit, "tree": []object{}}),
		"GET " + repoPath + "/pulls":          pullsByState(once(list(0)), once(list(0))),
	})
	_, err := s.provider(t).Snapshot(t.Context(), gitprovider.SnapshotQuery{Repo: ref(), ClosedSince: time.Unix(1, 0)})
	wantCode(t, err, "")
}

func pullsByState(open, closed func(*http.Request) reply) func(*http.Request) reply {
	return func(r *http.Request) reply {
		if r.URL.Query().Get("state") == "closed" {
			return closed(r)
		}
		return open(r)
	}
}

func TestListOpenOfManyIsCompleteAndCheaperTheSecondTime(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	var want []int
	for i := range 250 {
		branch := fmt.Sprintf("feature/n%03d", i)
		sc.Push(branch, memhost.File{Path: fmt.Sprintf("checks/n%03d.md", i), Content: "n"})
		if i%5 < 2 {
			want = append(want, sc.OpenPR(branch, "t", gitprovider.LabelOurs))
		} else {
			sc.OpenPR(branch, "t", "bug")
		}
	}
	sc.requests()
	for _, cost := range []int{5 + 1 + 100, 5} {
		prs, err := sc.p.ListOpen(t.Context(), sc.Ref(), gitprovider.LabelOurs)
		sc.must(err)
		sc.same("numbers", numbers(prs), want)
		sc.same("requests", sc.requests(), cost)
	}
}

// memory is a PathMemory.
type memory struct {
	mu    sync.Mutex
	paths map[string][]string
}

func (m *memory) PathsAt(_ context.Context, repo gitprovider.RepoRef, number int, head string) ([]string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	paths, ok := m.paths[fmt.Sprint(repo, number, head)]
	return paths, ok
}

func (m *memory) RememberPaths(_ context.Context, repo gitprovider.RepoRef, number int, head string, paths []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.paths[fmt.Sprint(repo, number, head)] = paths
}

func TestPathsOfAnotherCommitAreNotRemembered(t *testing.T) {
	t.Parallel()
	files := "GET " + repoPath + "/pulls/1/files"
	at := func(commit string) reply {
		return list(1, object{"filename": "checks/disk.md", "status": "added",
			"contents_url": "https://x/contents/checks/disk.md?ref=" + commit})
	}
	s := serve(t, routes{"GET " + repoPath + "/pulls": list(1, pull(1, nil)), files: []reply{at(otherID), at(madeCommit)}})
	p := s.provider(t)
	for range 3 {
		_, err := p.ListOpen(t.Context(), ref(), gitprovider.LabelOurs)
		wantCode(t, err, "")
	}
	if n := s.count(files); n != 2 {
		t.Errorf("files read %d times, want 2: once late, once right", n)
	}
}

func TestNoCallAsksForTheVersion(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	pr := sc.propose(sc.p, ourBranch)
	_, err := sc.p.Status(t.Context(), sc.Ref(), pr.Number)
	sc.must(err)
	_, err = sc.p.Examine(t.Context(), sc.Ref(), "", []string{gitprovider.LabelOurs})
	sc.must(err)
	for _, asked := range sc.asked() {
		if strings.HasSuffix(asked, "/version") {
			t.Error(asked)
		}
	}
}
