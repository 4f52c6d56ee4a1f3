package forgetest

import (
	"context"
	"slices"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/forgetest/memhost"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Bot is who the Fake's own comments are by.
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
		repo.Notice(f.host.Now())
		return nil
	})
	return made, err
}

// SetText implements gitprovider.Editor.
func (f *Fake) SetText(ctx context.Context, ref gitprovider.RepoRef, number int, title, body string) error {
	return f.Script.call(ctx, MethodSetText, func() error {
		pr, err := f.pr(ref, number)
		if err != nil {
			return err
		}
		if title != "" {
			pr.Title = title
		}
		pr.Body = body
		return nil
	})
}

// Comment implements gitprovider.Reviser.
func (f *Fake) Comment(ctx context.Context, ref gitprovider.RepoRef, number int, text string) error {
	return f.Script.call(ctx, MethodComment, func() error {
		pr, err := f.pr(ref, number)
		if err == nil {
			pr.Comments = append(pr.Comments, gitprovider.Remark{Author: Bot, Body: text, At: f.host.Now()})
		}
		return err
	})
}

// Remarks implements gitprovider.RemarkReader. Everybody but memhost.Stranger may write.
func (f *Fake) Remarks(ctx context.Context, ref gitprovider.RepoRef, number int) (out []gitprovider.Remark, err error) {
	err = f.Script.call(ctx, MethodRemarks, func() error {
		pr, err := f.pr(ref, number)
		if err == nil {
			out = remarksOf(pr)
		}
		return err
	})
	return out, err
}

// remarksOf lists what people said, oldest first.
func remarksOf(pr *memhost.PR) []gitprovider.Remark {
	out := slices.Clone(pr.Comments)
	for _, r := range pr.Reviews {
		if !r.SubmittedAt.IsZero() {
			out = append(out, gitprovider.Remark{Author: r.Author, Body: r.Body, At: r.SubmittedAt, State: r.State})
		}
	}
	for i := range out {
		out[i].MayWrite = out[i].Author != memhost.Stranger
	}
	slices.SortStableFunc(out, func(a, b gitprovider.Remark) int { return a.At.Compare(b.At) })
	return out
}
