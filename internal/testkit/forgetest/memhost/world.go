package memhost

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// World is one repository and what people and other programs do to it. It implements providertest.World: its methods
// fail the test when they fail.
type World struct {
	t        testing.TB
	host     *Host
	ref      gitprovider.RepoRef
	provider gitprovider.Provider
}

// World gives the people's side of a repository, for a test of the provider.
func (h *Host) World(t testing.TB, ref gitprovider.RepoRef, provider gitprovider.Provider) *World {
	return &World{t: t, host: h, ref: ref, provider: provider}
}

func (w *World) act(do func(repo *Repo) error) {
	w.t.Helper()
	if err := w.host.Act(w.ref, do); err != nil {
		w.t.Fatalf("acting on %s: %v", w.ref, err)
	}
}

func (w *World) actPR(number int, do func(repo *Repo, pr *PR) error) {
	w.t.Helper()
	w.act(func(repo *Repo) error {
		pr := repo.PR(number)
		if pr == nil {
			return fmt.Errorf("there is no pull request #%d", number)
		}
		return do(repo, pr)
	})
}

// Provider returns the provider under test.
func (w *World) Provider() gitprovider.Provider { return w.provider }

// Ref names the repository.
func (w *World) Ref() gitprovider.RepoRef { return w.ref }

// Push adds a commit that writes the files to a branch.
func (w *World) Push(branch string, files ...File) (commit string) {
	w.t.Helper()
	w.act(func(repo *Repo) error {
		commit = repo.Write(branch, "pushed", files)
		return nil
	})
	return commit
}

// DeleteBranch removes a branch.
func (w *World) DeleteBranch(branch string) {
	w.t.Helper()
	w.act(func(repo *Repo) error {
		if repo.Branches[branch] == "" {
			return fmt.Errorf("there is no branch %s", branch)
		}
		delete(repo.Branches, branch)
		return nil
	})
}

// Merge merges a pull request by a commit with two parents.
func (w *World) Merge(number int) {
	w.t.Helper()
	w.actPR(number, func(repo *Repo, pr *PR) error {
		base := repo.Branches[pr.Base]
		files, ok := repo.Merge(base, pr.HeadCommit)
		if !ok || pr.State != gitprovider.StateOpen {
			return fmt.Errorf("pull request #%d cannot be merged", number)
		}
		repo.Branches[pr.Base] = repo.Add(&Commit{Parents: []string{base, pr.HeadCommit}, Files: files, Message: "merge"})
		return nil
	})
}

// UpdateBranch implements providertest.BranchUpdater.
func (w *World) UpdateBranch(number int, rebase bool, files ...File) {
	w.t.Helper()
	w.actPR(number, func(repo *Repo, pr *PR) error {
		base, head := repo.Branches[pr.Base], pr.HeadCommit
		merged, ok := repo.Merge(base, head)
		if !ok {
			return fmt.Errorf("the branch of pull request #%d cannot be updated", number)
		}
		for _, f := range files {
			if f.Kind == "" {
				f.Kind = gitprovider.KindFile
			}
			merged[f.Path] = f
		}
		c := &Commit{Parents: []string{head, base}, Files: merged, Message: "merge " + pr.Base}
		if rebase {
			c.Parents, c.Message = []string{base}, repo.Commits[head].Message
		}
		repo.Branches[pr.Branch] = repo.Add(c)
		return nil
	})
}

// Retarget changes the branch that a pull request goes into.
func (w *World) Retarget(number int, base string) {
	w.t.Helper()
	w.actPR(number, func(_ *Repo, pr *PR) error {
		pr.Base = base
		return nil
	})
}

// Close closes a pull request without merging.
func (w *World) Close(number int) {
	w.t.Helper()
	w.actPR(number, func(_ *Repo, pr *PR) error {
		if pr.State != gitprovider.StateOpen {
			return fmt.Errorf("pull request #%d is not open", number)
		}
		pr.State, pr.ClosedAt = gitprovider.StateClosed, w.host.Now()
		return nil
	})
}

// Reopen opens a pull request again that was closed.
func (w *World) Reopen(number int) {
	w.t.Helper()
	w.actPR(number, func(_ *Repo, pr *PR) error {
		if pr.State != gitprovider.StateClosed {
			return fmt.Errorf("pull request #%d is not closed", number)
		}
		pr.State, pr.ClosedAt = gitprovider.StateOpen, time.Time{}
		return nil
	})
}

// Review adds a person's review.
func (w *World) Review(number int, author string, state gitprovider.ReviewState, body string) {
	w.t.Helper()
	w.actPR(number, func(_ *Repo, pr *PR) error {
		review := gitprovider.Review{Author: author, State: state, Body: body}
		if state != gitprovider.ReviewPending {
			review.SubmittedAt = w.host.Now()
		}
		pr.Reviews = append(pr.Reviews, review)
		return nil
	})
}

