package github_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestContentsArriveByteForByte(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", gitprovider.MaxContentRead/16)
	for name, content := range map[string]string{
		"text": "# Disk\n", "empty": "", "line ends of all kinds": "a\r\nb\rc\n", "a byte order mark": "\ufeffx",
		"bytes that are not text": "\x00\xff\xfe binary", "what GraphQL cuts off": large[:600<<10], "the largest": large,
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, memhost.File{Path: "checks/disk.md", Content: content})
			q := s.query("checks/disk.md")
			q.Contents = true
			snapshot, err := s.p.Snapshot(t.Context(), q)
			must.Do(t, err)
			if got := string(snapshot.Contents[q.Paths[0]]); got != content {
				t.Errorf("got %d bytes, want %d", len(got), len(content))
			}
		})
	}
}

func TestARenamedRepositoryIsFollowed(t *testing.T) {
	s := newScene(t)
	s.configure(func(set *fakegithub.Settings) { set.RenamedFrom = []string{"octo/old-cluster"} })
	q := s.query("checks/disk.md")
	q.Repo = gitprovider.RepoRef{Owner: "octo", Name: "old-cluster"}
	snapshot, err := s.p.Snapshot(t.Context(), q)
	must.Do(t, err)
	s.same("name", snapshot.Repo.String(), s.Ref().String())
	req := s.request(branch)
	req.Snapshot = snapshot
	_, err = s.p.Commit(t.Context(), req)
	must.Do(t, err)
	old := s.spec(branch)
	old.Repo = q.Repo
	_, err = s.p.OpenPullRequest(t.Context(), old) // a write to the old name is told, not repeated
	wantCode(t, err, fault.Conflict)
	s.same("pull requests", len(s.list()), 0)
}

func TestASnapshotTellsWhatTheRepositoryIs(t *testing.T) {
	s := newScene(t)
	s.configure(func(set *fakegithub.Settings) { set.Archived, set.Fork = true, true })
	snapshot := s.look()
	if !snapshot.Archived || !snapshot.Fork || !strings.HasPrefix(snapshot.URL, "https://") {
		t.Errorf("archived %v, fork %v, URL %q", snapshot.Archived, snapshot.Fork, snapshot.URL)
	}
}

func TestARepositoryWithoutACommitSaysSo(t *testing.T) {
	for _, base := range []string{"", "stable"} {
		s := newScene(t)
		s.configure(func(set *fakegithub.Settings) { set.Empty = true })
		q := s.query("checks/disk.md")
		q.Base = base
		_, err := s.p.Snapshot(t.Context(), q)
		if e := wantCode(t, err, fault.NotFound); !strings.Contains(e.Message, "no commit yet") {
			t.Errorf("message %q", e.Message)
		}
	}
}

func TestManyFilesOfOnePullRequestAreAllSeen(t *testing.T) {
	s := newScene(t)
	var files []memhost.File
	for i := range 250 {
		files = append(files, memhost.File{Path: fmt.Sprintf("checks/f%03d.md", i), Content: "f\n"})
	}
	s.Push(branch, files...)
	s.OpenPR(branch, "Large", gitprovider.LabelOurs)
	s.same("requests", s.cost(func() { s.same("paths", len(s.list()[0].Paths), 250) }), 4)
	s.same("requests of the second", s.cost(func() { s.same("paths", len(s.list()[0].Paths), 250) }), 1)
}

func TestAPullRequestJustOpenedKnowsItsPaths(t *testing.T) {
	s := newScene(t)
	s.commit(branch, providertest.Delete("checks/disk.md"), providertest.Create("checks/storage.md", "# Disk\n"))
	pr, err := s.p.OpenPullRequest(t.Context(), s.spec(branch))
	must.Do(t, err)
	s.same("paths", pr.Paths, []string{"checks/disk.md", "checks/storage.md"})
	s.same("the same as GitHub's", pr.Paths, s.status(pr.Number).Paths)
}

