package gitea

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// listAttempts limits how often a list is read that changes while it is read.
const listAttempts = 3

// clockMargin is how much earlier than a reading a pull request must have been opened to count as opened before it. The
// server's times are in seconds, and those of its answers may come from another machine.
const clockMargin = time.Minute

// pulls reads pull requests.
type pulls struct {
	api    *api
	files  changedFiles
	labels *labelIDs
	now    func() time.Time

	reviews reviewNumbers
}

// pullName names a pull request in messages.
func pullName(number int) string { return "pull request #" + strconv.Itoa(number) }

// convert gives a pull request in our terms, without its paths.
func (p pulls) convert(from *gitea.PullRequest) gitprovider.PullRequest {
	return pullRequest(from, p.now())
}

// withPaths converts pull requests and fills in the files that they change.
func (p pulls) withPaths(ctx context.Context, repo gitprovider.RepoRef,
	from []*gitea.PullRequest) ([]gitprovider.PullRequest,
	error) {
	paths, err := p.files.readAll(ctx, repo, from)
	if err != nil {
		return nil, err
	}
	out := make([]gitprovider.PullRequest, len(from))
	for i, pr := range from {
		out[i] = p.convert(pr)
		out[i].Paths = paths[i]
	}
	return out, nil
}

// readPull reads one pull request.
func (p pulls) readPull(ctx context.Context, repo gitprovider.RepoRef, number int) (*gitea.PullRequest, error) {
	pr, err := callSDK(ctx, p.api, func(c *gitea.Client) (*gitea.PullRequest, *gitea.Response, error) {
		return c.GetPullRequest(repo.Owner, repo.Name, int64(number))
	})
	if err == nil && pr.Index != int64(number) {
		return nil, p.api.wrongAnswer(pullName(number), repo)
	}
	return pr, err
}

// listPulls reads pull requests. No filter by label is ever sent: the server drops names that it does not know, and
// without a known one lists everything.
func (p pulls) listPulls(repo gitprovider.RepoRef, state gitea.StateType, sort string) pageReader[*gitea.PullRequest] {
	return func(ctx context.Context, number int) (page[*gitea.PullRequest], error) {
		query := atPage(number)
		query.Set("state", string(state))
		query.Set("sort", sort)
		var from []*listedPull
		header, err := p.api.get(ctx, p.api.repoURL(repo, "pulls"), query, &from)
		out := page[*gitea.PullRequest]{total: totalOf(header)}
		out.date, _ = http.ParseTime(header.Get("Date"))
		for _, one := range withoutNulls(from) {
			out.items = append(out.items, one.pullRequest())
		}
		p.labels.learn(repo, out.items...)
		return out, err
	}
}

// listedPull is a pull request of a list. The SDK does not tell a missing number of reviews from none.
type listedPull struct {
	gitea.PullRequest
	Reviews *int `json:"review_comments"` // submitted ones, with comments or without; nil from servers that do not tell
}

// unknownReviews stands for a number of reviews that the server did not tell.
const unknownReviews = -1

func (l *listedPull) pullRequest() *gitea.PullRequest {
	l.ReviewComments = unknownReviews
	if l.Reviews != nil {
		l.ReviewComments = *l.Reviews
	}
	return &l.PullRequest
}

// readOpenPulls reads every open pull request, oldest first. Pages are cut by position, so one that is closed in
// between makes another be skipped; then everything is read again, and the call fails rather than give an incomplete
// list.
func (p pulls) readOpenPulls(ctx context.Context, repo gitprovider.RepoRef) ([]*gitea.PullRequest, error) {
	for range listAttempts {
		prs, settled, err := p.listPulls(repo, gitea.StateOpen, "oldest").all(ctx)
		if err != nil {
			return nil, err
		}
		slices.SortFunc(prs, byNumber)
		distinct := slices.CompactFunc(slices.Clone(prs), func(a, b *gitea.PullRequest) bool { return a.Index == b.Index })
		if settled && len(distinct) == len(prs) {
			return prs, nil
		}
	}
	return nil, fault.New(fault.UpstreamError, "the open pull requests of %s changed each of the %d times that they were "+
		"read; try again", repo, listAttempts)
}