// Dismiss takes the reviews of a person back. They keep their times, as at the forges.
func (w *World) Dismiss(number int, author string) {
	w.t.Helper()
	w.actPR(number, func(_ *Repo, pr *PR) error {
		for i := range pr.Reviews {
			if pr.Reviews[i].Author == author {
				pr.Reviews[i].State = gitprovider.ReviewDismissed
			}
		}
		return nil
	})
}

// ReviewLines adds a person's review with comments on lines of the head, or of its base.
func (w *World) ReviewLines(number int, author string, state gitprovider.ReviewState, body string,
	lines ...gitprovider.LineComment) {
	w.t.Helper()
	w.Review(number, author, state, body)
	w.actPR(number, func(_ *Repo, pr *PR) error {
		review := &pr.Reviews[len(pr.Reviews)-1]
		for _, c := range lines {
			c.Author, c.Commit = author, pr.HeadCommit
			review.Comments = append(review.Comments, c)
		}
		return nil
	})
}

// Reply answers a comment on a line; review and line count from 0.
func (w *World) Reply(number, review, line int, author, body string) {
	w.t.Helper()
	w.actPR(number, func(_ *Repo, pr *PR) error {
		to := &pr.Reviews[review]
		c := to.Comments[line]
		to.Comments = append(to.Comments, gitprovider.LineComment{
			Author: author, At: w.host.Now(), Path: c.Path, Line: c.Line, Before: c.Before, Commit: c.Commit, Body: body,
		})
		return nil
	})
}

// OpenPR opens a pull request into the default branch.
func (w *World) OpenPR(head, title string, labels ...string) (number int) {
	w.t.Helper()
	w.act(func(repo *Repo) error {
		if repo.Branches[head] == "" {
			return fmt.Errorf("there is no branch %s", head)
		}
		number = w.host.Open(repo, gitprovider.PullRequestSpec{
			Repo: w.ref, Base: repo.Default, Head: head, Title: title, Labels: labels,
		}).Number
		return nil
	})
	return number
}

// OpenMany opens n pull requests with a file each: of the branches n000 and on below a folder, with checks/n000.md and
// on.
func (w *World) OpenMany(n int, below string, labels ...string) (numbers []int) {
	w.t.Helper()
	for i := range n {
		branch := fmt.Sprintf("%s/n%03d", below, i)
		w.Push(branch, File{Path: fmt.Sprintf("checks/n%03d.md", i), Content: "n\n"})
		numbers = append(numbers, w.OpenPR(branch, "One of many", labels...))
	}
	return numbers
}

// OpenFromFork opens a pull request into the default branch as Stranger would, from a branch of her fork that has one
// commit with the files.
func (w *World) OpenFromFork(branch, title string, labels []string, files ...File) (number int) {
	w.t.Helper()
	w.act(func(repo *Repo) error {
		head := ForkBranch(Stranger, branch)
		repo.Write(head, title, files)
		number = w.host.Open(repo, gitprovider.PullRequestSpec{
			Repo: w.ref, Base: repo.Default, Head: head, Title: title, Labels: labels,
		}).Number
		return nil
	})
	return number
}

// Comment adds a person's comment.
func (w *World) Comment(number int, author, body string) {
	w.t.Helper()
	w.actPR(number, func(_ *Repo, pr *PR) error {
		pr.Comments = append(pr.Comments, gitprovider.Remark{Author: author, Body: body, At: w.host.Now()})
		return nil
	})
}

// Unlabel removes all labels of a pull request.
func (w *World) Unlabel(number int) {
	w.t.Helper()
	w.actPR(number, func(_ *Repo, pr *PR) error {
		pr.Labels = nil
		return nil
	})
}

// SetBody replaces the body of a pull request.
func (w *World) SetBody(number int, body string) {
	w.t.Helper()
	w.actPR(number, func(_ *Repo, pr *PR) error {
		pr.Body = body
		return nil
	})
}

// Branches gives the commit of every branch.
func (w *World) Branches() (out map[string]string) {
	w.act(func(repo *Repo) error {
		out = maps.Clone(repo.Branches)
		return nil
	})
	return out
}

// Files gives the tree of a commit, sorted by path.
func (w *World) Files(commit string) (out []File) {
	w.act(func(repo *Repo) error {
		out = slices.SortedFunc(maps.Values(repo.Tree(commit)),
			func(a, b File) int { return strings.Compare(a.Path, b.Path) })
		return nil
	})
	return out
}

// Parents gives the parents of a commit.
func (w *World) Parents(commit string) (out []string) {
	w.commit(commit, func(c *Commit) { out = slices.Clone(c.Parents) })
	return out
}

// Message gives the message of a commit.
func (w *World) Message(commit string) (out string) {
	w.commit(commit, func(c *Commit) { out = c.Message })
	return out
}

func (w *World) commit(id string, do func(*Commit)) {
	w.t.Helper()
	w.act(func(repo *Repo) error {
		c := repo.Commits[id]
		if c == nil {
			return fmt.Errorf("there is no commit %s", id)
		}
		do(c)
		return nil
	})
}
