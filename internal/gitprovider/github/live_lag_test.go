package github_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub"
)

// liveScene is a repository of the live harness on a fake GitHub, with the pull request #1 from the branch feature.
type liveScene struct {
	*liveWorld
	s *fakegithub.Server
	n *naps
}

func newLiveScene(t *testing.T) liveScene {
	t.Helper()
	h, s, n := liveOnFake(t, "ops-bot")
	w, is := h.NewRepo(t, providertest.File{Path: "README.md", Content: "# Home\n"}).(*liveWorld)
	if !is {
		t.Fatal("another world than that of the live harness")
	}
	w.Push("feature", providertest.File{Path: "a.md", Content: "a\n"})
	if number := w.OpenPR("feature", "Add a"); number != 1 {
		t.Fatalf("the first pull request has the number %d", number)
	}
	s.Faults().Forget()
	n.all = nil
	return liveScene{w, s, n}
}

// answers plans so many answers to a request about the repository.
func (l liveScene) answers(times int, method, path string, status int, body string) {
	for range times {
		l.s.Faults().Plan(func(r *http.Request) bool {
			return r.Method == method && r.URL.Path == "/"+l.at(path)
		}, always(status, nil, body))
	}
}

// asked counts the requests about something of the repository.
func (l liveScene) asked(method, path string) (n int) {
	for _, r := range l.s.Faults().Requests() {
		if r.Method == method && r.Path == "/"+l.at(path) {
			n++
		}
	}
	return n
}

// looks counts the waits between two looks.
func (l liveScene) looks() (n int) {
	for _, d := range l.n.all {
		if d == livePause {
			n++
		}
	}
	return n
}

func TestTheLiveWorldWaitsUntilGitHubHasCaughtUp(t *testing.T) {
	open := `{"number": 1, "state": "open", "head": {"ref": "feature", "sha": "old"}, "base": {"ref": "main"}}`
	mergeable := func(yes string, trial string) string {
		return strings.Replace(open, "{", `{"mergeable": `+yes+`, "merge_commit_sha": `+trial+`, `, 1)
	}
	readme := providertest.File{Path: "README.md", Content: "# New\n"}
	for name, row := range map[string]struct {
		stale []string // what the pull request looks like at first
		do    func(l liveScene)
		check func(l liveScene) bool
	}{
		"with a push to the head of a pull request": {[]string{open, open},
			func(l liveScene) { l.Push("feature", readme) },
			func(l liveScene) bool { return l.pull(1).Head.SHA == l.tip("feature") }},
		"with a push to the base of a pull request": {[]string{mergeable("null", "null"), mergeable("true", "null")},
			func(l liveScene) { l.Push("main", readme) },
			func(l liveScene) bool { return *l.pull(1).Mergeable }},
		"with a push to the base that makes a conflict": {[]string{mergeable("null", "null"), mergeable("null", "null")},
			func(l liveScene) { l.Push("main", providertest.File{Path: "a.md", Content: "b\n"}) },
			func(l liveScene) bool { return !*l.pull(1).Mergeable }},
		"with the removal of a branch": {[]string{open, open},
			func(l liveScene) { l.DeleteBranch("feature") },
			func(l liveScene) bool { return l.pull(1).closed() }},
		"with a merge": {[]string{open, open},
			func(l liveScene) { l.Merge(1) },
			func(l liveScene) bool { return l.pull(1).Merged && l.tip("feature") != "" }},
		"with a rejection": {[]string{open, open},
			func(l liveScene) { l.Close(1) },
			func(l liveScene) bool { return l.pull(1).closed() }},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLiveScene(t)
			for _, body := range row.stale {
				l.answers(1, http.MethodGet, "pulls/1", http.StatusOK, body)
			}
			row.do(l)
			if waited := l.looks(); waited < len(row.stale) {
				t.Errorf("waited %d times, want at least %d", waited, len(row.stale))
			}
			if !row.check(l) {
				t.Errorf("it went on before GitHub had caught up: %+v", l.pull(1))
			}
		})
	}
}

