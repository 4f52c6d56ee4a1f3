package providertest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// FakeHarness runs the contract suite over a Fake of its own. The zero value is ready.
type FakeHarness struct{}

// NewRepo implements Harness.
func (FakeHarness) NewRepo(t testing.TB, files ...File) World {
	f := NewFake()
	return f.World(t, f.AddRepoFiles("demo", "home-cluster", files...))
}

// ManyPRs implements Harness.
func (FakeHarness) ManyPRs() int { return 120 }

// World gives the people's side of one of the Fake's repositories.
func (f *Fake) World(t testing.TB, ref gitprovider.RepoRef) World {
	return &fakeWorld{t: t, fake: f, ref: ref}
}

type fakeWorld struct {
	t    testing.TB
	fake *Fake
	ref  gitprovider.RepoRef
}

// act runs do under the lock, and lets the host notice what it changed.
func (w *fakeWorld) act(do func(repo *hostRepo) error) {
	w.t.Helper()
	w.fake.mu.Lock()
	defer w.fake.mu.Unlock()
	repo, err := w.fake.repo(w.ref)
	if err == nil {
		err = do(repo)
	}
	if err != nil {
		w.t.Fatalf("acting on %s: %v", w.ref, err)
	}
	repo.notice(w.fake.now())
}

func (w *fakeWorld) actPR(number int, do func(repo *hostRepo, pr *hostPR) error) {
	w.t.Helper()
	w.act(func(repo *hostRepo) error {
		pr, err := w.fake.pr(w.ref, number)
		if err != nil {
			return err
		}
		return do(repo, pr)
	})
}

func (w *fakeWorld) Provider() gitprovider.Provider { return w.fake }

func (w *fakeWorld) Ref() gitprovider.RepoRef { return w.ref }

func (w *fakeWorld) Push(branch string, files ...File) (commit string) {
	w.t.Helper()
	w.act(func(repo *hostRepo) error {
		commit = repo.write(branch, "pushed", files)
		return nil
	})
	return commit
}

func (w *fakeWorld) DeleteBranch(branch string) {
	w.t.Helper()
	w.act(func(repo *hostRepo) error {
		if repo.branches[branch] == "" {
			return fmt.Errorf("there is no branch %s", branch)
		}
		delete(repo.branches, branch)
		return nil
	})
}

func (w *fakeWorld) Merge(number int) {
	w.t.Helper()
	w.actPR(number, func(repo *hostRepo, pr *hostPR) error {
		base := repo.branches[pr.Base]
		files, ok := repo.merge(base, pr.HeadCommit)
		if !ok || pr.State != gitprovider.StateOpen {
			return fmt.Errorf("pull request #%d cannot be merged", number)
		}
		repo.branches[pr.Base] = repo.add(&hostCommit{parents: []string{base, pr.HeadCommit}, files: files, message: "merge"})
		return nil
	})
}

func (w *fakeWorld) Close(number int) {
	w.t.Helper()
	w.actPR(number, func(_ *hostRepo, pr *hostPR) error {
		if pr.State != gitprovider.StateOpen {
			return fmt.Errorf("pull request #%d is not open", number)
		}
		pr.State, pr.ClosedAt = gitprovider.StateClosed, w.fake.now()
		return nil
	})
}

func (w *fakeWorld) Review(number int, author string, state gitprovider.ReviewState, body string) {
	w.t.Helper()
	w.actPR(number, func(_ *hostRepo, pr *hostPR) error {
		review := gitprovider.Review{Author: author, State: state, Body: body}
		if state != gitprovider.ReviewPending {
			review.SubmittedAt = w.fake.now()
		}
		pr.reviews = append(pr.reviews, review)
		return nil
	})
}

func (w *fakeWorld) OpenPR(head, title string, labels ...string) (number int) {
	w.t.Helper()
	w.act(func(repo *hostRepo) error {
		pr, err := w.fake.openPR(repo, gitprovider.PullRequestSpec{
			Repo: w.ref, Base: repo.head, Head: head, Title: title, Labels: labels,
		})
		number = pr.Number
		return err
	})
	return number
}

func (w *fakeWorld) SetBody(number int, body string) {
	w.t.Helper()
	w.actPR(number, func(_ *hostRepo, pr *hostPR) error {
		pr.Body = body
		return nil
	})
}

func (w *fakeWorld) Branches() (out map[string]string) {
	w.act(func(repo *hostRepo) error {
		out = maps.Clone(repo.branches)
		return nil
	})
	return out
}

func (w *fakeWorld) Files(commit string) (out []File) {
	w.act(func(repo *hostRepo) error {
		out = slices.SortedFunc(maps.Values(repo.tree(commit)),
			func(a, b File) int { return strings.Compare(a.Path, b.Path) })
		return nil
	})
	return out
}

func (w *fakeWorld) Parents(commit string) (out []string) {
	w.commit(commit, func(c *hostCommit) { out = slices.Clone(c.parents) })
	return out
}

func (w *fakeWorld) Message(commit string) (out string) {
	w.commit(commit, func(c *hostCommit) { out = c.message })
	return out
}

func (w *fakeWorld) commit(id string, do func(*hostCommit)) {
	w.t.Helper()
	w.act(func(repo *hostRepo) error {
		c := repo.commits[id]
		if c == nil {
			return fmt.Errorf("there is no commit %s", id)
		}
		do(c)
		return nil
	})
}
