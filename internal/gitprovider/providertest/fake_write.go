package providertest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Commit implements gitprovider.Provider.
func (f *Fake) Commit(ctx context.Context, req gitprovider.CommitRequest) (made gitprovider.Commit, err error) {
	err = f.call(ctx, MethodCommit, func() error {
		if req.Snapshot == nil || req.Changes.Len() == 0 || !strings.HasPrefix(req.Branch, gitprovider.BranchPrefix) {
			return fault.New(fault.InvalidArgument, "a commit needs a snapshot, an approved file and a branch of ours")
		}
		repo, err := f.repo(req.Snapshot.Repo)
		if err != nil {
			return err
		}
		if repo.archived {
			return fault.New(fault.UpstreamError, "the repository %s is archived and takes no writes", repo.ref)
		}
		if err := repo.mayCommit(req); err != nil {
			return err
		}
		c := &hostCommit{parents: []string{req.Snapshot.BaseCommit}, message: req.Message}
		if c.files, err = repo.apply(req); err != nil {
			return err
		}
		made = gitprovider.Commit{ID: repo.add(c), Branch: req.Branch}
		repo.branches[req.Branch] = made.ID
		repo.notice(f.now())
		return nil
	})
	return made, err
}

func (r *hostRepo) mayCommit(req gitprovider.CommitRequest) error {
	if r.branches[req.Snapshot.Base] != req.Snapshot.BaseCommit {
		return fault.New(fault.Conflict, "the base branch %s has moved since it was read", req.Snapshot.Base)
	}
	for branch := range r.branches {
		if branch == req.Branch || strings.HasPrefix(branch, req.Branch+"/") || strings.HasPrefix(req.Branch, branch+"/") {
			return fault.New(fault.Conflict, "the branch %s is in the way", branch)
		}
	}
	return nil
}

// apply gives the files of the base with the changes made.
func (r *hostRepo) apply(req gitprovider.CommitRequest) (map[string]File, error) {
	files := maps.Clone(r.tree(req.Snapshot.BaseCommit))
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
			files[path] = File{Path: path, Kind: gitprovider.KindFile, Executable: have.Executable, Content: c.Content}
		}
	}
	return files, nil
}

// OpenPullRequest implements gitprovider.Provider.
func (f *Fake) OpenPullRequest(ctx context.Context, spec gitprovider.PullRequestSpec) (pr gitprovider.PullRequest,
	err error) {
	err = f.call(ctx, MethodOpenPullRequest, func() error {
		repo, err := f.repo(spec.Repo)
		if err != nil {
			return err
		}
		pr, err = f.openPR(repo, spec)
		return err
	})
	if err != nil {
		return gitprovider.PullRequest{}, err
	}
	return pr, nil
}

// openPR records a pull request. The caller holds the lock.
func (f *Fake) openPR(repo *hostRepo, spec gitprovider.PullRequestSpec) (gitprovider.PullRequest, error) {
	for _, pr := range repo.prs {
		if pr.State == gitprovider.StateOpen && pr.Branch == spec.Head && pr.Base == spec.Base {
			return pr.copy(), nil
		}
	}
	base, head := repo.branches[spec.Base], repo.branches[spec.Head]
	switch {
	case base == "" || head == "":
		return gitprovider.PullRequest{}, fault.New(fault.NotFound, "the branch %s or %s does not exist", spec.Head,
			spec.Base)
	case repo.contains(base, head):
		return gitprovider.PullRequest{}, fault.New(fault.NoChange, "the branch %s holds nothing new", spec.Head)
	}
	number := len(repo.prs) + 1
	pr := &hostPR{checks: gitprovider.Checks{State: gitprovider.ChecksNone}}
	pr.PullRequest = gitprovider.PullRequest{
		Number: number, Title: spec.Title, Body: spec.Body, Branch: spec.Head, HeadCommit: head, Base: spec.Base,
		URL:   fmt.Sprintf("https://fake.example/%s/pulls/%d", repo.ref, number),
		State: gitprovider.StateOpen, Labels: withLabels(nil, spec.Labels), CreatedAt: f.now(), Paths: repo.changed(spec.Base,
			head),
	}
	repo.prs = append(repo.prs, pr)
	return pr.copy(), nil
}

func withLabels(have, more []string) []string {
	for _, label := range more {
		if !slices.Contains(have, label) {
			have = append(have, label)
		}
	}
	return have
}

// Label implements gitprovider.Provider.
func (f *Fake) Label(ctx context.Context, ref gitprovider.RepoRef, number int, labels []string) error {
	return f.call(ctx, MethodLabel, func() error {
		pr, err := f.pr(ref, number)
		if err == nil {
			pr.Labels = withLabels(pr.Labels, labels)
		}
		return err
	})
}

// DeleteBranch implements gitprovider.Provider.
func (f *Fake) DeleteBranch(ctx context.Context, ref gitprovider.RepoRef, branch, tip string) error {
	return f.call(ctx, MethodDeleteBranch, func() error {
		if !strings.HasPrefix(branch, gitprovider.BranchPrefix) {
			return fault.New(fault.InvalidArgument, "the branch %s is not one of ours", branch)
		}
		repo, err := f.repo(ref)
		if err != nil {
			return err
		}
		have := repo.branches[branch]
		if have != "" && have != tip {
			return fault.New(fault.Conflict, "the branch %s has moved since", branch)
		}
		delete(repo.branches, branch)
		repo.notice(f.now())
		return nil
	})
}
