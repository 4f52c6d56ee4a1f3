package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/system/git"
)

// Reviewer acts on pull requests of the local provider for a person: look, review, merge, close. It does not belong to
// the provider port, and no Provider leads to one: only code that serves people (the command line, the dashboard) makes
// it.
//
// Methods return *fault.Error with the codes of gitprovider.Provider, and invalid_argument for a malformed Note.
type Reviewer struct{ p *Provider }

// NewReviewer makes a Reviewer for the provider's repositories.
func NewReviewer(p *Provider) *Reviewer { return &Reviewer{p} }

// Note says who acts, and carries their comments.
type Note struct {
	Who string // the person's name, at most 100 bytes, no control characters; required
	// Account tells the person from others, whatever their name is. The zero value: the name does.
	Account gitprovider.Account
	Body    string // at most 64 KiB; required for Comment and RequestChanges
	// Head is the head commit that the person looked at. If it is given and the branch has moved since, the call is a
	// conflict and does nothing. "" takes the branch as it is.
	Head string
	// Comments are on lines of files that the pull request changes, at most 50. Their Commit is set by the call. They are
	// for Approve, RequestChanges and Comment.
	Comments []gitprovider.LineComment
	// Admitted, if not nil, asks whether the person may still do this: after all waiting, before the first write. Its
	// error is the call's, and nothing was done.
	Admitted func(ctx context.Context) error
}

// admitted asks n.Admitted.
func (n Note) admitted(ctx context.Context) error {
	if n.Admitted == nil {
		return nil
	}
	return n.Admitted(ctx)
}

const (
	maxWho      = 100
	maxBody     = 64 << 10
	maxComments = 50
	maxDiff     = 16 << 20
)

// List returns the pull requests in a state ("" for all), oldest first. URL, and for open ones head and paths, are
// as of now.
func (r *Reviewer) List(ctx context.Context, ref gitprovider.RepoRef,
	state gitprovider.State) ([]gitprovider.PullRequest, error) {
	repo, seen, err := r.p.openPulls(ctx, ref)
	if err != nil {
		return nil, err
	}
	prs, err := r.p.pulls.records.PRs(ctx, repo.recordKey(), state)
	for i := range prs {
		prs[i] = seen.current(repo, prs[i])
	}
	return prs, err
}

// Detail is a pull request as a person reviews it.
type Detail struct {
	gitprovider.Status
	// Diff is the unified diff from the commit where base and head part; for a pull request that is not open any more,
	// that of its head commit alone, or "" if git has it no longer. It is untrusted text.
	Diff string
	// DiffTooLarge says that the diff was left out because it is larger than 16 MiB.
	DiffTooLarge bool
}

// Show returns one pull request with its reviews and its diff.
func (r *Reviewer) Show(ctx context.Context, ref gitprovider.RepoRef, number int) (Detail, error) {
	repo, seen, err := r.p.openPulls(ctx, ref)
	if err != nil {
		return Detail{}, err
	}
	var detail Detail
	if detail.Status, err = r.p.pulls.pullStatus(ctx, repo, number, seen); err != nil {
		return Detail{}, err
	}
	detail.Diff, detail.DiffTooLarge, err = repo.pullDiff(ctx, seen.branches, detail.PullRequest)
	return detail, err
}

// Approve records an approval of the present head, which Merge then expects.
func (r *Reviewer) Approve(ctx context.Context, ref gitprovider.RepoRef, number int, n Note) error {
	return r.review(ctx, ref, number, gitprovider.ReviewApproved, n)
}

// RequestChanges records a review that keeps Merge from merging until the same person approves.
func (r *Reviewer) RequestChanges(ctx context.Context, ref gitprovider.RepoRef, number int, n Note) error {
	return r.review(ctx, ref, number, gitprovider.ReviewChangesRequested, n)
}