func TestTheLiveWorldSeesThroughAnOldTrialMerge(t *testing.T) {
	l := newLiveScene(t)
	l.pull(1) // the first read makes the fake try
	old := fmt.Sprintf(`{"number": 1, "state": "open", "mergeable": true, "merge_commit_sha": %q}`,
		l.pull(1).MergeCommitSHA)
	l.s.Faults().Forget()
	l.answers(3, http.MethodGet, "pulls/1", http.StatusOK, old)
	tip := l.Push("main", providertest.File{Path: "README.md", Content: "# New\n"})
	if looked := l.asked(http.MethodGet, "pulls/1"); looked < 4 {
		t.Errorf("looked %d times", looked)
	}
	if parents := l.Parents(l.pull(1).MergeCommitSHA); !slices.Equal(parents, []string{tip, l.tip("feature")}) {
		t.Errorf("the trial merge has the parents %v", parents)
	}
}

func TestTheLiveWorldRepeatsWhatGitHubRefusesForATime(t *testing.T) {
	for name, row := range map[string]struct {
		method, path string
		status       int
		body         string
		wait         time.Duration
		do           func(l liveScene)
	}{
		"a merge, while the base is being looked at": {http.MethodPut, "pulls/1/merge", 405,
			`{"message": "Base branch was modified. Review and try the merge again."}`, livePause,
			func(l liveScene) { l.Merge(1) }},
		"a review, while the invitation is new": {http.MethodPost, "pulls/1/reviews", 404, `{"message": "Not Found"}`,
			livePause,
			func(l liveScene) { l.Review(1, "ann", gitprovider.ReviewApproved, "") }},
		"anything, for coming too often": {http.MethodPatch, "pulls/1", 403,
			`{"message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}`,
			time.Minute, func(l liveScene) { l.SetBody(1, "Why") }},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLiveScene(t)
			l.answers(2, row.method, row.path, row.status, row.body)
			row.do(l)
			if n := l.asked(row.method, row.path); n != 3 {
				t.Errorf("%d requests, want 3", n)
			}
			if n := len(slices.DeleteFunc(l.n.all, func(d time.Duration) bool { return d != row.wait })); n < 2 {
				t.Errorf("waited %s %d times, want it twice", row.wait, n)
			}
		})
	}
}

func TestTheLiveWorldGivesUpInTheEnd(t *testing.T) {
	l := newLiveScene(t)
	l.answers(liveLooks, http.MethodPut, "pulls/1/merge", 405, `{"message": "Pull Request is not mergeable"}`)
	w := *l.liveWorld
	said := fatal(t, func(t testing.TB) {
		w.t = t
		w.Merge(1)
	})
	if !strings.Contains(said, "not mergeable") || l.asked(http.MethodPut, "pulls/1/merge") != liveLooks {
		t.Errorf("%q after %d requests", said, l.asked(http.MethodPut, "pulls/1/merge"))
	}
}

func TestTheLiveHarnessWritesOnceASecond(t *testing.T) {
	l := newLiveScene(t)
	l.Push("other", providertest.File{Path: "b.md", Content: "b\n"})
	if _, err := l.provider.OpenPullRequest(t.Context(), gitprovider.PullRequestSpec{
		Repo: l.Ref(), Base: "main", Head: "other", Title: "Add b",
	}); err != nil {
		t.Fatal(err)
	}
	writes := 0
	for _, r := range l.s.Faults().Requests() {
		if r.Method != http.MethodGet && r.Path != "/graphql" {
			writes++
		}
	}
	paused := slices.DeleteFunc(l.n.all, func(d time.Duration) bool { return d < 500*time.Millisecond || d > time.Second })
	if writes != 4 || len(paused) != writes {
		t.Errorf("%d pauses before %d writes, want 4", len(paused), writes)
	}
}
