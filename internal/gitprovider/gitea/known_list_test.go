package gitea_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/gitea"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegitea"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// A revision of ours is as well known to other processes as what it was added to.
func TestARevisionOfOursCostsOtherProcessesNothing(t *testing.T) {
	t.Parallel()
	shared := &memory{paths: map[string][]string{}}
	remember := func(o *gitea.Options) { o.Paths = shared }
	sc := newScene(t, remember)
	sc.propose(sc.p, ourBranch, providertest.Create("checks/a.md", "a"))
	revise := func(files ...gitprovider.FileChange) {
		t.Helper()
		p := sc.provider(remember)
		snap, err := p.Snapshot(t.Context(), sc.query(nil)) // as a revision reads the pull requests
		sc.must(err)
		head, err := p.Snapshot(t.Context(), gitprovider.SnapshotQuery{
			Repo: snap.Repo, Base: ourBranch, FilesOnly: true, Paths: []gitprovider.Path{providertest.Path(t, "checks/a.md")},
		})
		sc.must(err)
		_, err = p.Append(t.Context(), gitprovider.CommitRequest{
			Snapshot: head, Branch: ourBranch, Changes: providertest.ChangeSet(t, files...), Message: "more",
		})
		sc.must(err)
		_, err = p.SetText(t.Context(), sc.Ref(), 1, "", "more")
		sc.must(err)
		sc.requests()
	}
	list := func(cost int, paths ...string) {
		t.Helper()
		prs, err := sc.provider(remember).ListOpen(t.Context(), sc.Ref(), gitprovider.LabelOurs)
		sc.must(err)
		sc.same("requests", sc.requests(), cost)
		sc.same("paths", prs[0].Paths, paths)
	}
	revise(providertest.Create("checks/b.md", "b"))
	list(1, "checks/a.md", "checks/b.md")
	revise(providertest.Update("checks/a.md", "aa"), providertest.Create("checks/c.md", "c"))
	list(1, "checks/a.md", "checks/b.md", "checks/c.md")
	revise(providertest.Delete("checks/a.md")) // which is not changed any more: that has to be asked
	list(2, "checks/b.md", "checks/c.md")
	list(1, "checks/b.md", "checks/c.md")
}

func TestTheFilesOfAListMayBeReadInParts(t *testing.T) {
	t.Parallel()
	const many = 120
	shared := &memory{paths: map[string][]string{}}
	remember := func(o *gitea.Options) { o.Paths = shared }
	sc := newScene(t, remember)
	sc.OpenMany(many, "claude-ops/check", gitprovider.LabelOurs)
	sc.requests()
	for left := many; ; left -= 40 {
		list, err := sc.provider(remember).ListKnown(t.Context(), sc.Ref(), gitprovider.LabelOurs)
		sc.must(err)
		sc.same("to be read", len(list.Unread), left)
		sc.same("requests for the list", sc.requests(), 3)
		if left == 0 {
			return
		}
		paths, err := list.ReadPaths(t.Context(), list.Unread[:40])
		sc.must(err)
		sc.same("read", len(paths), 40)
		sc.same("the first", paths[list.Unread[0]], []string{fmt.Sprintf("checks/n%03d.md", list.Unread[0]-1)})
		sc.same("requests for the files", sc.requests(), 41)
	}
}

func TestExamineSaysWhatIsToBeDone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(sc *scene)
		code   fault.Code
		says   string
	}{
		"an empty repository": {func(sc *scene) {
			sc.configure(func(*fakegitea.Settings) {})
			_ = sc.s.Host().Act(sc.Ref(), func(r *memhost.Repo) error {
				r.Branches, r.Commits = map[string]string{}, map[string]*memhost.Commit{}
				return nil
			})
		}, fault.NotFound, "has no commit yet; make a first one"},
		"a token for public repositories and a private one": {func(sc *scene) {
			sc.configure(func(s *fakegitea.Settings) { s.Private = true })
			sc.s.SetScopes("public-only", "write:repository", "write:issue")
		}, fault.ProviderDisabled, "GITEA_TOKEN is limited to public repositories"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc := newScene(t)
			c.change(sc)
			_, err := sc.p.Examine(t.Context(), sc.Ref(), "", nil)
			wantCode(t, err, c.code)
			wantSays(t, err, c.says)
		})
	}
	sc := newScene(t)
	for approvals, reviewed := range map[int]bool{0: false, 2: true} {
		sc.configure(func(s *fakegitea.Settings) {
			s.Protection.ProtectedPatterns = []string{"main"}
			s.Protection.RequiredApprovals = map[string]int{"main": approvals}
		})
		access, err := sc.p.Examine(t.Context(), sc.Ref(), "", nil)
		sc.must(err)
		sc.same("a review is required", access.Reviewed, reviewed)
	}
}