// Comment records a comment. It is possible on pull requests that are not open, too.
func (r *Reviewer) Comment(ctx context.Context, ref gitprovider.RepoRef, number int, n Note) error {
	if err := n.check(true); err != nil {
		return err
	}
	if len(n.Comments) == 0 {
		repo, err := r.p.openRepository(ctx, ref)
		if err != nil {
			return err
		}
		return r.addComment(ctx, repo, number, n)
	}
	repo, seen, err := r.p.openPulls(ctx, ref)
	if err != nil {
		return err
	}
	pr, _, err := r.p.pulls.records.PR(ctx, repo.recordKey(), number)
	if err != nil {
		return err
	}
	pr = seen.current(repo, pr)
	if n.Head != "" && n.Head != pr.HeadCommit {
		return movedSince(pr)
	}
	if n.Comments, err = repo.placed(ctx, seen.branches, pr, n.Comments); err != nil {
		return err
	}
	return r.addComment(ctx, repo, number, n)
}

func (r *Reviewer) addComment(ctx context.Context, repo *repository, number int, n Note) error {
	if err := n.admitted(ctx); err != nil {
		return err
	}
	return r.p.pulls.addReview(ctx, repo, number, gitprovider.ReviewCommented, n)
}

func (r *Reviewer) review(ctx context.Context, ref gitprovider.RepoRef, number int, verdict gitprovider.ReviewState,
	n Note) error {
	if err := n.check(verdict == gitprovider.ReviewChangesRequested); err != nil {
		return err
	}
	repo, pr, seen, err := r.openPR(ctx, ref, number, n)
	if err != nil {
		return err
	}
	if n.Comments, err = repo.placed(ctx, seen.branches, pr, n.Comments); err != nil {
		return err
	}
	if err := n.admitted(ctx); err != nil {
		return err
	}
	if verdict == gitprovider.ReviewApproved {
		if err := r.p.pulls.updatePull(ctx, repo, number, func(rec *gitprovider.PullRequest) error {
			rec.HeadCommit, rec.Paths = pr.HeadCommit, pr.Paths
			return stillOpen(*rec)
		}); err != nil {
			return err
		}
	}
	return r.p.pulls.addReview(ctx, repo, number, verdict, n)
}

// Close ends a pull request without merging it. The head branch stays, so that nothing is lost. A body is recorded as a
// comment.
func (r *Reviewer) Close(ctx context.Context, ref gitprovider.RepoRef, number int, n Note) error {
	if err := n.check(false); err != nil {
		return err
	}
	repo, pr, _, err := r.openPR(ctx, ref, number, n)
	if err != nil {
		return err
	}
	if err := n.admitted(ctx); err != nil {
		return err
	}
	err = r.p.pulls.updatePull(ctx, repo, number, func(rec *gitprovider.PullRequest) error {
		if err := stillOpen(*rec); err != nil {
			return err
		}
		rec.State, rec.ClosedAt = gitprovider.StateClosed, r.p.now().UTC()
		rec.HeadCommit, rec.Paths = pr.HeadCommit, pr.Paths
		return nil
	})
	if err != nil || n.Body == "" {
		return err
	}
	return r.p.pulls.addReview(ctx, repo, number, gitprovider.ReviewCommented, n)
}

// openPR returns a pull request that is open, and whose head is the one that the person looked at.
func (r *Reviewer) openPR(ctx context.Context, ref gitprovider.RepoRef, number int, n Note) (*repository,
	gitprovider.PullRequest, pullsNow, error) {
	repo, seen, err := r.p.openPulls(ctx, ref)
	if err != nil {
		return nil, gitprovider.PullRequest{}, seen, err
	}
	pr, _, err := r.p.pulls.records.PR(ctx, repo.recordKey(), number)
	if err == nil {
		err = stillOpen(pr)
	}
	if err != nil {
		return nil, gitprovider.PullRequest{}, seen, err
	}
	pr = seen.current(repo, pr)
	if n.Head != "" && n.Head != pr.HeadCommit {
		return nil, pr, seen, movedSince(pr)
	}
	return repo, pr, seen, nil
}

