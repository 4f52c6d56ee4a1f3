// Package providertest is the contract suite that every adapter of gitprovider.Provider must pass (Run), and what a
// test needs around it.
package providertest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// MainBranch is the default branch of every repository that a Harness makes.
const MainBranch = "main"

// File is one file of a repository's tree.
type File struct {
	Path       string
	Kind       gitprovider.EntryKind // "" means KindFile
	Executable bool
	Content    string // of a symlink: what it points to; of a submodule: nothing
}

// Harness lets the contract suite make repositories on the host under test. It must be safe for parallel tests.
type Harness interface {
	// NewRepo makes a repository whose branch MainBranch has one commit with the files; without files, one that has no
	// commit at all.
	NewRepo(t testing.TB, files ...File) World
	// ManyPRs is the number of pull requests that the suite opens to check that a list is complete: more than the host's
	// largest page where there are pages.
	ManyPRs() int
}

// World is one repository, and what people and other programs do to it behind the provider's back. Methods fail the
// test when they fail.
type World interface {
	// Provider is the provider under test.
	Provider() gitprovider.Provider
	// Ref names the repository.
	Ref() gitprovider.RepoRef
	// Push adds a commit that writes the files to a branch, and returns the commit. A branch that does not exist starts
	// at MainBranch.
	Push(branch string, files ...File) string
	// DeleteBranch removes a branch.
	DeleteBranch(branch string)
	// Merge merges a pull request, by a commit with two parents, as a person would. The head branch stays.
	Merge(number int)
	// Close closes a pull request without merging.
	Close(number int)
	// Review adds a person's review. The suite's people are ann and bob; see Renamer. SubmittedAt is the host's to set.
	Review(number int, author string, state gitprovider.ReviewState, body string)
	// OpenPR opens a pull request as another program would.
	OpenPR(head, title string, labels ...string) int
	// SetBody replaces the body of a pull request, as somebody who may edit it would.
	SetBody(number int, body string)
	// Branches gives the commit of every branch.
	Branches() map[string]string
	// Files gives the tree of a commit, sorted by path.
	Files(commit string) []File
	// Parents gives the parents of a commit.
	Parents(commit string) []string
	// Message gives the message of a commit.
	Message(commit string) string
}

// Commenter is an optional ability of a World: people can comment on its pull requests. ann and bob may write to the
// repository.
type Commenter interface {
	Comment(number int, author, body string)
}

// LineReviewer is an optional ability of a World: people can comment on lines.
type LineReviewer interface {
	// ReviewLines adds a person's review with comments on lines of the head, or, with Before, of its base.
	ReviewLines(number int, author string, state gitprovider.ReviewState, body string, lines ...gitprovider.LineComment)
}

// BranchUpdater is an optional ability of a World: people can bring the branch of a pull request up to date.
type BranchUpdater interface {
	// UpdateBranch merges the base branch into the head branch, by a commit with two parents, or makes the commits of the
	// head branch anew on top of the base branch. files are additional changes in the last commit.
	UpdateBranch(number int, rebase bool, files ...File)
}

// Public is an optional ability of a World: people who may not write to the repository can act there. eve is one of
// them.
type Public interface {
	Commenter
	// OpenFromFork opens a pull request into MainBranch in eve's name, from a branch of her fork that has one commit with
	// the files. The labels are put on by somebody who may.
	OpenFromFork(branch, title string, labels []string, files ...File) int
}

// Renamer is an optional ability of a World where people have other names on the host: a real forge has accounts of its
// own.
type Renamer interface {
	// Login returns the host's name for the person that Review calls author.
	Login(author string) string
}

// Rules returns the rules under which tests make change sets: default scope and the skills of agents, highest tier.
func Rules() gitprovider.Rules {
	skills := gitprovider.FileKind{Name: "skills", Lifts: []string{".claude/**", ".agents/**"},
		Patterns: []string{".*/skills/*/SKILL.md", ".*/skills/*/references/*.md"}, Skills: []string{".*/skills/*/SKILL.md"}}
	return gitprovider.Rules{
		Tier: gitprovider.TierRemediate, Limits: gitprovider.DefaultTierLimits(),
		Scope: gitprovider.DefaultScope().WithKinds(skills),
	}
}

// ChangeSet makes an approved change set, or fails the test.
func ChangeSet(t testing.TB, files ...gitprovider.FileChange) gitprovider.ChangeSet {
	t.Helper()
	set, violations := gitprovider.NewChangeSet(Rules(), files)
	if len(violations) > 0 {
		t.Fatalf("the test's change set was refused: %+v", violations)
	}
	return set
}

// Create returns a new file.
func Create(path, content string) gitprovider.FileChange {
	return gitprovider.FileChange{Path: path, Action: gitprovider.ActionCreate, Content: content}
}

// Update returns a change of an existing file.
func Update(path, content string) gitprovider.FileChange {
	return gitprovider.FileChange{Path: path, Action: gitprovider.ActionUpdate, Content: content}
}

// Delete returns the removal of a file.
func Delete(path string) gitprovider.FileChange {
	return gitprovider.FileChange{Path: path, Action: gitprovider.ActionDelete}
}

// Path parses a path, or fails the test.
func Path(t testing.TB, s string) gitprovider.Path {
	t.Helper()
	p, err := gitprovider.ParsePath(s)
	if err != nil {
		t.Fatalf("path %q %v", s, err)
	}
	return p
}

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
		"closing":       closeTests(),
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
	return s.snapshot(q)
}

func (s *Scene) snapshot(q gitprovider.SnapshotQuery) *gitprovider.Snapshot {
	s.t.Helper()
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