// Servers differ in when they tell the number of reviews. None hides a review, and where the number is left out for a
// pull request without reviews, it is derived from the rest of the list.
func TestPullRequestsWithoutReviewsAreKnownFromTheList(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		number fakegitea.Number
		others bool  // another pull request was reviewed
		clean  []int // #1 was opened, #2 commented on, #3 reviewed with others, #4 opened
	}{
		"always told":                  {fakegitea.NumberAlways, true, []int{1, 2, 4}},
		"left out if 0":                {fakegitea.NumberUnlessZero, true, []int{1, 2, 4}},
		"left out if 0, none reviewed": {fakegitea.NumberUnlessZero, false, []int{1, 3, 4}},
		"never told":                   {fakegitea.NumberNever, true, []int{1, 4}},
		"never told, none reviewed":    {fakegitea.NumberNever, false, []int{1, 3, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc := newScene(t)
			sc.configure(func(s *fakegitea.Settings) { s.Features.ReviewNumber = c.number })
			var later atomic.Int64
			sc.s.Host().SetClock(func() time.Time { return time.Unix(1_800_000_000, 0).Add(time.Duration(later.Load())) })
			sc.OpenMany(4, "claude-ops/check", gitprovider.LabelOurs)
			later.Store(int64(time.Minute))
			sc.must(sc.p.Comment(t.Context(), sc.Ref(), 2, "Why?"))
			if c.others {
				sc.Review(3, "ann", gitprovider.ReviewChangesRequested, "Say how.")
			}
			list, err := sc.p.ListKnown(t.Context(), sc.Ref(), gitprovider.LabelOurs)
			sc.must(err)
			clean := []int{}
			for _, pr := range list.PRs {
				if pr.Unreviewed {
					clean = append(clean, pr.Number)
				}
			}
			sc.same("without reviews", clean, c.clean)
		})
	}
}

// Where a server leaves the number out of all of a list, its own description says whether it knows it, in one request.
func TestTheDescriptionTellsWhetherReviewsAreCounted(t *testing.T) {
	t.Parallel()
	for _, described := range []bool{true, false} {
		sc := newScene(t)
		sc.configure(func(s *fakegitea.Settings) { s.Features.ReviewNumber = fakegitea.NumberUnlessZero })
		if described {
			sc.s.Describe()
		}
		sc.OpenMany(6, "claude-ops/check", gitprovider.LabelOurs)
		sc.s.Host().SetClock(func() time.Time { return time.Now().Add(time.Hour) })
		for number := range 6 {
			sc.must(sc.p.Comment(t.Context(), sc.Ref(), number+1, "Why?"))
		}
		sc.requests()
		for _, cost := range []int{2, map[bool]int{true: 1, false: 2}[described]} {
			list, err := sc.p.ListKnown(t.Context(), sc.Ref(), gitprovider.LabelOurs)
			sc.must(err)
			for _, pr := range list.PRs {
				sc.same("without reviews", pr.Unreviewed, described)
			}
			sc.same("requests", sc.requests(), cost)
		}
		sc.Review(2, "ann", gitprovider.ReviewApproved, "")
		list, err := sc.p.ListKnown(t.Context(), sc.Ref(), gitprovider.LabelOurs)
		sc.must(err)
		sc.same("with a review", list.PRs[1].Unreviewed, false)
	}
}

// TestLastNumberCountsNoPullRequestThatWasOpenedAfterTheOpenOnesWereRead lets two be opened between the reading of the
// open pull requests and that of the closed ones, of which the second one is closed at once. The first one is in
// neither list, so LastNumber must not be the number of the second one.
func TestLastNumberCountsNoPullRequestThatWasOpenedAfterTheOpenOnesWereRead(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	ago := time.Hour
	sc.s.Host().SetClock(func() time.Time { return time.Now().Add(-ago) })
	opens := func(branch string) int {
		sc.Push(branch, memhost.File{Path: branch + ".md", Content: "x\n"})
		return sc.OpenPR(branch, "t", gitprovider.LabelOurs)
	}
	before := opens("claude-ops/check/before")
	sc.Close(before)
	ago = 0
	openRead := make(chan struct{})
	var once sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("state") == "closed" {
			<-openRead
		}
		sc.s.Faults().ServeHTTP(w, r)
		if r.URL.Query().Get("state") == "open" {
			once.Do(func() {
				opens("claude-ops/check/first")
				sc.Close(opens("claude-ops/check/second"))
				close(openRead)
			})
		}
	}))
	t.Cleanup(server.Close)
	snap, err := newProvider(t, server.URL, sc.s.Token()).Snapshot(t.Context(), sc.query(nil))
	sc.must(err)
	sc.same("open", numbers(snap.Open), []int{})
	sc.same("closed", len(snap.Closed), 2)
	sc.same("last number", snap.LastNumber, before)
}

// bulk is a memory of paths that counts how often it is asked and told.
type bulk struct {
	memory
	asked, told int
}

func (m *bulk) ManyPathsAt(ctx context.Context, repo gitprovider.RepoRef, heads map[int]string) map[int][]string {
	m.asked++
	out := map[int][]string{}
	for number, head := range heads {
		if paths, ok := m.PathsAt(ctx, repo, number, head); ok {
			out[number] = paths
		}
	}
	return out
}

