package forgetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

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

// Bot is the author of the Fake's own comments.
const Bot = "claude-ops-bot"

// Append implements gitprovider.Reviser.
func (f *Fake) Append(ctx context.Context, req gitprovider.CommitRequest) (made gitprovider.Commit, err error) {
	err = f.Script.call(ctx, MethodAppend, func() error {
		if err := req.CheckAppend(); err != nil {
			return err
		}
		repo, err := f.repo(req.Snapshot.Repo)
		if err != nil {
			return err
		}
		switch tip := repo.Branches[req.Branch]; {
		case repo.Archived:
			return fault.New(fault.UpstreamError, "the repository %s is archived and takes no writes", repo.Ref)
		case tip == "":
			return fault.New(fault.NotFound, "there is no branch %s", req.Branch)
		case tip != req.Snapshot.BaseCommit:
			return fault.New(fault.Conflict, "the branch %s has moved", req.Branch)
		}
		c := &memhost.Commit{Parents: []string{req.Snapshot.BaseCommit}, Message: req.Message, Time: req.Time}
		if c.Files, err = apply(repo, req); err != nil {
			return err
		}
		made = gitprovider.Commit{ID: repo.Add(c), Branch: req.Branch, Parent: req.Snapshot.BaseCommit}
		repo.Branches[req.Branch] = made.ID
		for _, pr := range repo.PRs {
			if pr.Branch == req.Branch { // CI has said nothing of the new commit
				pr.Checks = gitprovider.Checks{State: gitprovider.ChecksNone}
			}
		}
		repo.Notice(f.host.Now())
		return nil
	})
	return made, err
}

// Checks implements gitprovider.CheckReader.
func (f *Fake) Checks(ctx context.Context, ref gitprovider.RepoRef, number int, head string) (checks gitprovider.Checks,
	err error) {
	err = f.Script.call(ctx, MethodChecks, func() error {
		pr, err := pullOf(f, ref, number)
		if err != nil {
			return err
		}
		if checks.State = gitprovider.ChecksNone; pr.HeadCommit == head {
			checks = pr.Checks
		}
		return nil
	})
	return checks, err
}

// SetText implements gitprovider.Editor.
func (f *Fake) SetText(ctx context.Context, ref gitprovider.RepoRef, number int,
	title, body string) (state gitprovider.State, err error) {
	err = f.Script.call(ctx, MethodSetText, func() error {
		pr, err := pullOf(f, ref, number)
		if err != nil {
			return err
		}
		if title != "" {
			pr.Title = title
		}
		pr.Body, state = body, pr.State
		return nil
	})
	return state, err
}

// Comment implements gitprovider.Reviser.
func (f *Fake) Comment(ctx context.Context, ref gitprovider.RepoRef, number int, text string) error {
	return f.Script.call(ctx, MethodComment, func() error {
		pr, err := pullOf(f, ref, number)
		if err == nil {
			pr.Comments = append(pr.Comments, gitprovider.Remark{Author: Bot, Body: text, At: f.host.Now()})
		}
		return err
	})
}

// Reply implements gitprovider.Replier: each is a review of its own, as on GitHub.
func (f *Fake) Reply(ctx context.Context, ref gitprovider.RepoRef, number int, replies []gitprovider.LineReply) error {
	return f.Script.call(ctx, MethodReply, func() error {
		pr, err := pullOf(f, ref, number)
		for _, r := range replies {
			if err != nil {
				break
			}
			pr.Reviews = append(pr.Reviews, gitprovider.Review{
				Author: Bot, State: gitprovider.ReviewCommented, SubmittedAt: f.host.Now(),
				Comments: []gitprovider.LineComment{{Path: r.To.Path, Line: r.To.Line, Before: r.To.Before, Commit: r.To.Commit,
					Body: r.Text}},
			})
		}
		return err
	})
}

// Remarks implements gitprovider.RemarkReader. Everybody but memhost.Stranger may write.
func (f *Fake) Remarks(ctx context.Context, ref gitprovider.RepoRef, number int) (out []gitprovider.Remark, err error) {
	err = f.Script.call(ctx, MethodRemarks, func() error {
		pr, err := pullOf(f, ref, number)
		if err == nil {
			out = remarksOf(pr)
		}
		return err
	})
	return out, err
}

// remarksOf lists what people said, oldest first.
func remarksOf(pr *memhost.PR) (out []gitprovider.Remark) {
	for i, c := range pr.Comments {
		c.ID = fmt.Sprint("comment ", i)
		out = append(out, c)
	}
	for i, r := range pr.Reviews {
		if !r.SubmittedAt.IsZero() {
			out = append(out, gitprovider.ReviewRemarks(fmt.Sprint("review ", i), withIDs(i, r))...)
		}
	}
	for i := range out {
		out[i].MayWrite = out[i].Author != memhost.Stranger
	}
	slices.SortStableFunc(out, func(a, b gitprovider.Remark) int { return a.At.Compare(b.At) })
	return out
}

// withIDs returns the review at a place with ids of its comments.
func withIDs(at int, r gitprovider.Review) gitprovider.Review {
	r.Comments = slices.Clone(r.Comments)
	for n := range r.Comments {
		if r.Comments[n].ID == "" {
			r.Comments[n].ID = fmt.Sprintf("%d.%d", at+1, n+1)
		}
	}
	return r
}

func withAllIDs(reviews []gitprovider.Review) []gitprovider.Review {
	out := slices.Clone(reviews)
	for i, r := range reviews {
		out[i] = withIDs(i, r)
	}
	return out
}

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

// Close implements gitprovider.Provider.
func (f *Fake) Close(ctx context.Context, ref gitprovider.RepoRef, c gitprovider.Closing) (state gitprovider.State,
	err error) {
	err = f.Script.call(ctx, MethodClose, func() error {
		pr, err := pullOf(f, ref, c.Number)
		if err != nil {
			return err
		}
		ended, err := c.Check(pr.Copy())
		if state = ended; err != nil || ended != "" {
			return err
		}
		pr.State, pr.ClosedAt, pr.Body = gitprovider.StateClosed, f.host.Now(), c.Body
		state = pr.State
		return nil
	})
	return state, err
}

// lastNumber returns the number of the newest pull request.
func lastNumber(repo *memhost.Repo) int { return len(repo.PRs) }
