package forgetest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// SetLateness changes what Lateness answers; at first it is 0.
func (f *Fake) SetLateness(d time.Duration) { f.host.Locked(func() { f.lateness = d }) }

// Lateness implements gitprovider.Settler.
func (f *Fake) Lateness() (d time.Duration) {
	f.host.Locked(func() { d = f.lateness })
	return d
}

// OurBranches implements gitprovider.Settler.
func (f *Fake) OurBranches(ctx context.Context, ref gitprovider.RepoRef) (tips map[string]string, err error) {
	err = f.Script.call(ctx, MethodOurBranches, func() error {
		repo, err := f.repo(ref)
		if err == nil {
			tips = maps.Clone(repo.Branches)
			maps.DeleteFunc(tips, func(branch, _ string) bool { return !strings.HasPrefix(branch, gitprovider.BranchPrefix) })
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return tips, nil
}

// OpenOurs implements gitprovider.Settler.
func (f *Fake) OpenOurs(ctx context.Context, ref gitprovider.RepoRef, below int) (prs []gitprovider.PullRequest,
	err error) {
	err = f.Script.call(ctx, MethodOpenOurs, func() error {
		repo, err := f.repo(ref)
		if err == nil {
			prs = repo.List(func(pr *memhost.PR) bool {
				return isOurs(pr) && pr.State == gitprovider.StateOpen &&
					pr.Number < below
			})
		}
		return err
	})
	return prs, err
}

// ReadBlob implements gitprovider.BlobReader.
func (f *Fake) ReadBlob(ctx context.Context, ref gitprovider.RepoRef, id string) (content []byte, err error) {
	err = f.Script.call(ctx, MethodReadBlob, func() error {
		repo, err := f.repo(ref)
		if err != nil {
			return err
		}
		text, found := repo.Blob(id)
		if !found {
			return fault.New(fault.NotFound, "there is no blob %s", id)
		}
		if content = []byte(text); len(content) > gitprovider.MaxContentRead {
			return gitprovider.BlobTooLarge(id)
		}
		return nil
	})
	return content, err
}

// ListFiles implements gitprovider.FileLister.
func (f *Fake) ListFiles(ctx context.Context, at *gitprovider.Snapshot, folder string) (files []gitprovider.ListedFile,
	complete bool, err error) {
	err = f.Script.call(ctx, MethodListFiles, func() error {
		repo, err := f.repo(at.Repo)
		if err != nil {
			return err
		}
		for path, file := range repo.Tree(at.BaseCommit) {
			if file.Kind == gitprovider.KindFile && (folder == "" || strings.HasPrefix(path, folder+"/")) {
				files = append(files, gitprovider.ListedFile{Path: path, Size: int64(len(file.Content)),
					ID: gitprovider.BlobID([]byte(file.Content), at.BaseCommit)})
			}
		}
		files, complete = gitprovider.SortListed(files)
		return nil
	})
	return files, complete, err
}

// ReadCommit implements gitprovider.Settler.
func (f *Fake) ReadCommit(ctx context.Context, ref gitprovider.RepoRef, id string) (info gitprovider.CommitInfo,
	err error) {
	err = f.Script.call(ctx, MethodReadCommit, func() error {
		repo, err := f.repo(ref)
		if err != nil {
			return err
		}
		c := repo.Commits[id]
		if c == nil {
			return fault.New(fault.NotFound, "%s has no commit %s", ref, id)
		}
		parent := ""
		if len(c.Parents) > 0 {
			parent = c.Parents[0]
		}
		info = gitprovider.CommitInfo{
			ID: id, Parents: slices.Clone(c.Parents), Message: c.Message, Author: "somebody", Time: c.Time,
			Paths: repo.Differing(parent, id),
		}
		return nil
	})
	return info, err
}

// Withdraw implements gitprovider.Settler.
func (f *Fake) Withdraw(ctx context.Context, ref gitprovider.RepoRef, w gitprovider.Withdrawal) error {
	return f.Script.call(ctx, MethodWithdraw, func() error {
		pr, err := pullOf(f, ref, w.Number)
		if err != nil {
			return err
		}
		if err := w.Check(pr.Copy()); err != nil {
			return err
		}
		if pr.State == gitprovider.StateOpen {
			pr.State, pr.ClosedAt = gitprovider.StateClosed, f.host.Now()
		}
		pr.Body = w.Body
		return nil
	})
}

// lastNumber returns the number of the newest pull request.
func lastNumber(repo *memhost.Repo) int { return len(repo.PRs) }