func (m *bulk) RememberManyPaths(ctx context.Context, repo gitprovider.RepoRef, heads map[int]string,
	paths map[int][]string) {
	m.told++
	for number := range paths {
		m.RememberPaths(ctx, repo, number, heads[number], paths[number])
	}
}

func TestTheMemoryIsAskedAndToldOnceForAList(t *testing.T) {
	t.Parallel()
	shared := &bulk{memory: memory{paths: map[string][]string{}}}
	remember := func(o *gitea.Options) { o.Paths = shared }
	sc := newScene(t, remember)
	sc.OpenMany(20, "claude-ops/check", gitprovider.LabelOurs)
	// requests of a new process; how often it was asked and told so far
	for _, want := range [][3]int{{1 + 1 + 20, 1, 1}, {1, 2, 1}} {
		sc.requests()
		prs, err := sc.provider(remember).ListOpen(t.Context(), sc.Ref(), gitprovider.LabelOurs)
		sc.must(err)
		sc.same("cost", [3]int{sc.requests(), shared.asked, shared.told}, want)
		sc.same("paths of the last", prs[19].Paths, []string{"checks/n019.md"})
	}
}

// pullsOfEveryKind opens a pull request for each way in which a path can change, all on one merge base that the base
// branch then leaves behind, and returns their paths, oldest first.
func pullsOfEveryKind(sc *scene) (want [][]string) {
	open := func(branch string, paths ...string) {
		sc.OpenPR(branch, branch, gitprovider.LabelOurs)
		want = append(want, paths)
	}
	sc.Push("claude-ops/check/new", memhost.File{Path: "checks/new.md", Content: "n\n"})
	open("claude-ops/check/new", "checks/new.md")
	sc.Push("claude-ops/check/changed", memhost.File{Path: "checks/disk.md", Content: "n\n"})
	open("claude-ops/check/changed", "checks/disk.md")
	sc.Push("claude-ops/check/mode", memhost.File{Path: "checks/disk.md", Content: "old\n", Executable: true})
	open("claude-ops/check/mode", "checks/disk.md")
	sc.Push("claude-ops/check/type", memhost.File{Path: "checks/disk.md", Content: "memory.md",
		Kind: gitprovider.KindSymlink})
	open("claude-ops/check/type", "checks/disk.md")
	sc.Push("claude-ops/check/twice", memhost.File{Path: "checks/disk.md", Content: "n\n"})
	sc.Push("claude-ops/check/twice", memhost.File{Path: "a/b/deep.md", Content: "n\n"})
	open("claude-ops/check/twice", "a/b/deep.md", "checks/disk.md")
	_, err := sc.commit(sc.p, "claude-ops/check/moved", providertest.Delete("checks/memory.md"),
		providertest.Create("checks/ram.md", "old\n"))
	sc.must(err)
	open("claude-ops/check/moved", "checks/memory.md", "checks/ram.md")
	sc.Push(memhost.MainBranch, memhost.File{Path: "README.md", Content: "# Moved on\n"})
	return want
}

func TestTheFilesOfManyPullRequestsOnOneBaseAreThoseThatTheServerLists(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		files int // more in the base
		fails int // from which tree on they cannot be read; 0: none
		lists int // how many lists of files are asked for
	}{
		"by trees":                  {},
		"a large tree":              {files: 250, lists: 6},
		"trees that cannot be read": {fails: 1, lists: 6},
		"heads that cannot be read": {fails: 2, lists: 6},
		"a tree that is not large":  {files: 240},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc := newScene(t)
			var more []memhost.File
			for i := range tc.files {
				more = append(more, memhost.File{Path: fmt.Sprintf("docs/n%03d.md", i), Content: "n\n"})
			}
			if len(more) > 0 {
				sc.Push(memhost.MainBranch, more...)
			}
			want := pullsOfEveryKind(sc)
			p := sc.provider()
			sc.requests()
			trees := map[*http.Request]bool{}
			refused := func(r *http.Request) bool {
				if !strings.Contains(r.URL.Path, "/git/trees/") {
					return false
				}
				trees[r] = true
				return len(trees) >= tc.fails
			}
			if tc.fails > 0 {
				for range 10 {
					sc.s.Faults().Plan(refused, httpfault.Fault{Kind: httpfault.Status, Status: 404, Body: `{"message":"not found"}`})
				}
			}
			prs, err := p.ListOpen(t.Context(), sc.Ref(), gitprovider.LabelOurs)
			sc.must(err)
			var got [][]string
			for _, pr := range prs {
				got = append(got, pr.Paths)
			}
			sc.same("paths", got, want)
			lists := slices.DeleteFunc(sc.asked(), func(r string) bool { return !strings.HasSuffix(r, "/files") })
			sc.same("lists of files", len(lists), tc.lists)
			_, err = p.ListOpen(t.Context(), sc.Ref(), gitprovider.LabelOurs)
			sc.must(err)
			sc.same("requests of the second call", sc.requests(), 1)
		})
	}
}
