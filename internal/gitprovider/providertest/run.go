package providertest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Run holds an adapter against every sentence of the port's contract. The tests run in parallel, each on a repository
// of its own.
func Run(t *testing.T, h Harness) {
	groups := map[string]map[string]func(*testing.T, Harness){
		"snapshot":      snapshotTests(),
		"commit":        commitTests(),
		"contents":      contentTests(),
		"pull request":  pullRequestTests(),
		"status":        statusTests(),
		"branch":        branchTests(),
		"settling":      settleTests(),
		"every method":  everyMethodTests(),
		"races":         raceTests(),
		"complete list": listTests(),
		"others":        othersTests(),
		"details":       detailsTests(),
		"remarks":       remarkTests(),
		"revising":      reviseTests(),
	}
	for group, tests := range groups {
		t.Run(group, func(t *testing.T) {
			for name, test := range tests {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					test(t, h)
				})
			}
		})
	}
}

// seed returns the initial files of most tests.
func seed() []File {
	return []File{
		{Path: "README.md", Content: "# Home cluster\n"},
		{Path: "checks/disk.md", Content: "# Disk\n\ndf -h\n"},
		{Path: "checks/memory.md", Content: "# Memory\n"},
		{Path: "playbooks/restart.md", Content: "# Restart\n", Executable: true},
	}
}

// Scene is a repository and a test's steps on it.
type Scene struct {
	World
	t   *testing.T
	p   gitprovider.Provider
	ctx context.Context
}

// newScene begins with the files, or else with the seed.
func newScene(t *testing.T, h Harness, files ...File) *Scene {
	t.Helper()
	if len(files) == 0 {
		files = seed()
	}
	return NewScene(t, h.NewRepo(t, files...))
}

// NewScene returns a test's scene in the repository.
func NewScene(t *testing.T, w World) *Scene {
	return &Scene{World: w, t: t, p: w.Provider(), ctx: t.Context()}
}

// when returns the time of the suite's commits.
func when() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC) }

// Look takes a snapshot for the paths.
func (s *Scene) Look(paths ...string) *gitprovider.Snapshot {
	s.t.Helper()
	q := gitprovider.SnapshotQuery{Repo: s.Ref(), Contents: true}
	for _, p := range paths {
		q.Paths = append(q.Paths, Path(s.t, p))
	}
	snap, err := s.p.Snapshot(s.ctx, q)
	s.Must(err)
	return snap
}

// Request returns a commit of the changes on what is there now.
func (s *Scene) Request(branch string, files ...gitprovider.FileChange) gitprovider.CommitRequest {
	s.t.Helper()
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	return gitprovider.CommitRequest{
		Snapshot: s.Look(paths...), Branch: branch, Changes: ChangeSet(s.t, files...),
		Message: "Update the checks\n\nThe disk was full.\n", Time: when(),
	}
}

// Commit makes a Commit that must succeed.
func (s *Scene) Commit(branch string, files ...gitprovider.FileChange) gitprovider.Commit {
	s.t.Helper()
	made, err := s.p.Commit(s.ctx, s.Request(branch, files...))
	s.Must(err)
	return made
}

// Spec asks for a pull request of ours.
func (s *Scene) Spec(head, title string) gitprovider.PullRequestSpec {
	return gitprovider.PullRequestSpec{
		Repo: s.Ref(), Base: MainBranch, Head: head, Title: title, Body: "Why: the disk was full.",
		Labels: []string{gitprovider.LabelOurs},
	}
}

// Propose commits one new file and opens a labelled pull request for it.
func (s *Scene) Propose(branch string, files ...gitprovider.FileChange) gitprovider.PullRequest {
	s.t.Helper()
	if len(files) == 0 {
		files = []gitprovider.FileChange{Update("checks/disk.md", "# Disk\n\ndf -h; "+branch+"\n")}
	}
	s.Commit(branch, files...)
	pr, err := s.p.OpenPullRequest(s.ctx, s.Spec(branch, "Change "+branch))
	s.Must(err)
	s.Must(s.p.Label(s.ctx, s.Ref(), pr.Number, []string{gitprovider.LabelOurs}))
	return pr
}

// Status reads a pull request, which must succeed.
func (s *Scene) Status(number int) gitprovider.Status {
	s.t.Helper()
	status, err := s.p.Status(s.ctx, s.Ref(), number)
	s.Must(err)
	return status
}

// List reads the open pull requests of ours, which must succeed.
func (s *Scene) List() []gitprovider.PullRequest {
	s.t.Helper()
	prs, err := s.p.ListOpen(s.ctx, s.Ref(), gitprovider.LabelOurs)
	s.Must(err)
	return prs
}

// Must ends the test with an error.
func (s *Scene) Must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("unexpected error: %v (cause: %v)", err, causeOf(err))
	}
}

func causeOf(err error) error { return fault.From(err).Cause }

// Code demands an error of the type that the port promises, with the Code.
func (s *Scene) Code(err error, want fault.Code) {
	s.t.Helper()
	if _, ok := err.(*fault.Error); !ok { //nolint:errorlint // the port promises the type itself, not a wrapper
		s.t.Fatalf("got %#v, want a *fault.Error with the code %s", err, want)
	}
	if got := fault.CodeOf(err); got != want {
		s.t.Fatalf("got code %s (%v, cause: %v), want %s", got, err, causeOf(err), want)
	}
}

// Same demands that two values are equal.
func (s *Scene) Same(what string, got, want any) {
	s.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func numbers(prs []gitprovider.PullRequest) []int {
	out := []int{}
	for _, pr := range prs {
		out = append(out, pr.Number)
	}
	return out
}
