package providertest

import (
	"testing"

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

// Rules returns the rules under which tests make change sets: default scope, highest tier.
func Rules() gitprovider.Rules {
	return gitprovider.Rules{
		Tier: gitprovider.TierRemediate, Limits: gitprovider.DefaultTierLimits(), Scope: gitprovider.DefaultScope(),
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