func byNumber(a, b *gitea.PullRequest) int { return int(a.Index - b.Index) }

// openOf gives the open pull requests that are wanted, with their files. One whose head branch is gone is not open.
func (p pulls) openOf(ctx context.Context, repo gitprovider.RepoRef, wanted func(gitprovider.PullRequest) bool) (
	[]gitprovider.PullRequest, error) {
	all, err := p.readOpenPulls(ctx, repo)
	if err != nil {
		return nil, err
	}
	return p.withPaths(ctx, repo, slices.DeleteFunc(all, func(pr *gitea.PullRequest) bool {
		return headGone(pr) || !wanted(p.convert(pr))
	}))
}

// closed reads the pull requests that were closed without merging at since or later. They come by their last update,
// which is never before the closing, so the first older one ends the search. last is the highest number of those that
// were opened before this call, merged ones and those closed before included.
func (p pulls) closed(ctx context.Context, repo gitprovider.RepoRef, since time.Time) (found []*gitea.PullRequest,
	last int,
	err error) {
	if since.IsZero() {
		return nil, 0, nil
	}
	began := p.now()
	var before time.Time // by the server's clock
	read := p.listPulls(repo, gitea.StateClosed, "recentupdate")
	seen := map[int64]bool{}
	for number := 1; number <= maxPages; number++ {
		next, err := read(ctx, number)
		if err != nil {
			return nil, 0, err
		}
		if number == 1 {
			before = next.date.Add(began.Sub(p.now()) - clockMargin)
		}
		for _, pr := range next.items {
			if pr.Created != nil && pr.Created.Before(before) {
				last = max(last, int(pr.Index))
			}
			if !pr.HasMerged && !seen[pr.Index] && !timeOf(pr.Closed).Before(since) {
				found = append(found, pr)
			}
			seen[pr.Index] = true
		}
		end := len(next.items) - 1
		if end < 0 || timeOf(next.items[end].Updated).Before(since) || next.total >= 0 && len(seen) >= next.total {
			slices.SortFunc(found, byNumber)
			return found, last, nil
		}
	}
	return nil, 0, tooLong()
}

// openFor finds the oldest open pull request for a head and a base, or nil. The server's own search by base and head
// gives the oldest in whatever state: nothing, or an open one, settles the question in one request; after a closed one
// the open ones are listed.
func (p pulls) openFor(ctx context.Context, repo gitprovider.RepoRef, base, head string) (*gitea.PullRequest, error) {
	fits := func(pr *gitea.PullRequest) bool {
		return pr.State == gitea.StateOpen && !headGone(pr) && pr.Base != nil && pr.Base.Ref == base && headBranch(pr) == head
	}
	var first gitea.PullRequest
	_, err := p.api.get(ctx, p.api.repoURL(repo, "pulls", base, head), nil, &first)
	switch {
	case isMissing(err):
		return nil, nil
	case err != nil && !lacksRoute(err):
		return nil, err
	case err == nil && fits(&first):
		return &first, nil
	}
	open, err := p.readOpenPulls(ctx, repo)
	if at := slices.IndexFunc(open, fits); at >= 0 { // oldest first
		return open[at], nil
	}
	return nil, err
}

// byHead finds the newest pull request of a branch. There is no search by head in all states, so pull requests are read
// newest first, 50 a request, until the first that fits: one request in nearly every case, since it is asked about
// branches that were made a moment ago. That there is none is known only at the end of the list, whose pages are read
// side by side.
func (p pulls) byHead(ctx context.Context, repo gitprovider.RepoRef, branch string) (*gitprovider.PullRequest, error) {
	read := p.listPulls(repo, gitea.StateAll, "")
	first, err := read(ctx, 1)
	if err != nil {
		return nil, err
	}
	found := newestPull(first.items, branch)
	if found == nil || foundAtTheEnd(first, found) {
		all, _, err := read.remainingPages(ctx, first)
		if err != nil {
			return nil, err
		}
		if found = newestPull(all, branch); found == nil {
			return nil, nil
		}
	}
	prs, err := p.withPaths(ctx, repo, []*gitea.PullRequest{found})
	if err != nil {
		return nil, err
	}
	return &prs[0], nil
}

