package forgetest

import (
	"context"
	"fmt"
	"slices"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

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
