package gitea

import (
	"context"
	"strings"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// statusReader reads one pull request with its reviews and checks.
type statusReader struct {
	api        *api
	pulls      pulls
	discussion discussion
	sleep      func(context.Context, time.Duration)
}

func (s statusReader) readStatus(ctx context.Context, repo gitprovider.RepoRef, number int) (gitprovider.Status,
	error) {
	var out gitprovider.Status
	from, reviews, err := s.discussion.withReviews(ctx, repo, number)
	if err == nil {
		from, err = forge.Settled(ctx, from, inTransit, settlingStep, s.sleep, func() (*gitea.PullRequest, error) {
			return s.pulls.readPull(ctx, repo, number)
		})
	}
	if err != nil {
		return out, err
	}
	out.PullRequest = s.pulls.convert(from)
	if out.State == gitprovider.StateMerged && from.MergedBy != nil {
		out.MergedBy = from.MergedBy.UserName
	}
	var comments []gitprovider.Remark
	err = forge.Together(
		func() (err error) {
			if from.Comments > 0 {
				comments, err = s.discussion.conversation(ctx, repo, number)
			}
			return err
		},
		forge.Into(&out.Paths, func() ([]string, error) { return s.pulls.files.readChangedFiles(ctx, repo, from) }),
		forge.Into(&out.Checks, func() (gitprovider.Checks, error) { return s.api.checks(ctx, repo, out.HeadCommit) }),
		func() error { return s.discussion.readLines(ctx, repo, number, reviews) },
	)
	out.Reviews = gitprovider.AndConversation(plainReviews(reviews), comments)
	if out.State == gitprovider.StateOpen {
		out.Mergeable = &from.Mergeable
	}
	return out, err
}

// settlingStep is the first pause before the server is asked again for what it may still be working on; see
// forge.Settled.
const settlingStep = 500 * time.Millisecond

// inTransit reports whether the server may say otherwise in a moment. Gitea has no word for "still computing": it
// answers that a pull request cannot be merged, for half a second to two seconds after the base has moved. So that
// answer is looked at again a few times, and is believed when it stays; drafts can never be merged. Up to two seconds
// before, the answer is the one from before the base moved: nothing shows that. In the same way a pull request whose
// head branch is gone is looked at again until the server has closed it.
func inTransit(pr *gitea.PullRequest) bool {
	if pr.HasMerged || pr.State != gitea.StateOpen {
		return false
	}
	return headGone(pr) || !pr.Mergeable && !isDraft(pr)
}

// isDraft goes by the title as well, for servers that do not show the field.
func isDraft(pr *gitea.PullRequest) bool {
	title := strings.ToUpper(pr.Title)
	return pr.Draft || strings.HasPrefix(title, "WIP:") || strings.HasPrefix(title, "[WIP]")
}

// checks combines the newest status of each context on a commit. The server's own combination covers one page, so every
// page is read and combined here: a failure or an error fails, else anything unfinished or unknown is pending.
func (a *api) checks(ctx context.Context, repo gitprovider.RepoRef, commit string) (gitprovider.Checks, error) {
	none := gitprovider.Checks{State: gitprovider.ChecksNone}
	if commit == "" {
		return none, nil
	}
	read := pageReader[*gitea.Status](func(ctx context.Context, number int) (page[*gitea.Status], error) {
		var combined gitea.CombinedStatus
		header, err := a.get(ctx, a.repoURL(repo, "commits", commit, "status"), atPage(number), &combined)
		return page[*gitea.Status]{items: withoutNulls(combined.Statuses), total: totalOf(header)}, err
	})
	statuses, _, err := read.all(ctx)
	switch {
	case isMissing(err): // the commit of a pull request whose fork is gone
		return none, nil
	case err != nil:
		return gitprovider.Checks{}, err
	}
	state, failing := gitprovider.ChecksNone, []gitprovider.FailedCheck(nil)
	for _, s := range statuses {
		switch s.State {
		case gitea.StatusFailure, gitea.StatusError:
			failing = append(failing, gitprovider.FailedCheck{Name: s.Context, Summary: s.Description, URL: s.TargetURL})
		case gitea.StatusSuccess, gitea.StatusWarning, "skipped":
			if state == gitprovider.ChecksNone {
				state = gitprovider.ChecksSuccess
			}
		default:
			state = gitprovider.ChecksPending
		}
	}
	return forge.Checks(state, failing), nil
}