func newestPull(prs []*gitea.PullRequest, branch string) *gitea.PullRequest {
	var found *gitea.PullRequest
	for _, pr := range prs {
		if headBranch(pr) == branch && (found == nil || pr.Index > found.Index) {
			found = pr
		}
	}
	return found
}

// foundAtTheEnd reports whether a newer one may be on the next page: the order is by the second of the creation.
func foundAtTheEnd(first page[*gitea.PullRequest], found *gitea.PullRequest) bool {
	last := first.items[len(first.items)-1]
	return first.total > len(first.items) && timeOf(last.Created).Equal(timeOf(found.Created))
}

// withdraw looks, and then closes and writes the body in one request.
func (p pulls) withdraw(ctx context.Context, repo gitprovider.RepoRef, w gitprovider.Withdrawal) error {
	from, err := p.readPull(ctx, repo, w.Number)
	if err != nil {
		return err
	}
	fields, err := forge.WithdrawalFields(w, p.convert(from))
	if err != nil {
		return err
	}
	_, err = p.editPull(ctx, repo, w.Number, fields)
	return err
}

// close looks, and then closes and writes the body in one request.
func (p pulls) close(ctx context.Context, repo gitprovider.RepoRef, c gitprovider.Closing) (gitprovider.State, error) {
	from, err := p.readPull(ctx, repo, c.Number)
	if err != nil {
		return "", err
	}
	if ended, err := c.Check(p.convert(from)); err != nil || ended != "" {
		return ended, err
	}
	return p.editPull(ctx, repo, c.Number, forge.ClosingFields(c))
}

// editPull replaces fields of a pull request, and gives its state after that.
func (p pulls) editPull(ctx context.Context, repo gitprovider.RepoRef, number int,
	fields map[string]string) (gitprovider.State, error) {
	var now struct {
		forge.Changed
		MergeBase string `json:"merge_base"`
		Files     int    `json:"changed_files"`
		Head      struct {
			SHA string `json:"sha"`
		} `json:"head"`
	}
	err := p.api.patch(ctx, p.api.repoURL(repo, "pulls", strconv.Itoa(number)), fields, &now)
	if err == nil {
		p.files.appended(ctx, repo, number, now.MergeBase, now.Head.SHA, now.Files)
	}
	return now.PullState(), err
}

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

// listKnown is openOf without files that would cost a request.
func (p pulls) listKnown(ctx context.Context, repo gitprovider.RepoRef, wanted func(gitprovider.PullRequest) bool) (
	out gitprovider.KnownList, err error) {
	all, err := p.readOpenPulls(ctx, repo)
	if err != nil {
		return out, err
	}
	reviewed := p.reviews.mayHaveReview(ctx, all)
	all = slices.DeleteFunc(all, func(pr *gitea.PullRequest) bool { return headGone(pr) || !wanted(p.convert(pr)) })
	files, end := p.files.batched(ctx, repo, all)
	defer end()
	out.EachReview = true
	for _, pr := range all {
		one := p.convert(pr)
		one.Unreviewed = !reviewed(pr)
		paths, known := files.remembered(ctx, repo, pr)
		if one.Paths = paths; !known {
			out.Unread = append(out.Unread, one.Number)
		}
		out.PRs = append(out.PRs, one)
	}
	out.ReadPaths = func(ctx context.Context, numbers []int) (map[int][]string, error) {
		some := slices.DeleteFunc(slices.Clone(all),
			func(pr *gitea.PullRequest) bool { return !slices.Contains(numbers, int(pr.Index)) })
		paths, err := p.files.readAll(ctx, repo, some)
		found := map[int][]string{}
		for i, pr := range some {
			if err == nil {
				found[int(pr.Index)] = paths[i]
			}
		}
		return found, err
	}
	return out, nil
}
