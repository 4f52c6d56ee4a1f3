package gitea

import (
	"slices"
	"strconv"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// pullRequest returns a pull request as the API gives it, in our terms and without its paths. noticed is when a head
// branch was found gone that the server has not closed the pull request for yet.
func pullRequest(from *gitea.PullRequest, noticed time.Time) gitprovider.PullRequest {
	pr := gitprovider.PullRequest{
		Number: int(from.Index), Title: from.Title, Body: from.Body, URL: from.HTMLURL, Branch: headBranch(from),
		State: gitprovider.StateOpen, Labels: labelNames(from.Labels), CreatedAt: timeOf(from.Created), Fork: fromFork(from),
	}
	if from.Poster != nil {
		pr.Author = from.Poster.UserName
	}
	if from.Head != nil {
		pr.HeadCommit = from.Head.Sha
	}
	if from.Base != nil {
		pr.Base = from.Base.Ref
		pr.RepoID = repoID(from.Base.RepoID)
		pr.Archived = from.Base.Repository != nil && from.Base.Repository.Archived
	}
	switch {
	case from.HasMerged:
		pr.State, pr.ClosedAt = gitprovider.StateMerged, timeOf(from.Merged)
		if pr.ClosedAt.IsZero() {
			pr.ClosedAt = timeOf(from.Closed)
		}
	case from.State == gitea.StateClosed:
		pr.State, pr.ClosedAt = gitprovider.StateClosed, timeOf(from.Closed)
	case headGone(from):
		pr.State, pr.ClosedAt = gitprovider.StateClosed, noticed.UTC().Truncate(time.Second)
	}
	return pr
}

// repoID returns a repository's id in the port's terms.
func repoID(id int64) string {
	if id <= 0 {
		return ""
	}
	return strconv.FormatInt(id, 10)
}

// headBranch returns the name of the head branch: the label, since ref turns into refs/pull/N/head once the branch is
// gone. The label of a pull request from a fork does not name the fork; here it is prefixed, so that a stranger's
// branch never looks like one of ours.
func headBranch(pr *gitea.PullRequest) string {
	if pr.Head == nil {
		return ""
	}
	if fromFork(pr) {
		return forkOwner(pr) + ":" + pr.Head.Name
	}
	return pr.Head.Name
}

// fromFork returns true as well when the fork does not exist any more.
func fromFork(pr *gitea.PullRequest) bool {
	return pr.Base == nil || pr.Head == nil || pr.Head.RepoID != pr.Base.RepoID
}

func forkOwner(pr *gitea.PullRequest) string {
	switch {
	case pr.Head.Repository != nil && pr.Head.Repository.Owner != nil:
		return pr.Head.Repository.Owner.UserName
	case pr.Poster != nil:
		return pr.Poster.UserName
	}
	return "fork"
}

// headGone reports whether the head branch of a pull request was deleted. The server closes such a pull request about a
// second later. Ones without a branch from the start (pushed to refs/for, AGit) have no label.
func headGone(pr *gitea.PullRequest) bool {
	return pr.Head != nil && pr.Head.Name != "" && pr.Head.Ref == "refs/pull/"+strconv.FormatInt(pr.Index, 10)+"/head"
}

// labelNames returns the names sorted and without repetition: label names need not be unique, and their order differs
// between answers.
func labelNames(labels []*gitea.Label) []string {
	var names []string
	for _, l := range withoutNulls(slices.Clone(labels)) {
		names = append(names, l.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