func TestClosedOnesAreReadUntilTheTimeIsReached(t *testing.T) {
	s := newScene(t)
	s.OpenMany(150, "claude-ops/check")
	for number := 1; number <= 150; number++ {
		s.Close(number)
	}
	all := s.look()
	s.same("closed", len(all.Closed), 150)
	q := s.query()
	q.ClosedSince = s.status(148).ClosedAt
	var some *gitprovider.Snapshot
	s.same("requests", s.cost(func() {
		var err error
		some, err = s.p.Snapshot(t.Context(), q)
		must.Do(t, err)
	}), 1)
	s.same("closed of late", len(some.Closed), 3)
}

func TestAHeadThatStaysBehindIsReadFromTheBranch(t *testing.T) {
	s, pr := proposed(t)
	tip := s.Push(branch, memhost.File{Path: "checks/disk.md", Content: "more\n"})
	s.configure(func(set *fakegithub.Settings) { set.Delays.Heads = map[int]string{pr.Number: pr.HeadCommit} })
	s.same("in the snapshot", s.look().Open[0].HeadCommit, tip)
	s.same("in the list", s.list()[0].HeadCommit, tip)
	s.same("in the status", s.status(pr.Number).HeadCommit, tip)
	s.DeleteBranch(branch)
	s.same("without a branch", s.status(pr.Number).HeadCommit, pr.HeadCommit)
}

// GitHub answers a query that is too much for it with 200.
func TestComputeLimitsMakeQueriesSmaller(t *testing.T) {
	for name, row := range map[string]struct {
		read         func(s *scene) []gitprovider.PullRequest
		first, again int // requests
	}{
		"a snapshot": {func(s *scene) []gitprovider.PullRequest { return s.look().Open }, 12, 4},
		"a list":     {func(s *scene) []gitprovider.PullRequest { return s.list() }, 14, 6},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.OpenMany(60, "claude-ops/check", gitprovider.LabelOurs)
			s.s.LimitQueries(200)
			check := func(want int) {
				t.Helper()
				var all []gitprovider.PullRequest
				s.same("requests", s.cost(func() { all = row.read(s) }), want)
				s.same("number", len(all), 60)
				s.same("paths", all[59].Paths, []string{"checks/n059.md"})
			}
			check(row.first)
			check(row.again)
		})
	}
}

func TestAQueryThatIsTooMuchForGitHubIsAskedWithoutTheFiles(t *testing.T) {
	tooMuch := `{"data":null,"errors":[{"message":"Something went wrong. This may be the result of a timeout."}]}`
	for name, row := range map[string]struct {
		answer httpfault.Fault
		times  int // transport repeats a read after a gateway's answer
	}{
		"as its gateway says": {always(502, nil, tooMuch), 3},
		"as GraphQL says":     {always(200, nil, tooMuch), 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.OpenMany(20, "claude-ops/check")
			for range row.times {
				s.s.Faults().Plan(nil, row.answer)
			}
			var snapshot *gitprovider.Snapshot
			s.same("requests", s.cost(func() { snapshot = s.look() }), row.times+2)
			s.same("open", len(snapshot.Open), 20)
			s.same("paths", snapshot.Open[3].Paths, []string{"checks/n003.md"})
		})
	}
}

func TestComputeLimitsSplitTheQuestionAboutReviews(t *testing.T) {
	s := newScene(t)
	s.OpenMany(gitprovider.MaxReviewStates, "claude-ops/check")
	var numbers []int
	for number := 1; number <= gitprovider.MaxReviewStates; number++ {
		s.Review(number, "octo", gitprovider.ReviewApproved, "")
		numbers = append(numbers, number)
	}
	s.s.LimitQueries(gitprovider.MaxReviewStates / 2)
	var states map[int]gitprovider.ReviewState
	s.same("requests", s.cost(func() {
		var err error
		states, err = s.p.ReviewStates(t.Context(), s.Ref(), numbers)
		must.Do(t, err)
	}), 3)
	s.same("states", len(states), gitprovider.MaxReviewStates)
	s.s.LimitQueries(-1)
	_, err := s.p.ReviewStates(t.Context(), s.Ref(), []int{1})
	wantCode(t, err, fault.UpstreamError)
}