func movedSince(pr gitprovider.PullRequest) *fault.Error {
	return fault.New(fault.Conflict, "the branch %s has moved since you looked at it; look at the pull request again",
		pr.Branch)
}

func stillOpen(pr gitprovider.PullRequest) error {
	if pr.State == gitprovider.StateOpen {
		return nil
	}
	return fault.New(fault.Conflict, "pull request #%d is %s already; nothing was done", pr.Number, pr.State)
}

func (n Note) check(needsBody bool) error {
	switch {
	case strings.TrimSpace(n.Who) == "" || len(n.Who) > maxWho || strings.ContainsFunc(n.Who, unicode.IsControl):
		return fault.New(fault.InvalidArgument, "say who you are: a name of 1 to %d bytes without control characters", maxWho)
	case len(n.Body) > maxBody:
		return fault.New(fault.InvalidArgument, "the text is longer than %d bytes; shorten it", maxBody)
	case needsBody && strings.TrimSpace(n.Body) == "" && len(n.Comments) == 0:
		return fault.New(fault.InvalidArgument, "the text is empty; write what should change, or your comment")
	}
	return checkLineComments(n.Comments)
}

// pullDiff returns the unified diff of a pull request; see Detail.
func (repo *repository) pullDiff(ctx context.Context, have branches, pr gitprovider.PullRequest) (text string,
	tooLarge bool, err error) {
	if !isID(pr.HeadCommit) {
		return "", false, nil
	}
	w, err := repo.workspace(pr.HeadCommit, false)
	if err != nil {
		return "", false, err
	}
	defer w.close()
	span := []string{"--root", pr.HeadCommit}
	fork, err := repo.forkOf(ctx, have, pr)
	if err != nil {
		return "", false, err
	}
	if fork != "" {
		span = []string{fork, pr.HeadCommit}
	}
	if _, code, err := w.runGit(ctx, nil, []int{1}, "cat-file", "-e", pr.HeadCommit); err != nil || code != 0 {
		return "", false, err
	}
	c := w.newCommand(nil, nil, append([]string{"diff-tree", "-p", "-r", "--no-renames", "--no-ext-diff", "--no-textconv",
		"--no-color", "--no-commit-id"}, span...)...)
	c.limit = maxDiff
	out, _, err := repo.git.runGit(ctx, c)
	if errors.Is(err, git.ErrTooMuch) {
		return "", true, nil
	}
	return string(out), false, err
}

// forkOf returns the commit where base and head of an open pull request part; "" where there is none, and for one that
// has ended.
func (repo *repository) forkOf(ctx context.Context, have branches, pr gitprovider.PullRequest) (string, error) {
	k := pair{have.tips[pr.Base], pr.HeadCommit}
	if k.base == "" || pr.State != gitprovider.StateOpen {
		return "", nil
	}
	compared, err := repo.compareHeads(ctx, []pair{k})
	return compared[k].fork, err
}

// checkLineComments judges what can be judged without the repository.
func checkLineComments(comments []gitprovider.LineComment) error {
	total := 0
	for _, c := range comments {
		total += len(c.Body)
		switch {
		case c.Path == "" || c.Line < 1:
			return fault.New(fault.InvalidArgument, "a comment on a line names a file and a line from 1")
		case strings.TrimSpace(c.Body) == "":
			return fault.New(fault.InvalidArgument, "the comment on line %d of %.200q is empty; write it, or leave it out",
				c.Line, c.Path)
		}
	}
	switch {
	case len(comments) > maxComments:
		return fault.New(fault.InvalidArgument, "at most %d lines can be commented on at once; send the others after these",
			maxComments)
	case total > maxBody:
		return fault.New(fault.InvalidArgument, "the comments on lines have more than %d bytes; shorten them", maxBody)
	}
	return nil
}

