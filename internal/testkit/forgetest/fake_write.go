package forgetest

import (
	"context"
	"maps"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// Commit implements gitprovider.Provider.
func (f *Fake) Commit(ctx context.Context, req gitprovider.CommitRequest) (made gitprovider.Commit, err error) {
	err = f.Script.call(ctx, MethodCommit, func() error {
		if req.Snapshot == nil || req.Changes.Len() == 0 || !strings.HasPrefix(req.Branch, gitprovider.BranchPrefix) {
			return fault.New(fault.InvalidArgument, "a commit needs a snapshot, an approved file and a branch of ours")
		}
		repo, err := f.repo(req.Snapshot.Repo)
		if err != nil {
			return err
		}
		if repo.Archived {
			return fault.New(fault.UpstreamError, "the repository %s is archived and takes no writes", repo.Ref)
		}
		if err := mayCommit(repo, req); err != nil {
			return err
		}
		c := &memhost.Commit{Parents: []string{req.Snapshot.BaseCommit}, Message: req.Message, Time: req.Time}
		if c.Files, err = apply(repo, req); err != nil {
			return err
		}
		made = gitprovider.Commit{ID: repo.Add(c), Branch: req.Branch}
		repo.Branches[req.Branch] = made.ID
		repo.Notice(f.host.Now())
		return nil
	})
	return made, err
}

func mayCommit(r *memhost.Repo, req gitprovider.CommitRequest) error {
	if r.Branches[req.Snapshot.Base] != req.Snapshot.BaseCommit {
		return fault.New(fault.Conflict, "the base branch %s has moved since it was read", req.Snapshot.Base)
	}
	for branch := range r.Branches {
		if branch == req.Branch || strings.HasPrefix(branch, req.Branch+"/") || strings.HasPrefix(req.Branch, branch+"/") {
			return fault.New(fault.Conflict, "the branch %s is in the way", branch)
		}
	}
	return nil
}

// apply gives the files of the base with the changes made.
func apply(r *memhost.Repo, req gitprovider.CommitRequest) (map[string]providertest.File, error) {
	files := maps.Clone(r.Tree(req.Snapshot.BaseCommit))
	for _, c := range req.Changes.Changes() {
		path := c.Path.String()
		have, exists := files[path]
		switch {
		case exists == (c.Action == gitprovider.ActionCreate):
			return nil, fault.New(fault.Conflict, "the file %s is missing, or exists already", path)
		case exists && have.Kind != gitprovider.KindFile:
			return nil, fault.New(fault.Conflict, "%s is not a regular file", path)
		case c.Action == gitprovider.ActionUpdate && have.Content == c.Content:
			return nil, fault.New(fault.NoChange, "the file %s has this content already", path)
		case c.Action == gitprovider.ActionDelete:
			delete(files, path)
		default:
			files[path] = providertest.File{Path: path, Kind: gitprovider.KindFile, Executable: have.Executable,
				Content: c.Content}
		}
	}
	return files, nil
}

// OpenPullRequest implements gitprovider.Provider.
func (f *Fake) OpenPullRequest(ctx context.Context, spec gitprovider.PullRequestSpec) (pr gitprovider.PullRequest,
	err error) {
	err = f.Script.call(ctx, MethodOpenPullRequest, func() error {
		repo, err := f.repo(spec.Repo)
		if err != nil {
			return err
		}
		pr, err = openPR(f, repo, spec)
		return err
	})
	if err != nil {
		return gitprovider.PullRequest{}, err
	}
	return pr, nil
}

// openPR records a pull request. The caller holds the lock.
func openPR(f *Fake, repo *memhost.Repo, spec gitprovider.PullRequestSpec) (gitprovider.PullRequest, error) {
	for _, pr := range repo.PRs {
		if pr.State == gitprovider.StateOpen && pr.Branch == spec.Head && pr.Base == spec.Base {
			return pr.Copy(), nil
		}
	}
	base, head := repo.Branches[spec.Base], repo.Branches[spec.Head]
	switch {
	case base == "" || head == "":
		return gitprovider.PullRequest{}, fault.New(fault.NotFound, "the branch %s or %s does not exist", spec.Head,
			spec.Base)
	case repo.Contains(base, head):
		return gitprovider.PullRequest{}, fault.New(fault.NoChange, "the branch %s holds nothing new", spec.Head)
	}
	return f.host.Open(repo, spec).Copy(), nil
}

// Label implements gitprovider.Provider.
func (f *Fake) Label(ctx context.Context, ref gitprovider.RepoRef, number int, labels []string) error {
	return f.Script.call(ctx, MethodLabel, func() error {
		pr, err := pullOf(f, ref, number)
		if err == nil {
			pr.AddLabels(labels...)
		}
		return err
	})
}

// DeleteBranch implements gitprovider.Provider.
func (f *Fake) DeleteBranch(ctx context.Context, ref gitprovider.RepoRef, branch, tip string) error {
	return f.Script.call(ctx, MethodDeleteBranch, func() error {
		if !strings.HasPrefix(branch, gitprovider.BranchPrefix) {
			return fault.New(fault.InvalidArgument, "the branch %s is not one of ours", branch)
		}
		repo, err := f.repo(ref)
		if err != nil {
			return err
		}
		have := repo.Branches[branch]
		if have != "" && have != tip {
			return fault.New(fault.Conflict, "the branch %s has moved since", branch)
		}
		delete(repo.Branches, branch)
		repo.Notice(f.host.Now())
		return nil
	})
}