// placed returns the comments with the head that their lines are counted in. invalid_argument for a file that the pull
// request does not change, and for a line that the file does not have.
func (repo *repository) placed(ctx context.Context, have branches, pr gitprovider.PullRequest,
	comments []gitprovider.LineComment) ([]gitprovider.LineComment, error) {
	if len(comments) == 0 {
		return nil, nil
	}
	fork, err := repo.forkOf(ctx, have, pr)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(comments)
	for i, c := range out {
		if !slices.Contains(pr.Paths, c.Path) {
			return nil, fault.New(fault.InvalidArgument, "the pull request does not change the file %.200q; it changes %s",
				c.Path,
				strings.Join(pr.Paths[:min(len(pr.Paths), maxComments)], ", "))
		}
		commit, when := pr.HeadCommit, "after the change"
		if c.Before {
			if commit, when = fork, "before the change"; fork == "" {
				commit = pr.HeadCommit + "^"
			}
		}
		text, err := repo.fileAt(ctx, commit, c.Path)
		if err != nil {
			return nil, err
		}
		if lines := linesIn(text); c.Line > lines {
			return nil, fault.New(fault.InvalidArgument, "%s has %d lines %s, so there is no line %d", c.Path, lines, when,
				c.Line)
		}
		out[i].Commit = pr.HeadCommit
	}
	return out, nil
}

// withIDs names the comments on lines of a pull request's reviews by their places, which never change.
func withIDs(reviews []gitprovider.Review) []gitprovider.Review {
	out := slices.Clone(reviews)
	for i := range out {
		out[i].Comments = slices.Clone(out[i].Comments)
		for n := range out[i].Comments {
			out[i].Comments[n].ID = fmt.Sprintf("%d.%d", i+1, n+1)
		}
	}
	return out
}

// linesIn returns the number of lines of a text.
func linesIn(text []byte) int {
	n := bytes.Count(text, []byte("\n"))
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

// fileAt returns the content of a file of a commit; nil if the commit, or the file in it, is not there.
func (repo *repository) fileAt(ctx context.Context, commit, path string) ([]byte, error) {
	w, err := repo.workspace(strings.TrimSuffix(commit, "^"), false)
	if err != nil {
		return nil, err
	}
	defer w.close()
	entry, code, err := w.runGit(ctx, nil, []int{128}, "ls-tree", "-z", "--full-tree", commit, "--", path)
	if err != nil || code != 0 {
		return nil, err
	}
	about, name, _ := bytes.Cut(bytes.TrimSuffix(entry, []byte{0}), []byte("\t"))
	fields := bytes.Fields(about) // mode, type, object
	if len(fields) != 3 || string(name) != path || string(fields[1]) != "blob" {
		return nil, nil
	}
	text, _, err := w.runGit(ctx, nil, nil, "cat-file", "blob", string(fields[2]))
	return text, err
}

// Texts returns the contents of files as the head has them: of those that are there, are not empty and have at most
// maxBytes. Those with white space in their names are left out.
func (r *Reviewer) Texts(ctx context.Context, ref gitprovider.RepoRef, head string, paths []string,
	maxBytes int) (map[string]string, error) {
	repo, err := r.p.openRepository(ctx, ref)
	if err != nil || !isID(head) {
		return nil, err
	}
	w, err := repo.workspace(head, false)
	if err != nil {
		return nil, err
	}
	defer w.close()
	o, err := w.openObjects(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	var failed error
	for _, path := range paths {
		if strings.ContainsFunc(path, unicode.IsSpace) || failed != nil { // git answers in words and lines
			continue
		}
		found, err := o.info(head + ":" + path)
		if errors.Is(err, errMissing) || err == nil &&
			(found.kind != "blob" || found.size > int64(maxBytes) || found.size == 0) {
			continue
		}
		var text []byte
		if err == nil {
			text, err = o.contents(found.id)
		}
		out[path], failed = string(text), err
	}
	return out, o.close(failed)
}
