package local

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// MergeNote is a Note for Merge. Its body goes into the merge commit's message.
type MergeNote struct {
	Note
	// Force merges although a reviewer asked for changes, or although the head moved since it was opened or approved.
	// It never overrides a conflict, a moved base, or a base that is checked out.
	Force bool
}

// Merged is a merge that was made.
type Merged struct {
	Commit        string // the merge commit
	BranchDeleted bool   // the head branch was deleted
	// Warnings are sentences about what did not work after the merge, which stands.
	Warnings []string
}

// Merge merges a pull request by a commit with two parents, without a checkout. conflict, with nothing changed, if
//   - the two sides change the same lines (the message names the files),
//   - the base branch moves meanwhile: run it again,
//   - a reviewer's latest verdict asks for changes, or the head is not the one that was opened or last approved, unless
//     forced,
//   - the base branch is checked out in a work tree: moving it would make the work tree look as if the merge had been
//     undone. The message gives the git commands to run there; the next look then finds the pull request merged.
//
// The base is moved first, then the record is brought up to date, then the head branch is deleted if it still is what
// was merged and nobody has it checked out. After a crash in between, the next look finds the merge by ancestry.
func (r *Reviewer) Merge(ctx context.Context, ref gitprovider.RepoRef, number int, n MergeNote) (Merged, error) {
	if err := n.check(false); err != nil {
		return Merged{}, err
	}
	repo, pr, seen, err := r.openPR(ctx, ref, number, n.Note)
	if err != nil {
		return Merged{}, err
	}
	if err := r.mayMerge(ctx, repo, pr, n.Force); err != nil {
		return Merged{}, err
	}
	base, head := seen.branches.tips[pr.Base], seen.branches.tips[pr.Branch]
	if base == "" {
		return Merged{}, fault.New(fault.NotFound, "the base branch %s is gone; restore it or close the pull request",
			pr.Base)
	}
	out, err := repo.checkedOut(ctx)
	if err != nil {
		return Merged{}, err
	}
	if dir := out[pr.Base]; dir != "" {
		return Merged{}, fault.New(fault.Conflict,
			"the base branch %s is checked out in %s, so it is not moved behind that work tree's back; run there: git merge "+
				"--no-ff %s (then: git branch -d %s)",
			pr.Base, dir, pr.Branch, pr.Branch)
	}
	compared, err := repo.compare(ctx, []pair{{base, head}})
	if err != nil {
		return Merged{}, err
	}
	if compared[pair{base, head}].unrelated {
		return Merged{}, fault.New(fault.Conflict,
			"%s and %s have no commit in common, so they cannot be merged; close the pull request",
			pr.Branch, pr.Base)
	}
	id, err := r.p.mergeCommit(ctx, repo, pr, pair{base, head}, n.Note)
	if err != nil {
		return Merged{}, err
	}
	t := &transaction{admitted: n.admitted}
	t.update(pr.Base, id, base)
	if err := repo.update(ctx, t, fmt.Sprintf("claude-ops: merged #%d", number)); err != nil {
		return Merged{}, repo.whyNotMoved(ctx, pr.Base, base, err)
	}
	return r.afterMerge(ctx, repo, pr, Merged{Commit: id}, head, out[pr.Branch] != "" || seen.branches.head == pr.Branch),
		nil
}

// afterMerge brings record and head branch up to date. The merge stands, so failures are warnings, and a cancelled
// caller does not keep it from being recorded.
func (r *Reviewer) afterMerge(ctx context.Context, repo *repository, pr gitprovider.PullRequest, m Merged, head string,
	headInUse bool) Merged {
	const bound = 10 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
	defer cancel()
	err := r.p.pulls.change(ctx, repo, pr.Number, func(rec *gitprovider.PullRequest) error {
		rec.State, rec.HeadCommit, rec.Paths = gitprovider.StateMerged, head, pr.Paths
		rec.ClosedAt = r.p.now().UTC()
		return nil
	})
	if err != nil {
		m.Warnings = append(m.Warnings, "the merge was made but not recorded; the next look at the pull request does that")
	}
	if headInUse {
		m.Warnings = append(m.Warnings, "the branch "+pr.Branch+" is checked out, so it was not deleted")
		return m
	}
	if gitprovider.CheckOurs(pr.Branch) != nil {
		return m
	}
	if err := repo.removeBranch(ctx, pr.Branch, head); err != nil {
		m.Warnings = append(m.Warnings, "the branch "+pr.Branch+" could not be deleted: "+fault.From(err).Message)
		return m
	}
	m.BranchDeleted = true
	return m
}

// mayMerge looks at what people said.
func (r *Reviewer) mayMerge(ctx context.Context, repo *repository, pr gitprovider.PullRequest, force bool) error {
	recorded, reviews, err := r.p.pulls.records.PR(ctx, repo.key(), pr.Number)
	if err != nil || force {
		return err
	}
	if who := objectors(reviews); len(who) > 0 {
		return fault.New(fault.Conflict,
			"%s asked for changes; have them approve, or force the merge", strings.Join(who, ", "))
	}
	if recorded.HeadCommit != pr.HeadCommit {
		return fault.New(fault.Conflict,
			"the branch %s is at %.12s, but %.12s was opened or last approved; look at it again and approve it, or force the "+
				"merge",
			pr.Branch, pr.HeadCommit, recorded.HeadCommit)
	}
	return nil
}

// objectors lists whose latest verdict asks for changes, sorted. A comment is no verdict; a dismissed one is withdrawn.
func objectors(reviews []gitprovider.Review) []string {
	objects := map[gitprovider.Account]string{}
	for _, review := range reviews {
		switch review.State {
		case gitprovider.ReviewChangesRequested:
			objects[review.By()] = review.Author
		case gitprovider.ReviewApproved, gitprovider.ReviewDismissed:
			delete(objects, review.By())
		}
	}
	var who []string
	for _, author := range objects {
		who = append(who, author)
	}
	slices.Sort(who)
	return who
}

// mergeCommit writes the merge, without a reference.
func (p *Provider) mergeCommit(ctx context.Context, repo *repository, pr gitprovider.PullRequest, k pair,
	n Note) (string, error) {
	if err := repo.checkLayout(ctx); err != nil { // see update
		return "", err
	}
	w, err := repo.workspace(k.base, true)
	if err != nil {
		return "", err
	}
	defer w.close()
	tree, conflicts, err := w.mergeTree(ctx, k.base, k.head)
	if err != nil {
		return "", err
	}
	if len(conflicts) > 0 {
		return "", fault.New(fault.Conflict, "%s conflicts with %s in %s; close the pull request, or resolve the conflict "+
			"on its branch",
			pr.Branch, pr.Base, strings.Join(conflicts, ", "))
	}
	author := newIdentity(n.Who, p.author.email)
	if author.name == "" {
		author.name = p.author.name
	}
	date := fmt.Sprintf("%d +0000", p.now().Unix())
	c := w.command(strings.NewReader(mergeMessage(pr, n)), nil, "commit-tree", "-p", k.base, "-p", k.head, tree)
	c.env = append(slices.Clone(c.env), author.environ("AUTHOR")...)
	c.env = append(c.env, "GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date)
	out, _, err := p.git.run(ctx, c)
	if err != nil {
		return "", err
	}
	return w.parseID(out)
}

func mergeMessage(pr gitprovider.PullRequest, n Note) string {
	title := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, pr.Title)
	message := fmt.Sprintf("Merge pull request #%d from %s\n\n%s\n", pr.Number, pr.Branch, title)
	if body := strings.TrimSpace(n.Body); body != "" {
		message += "\n" + strings.ReplaceAll(body, "\x00", "") + "\n"
	}
	return message + "\nMerged-by: " + n.Who + "\n"
}

// whyNotMoved explains why git did not move the base, by looking.
func (repo *repository) whyNotMoved(ctx context.Context, branch, was string, cause error) error {
	have, err := repo.branches(ctx)
	if err == nil && have.tips[branch] != was {
		return fault.Wrap(cause, fault.Conflict, "the base branch %s moved meanwhile, so nothing was merged; run it again",
			branch)
	}
	return cause
}

// checkedOut gives the folder of the work tree for each branch that is checked out somewhere.
func (repo *repository) checkedOut(ctx context.Context) (map[string]string, error) {
	out, _, err := repo.refCommand(ctx, "", nil, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	dir := ""
	for _, field := range splitZ(out) {
		if path, ok := strings.CutPrefix(field, "worktree "); ok {
			dir = path
		}
		if branch, ok := strings.CutPrefix(field, "branch "+headsPrefix); ok {
			found[branch] = dir
		}
	}
	return found, nil
}

// mergeTree merges two commits. It answers the tree, and the files that conflict, quoted for a message and at most ten;
// a tree with conflicts is of no use. Merge drivers that a repository configures do not take part.
func (w *workspace) mergeTree(ctx context.Context, base, head string) (tree string, conflicts []string, err error) {
	out, code, err := w.run(ctx, nil, []int{1}, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", base,
		head)
	if err != nil {
		return "", nil, err
	}
	fields := splitZ(out)
	if len(fields) == 0 {
		return "", nil, failed(&exitError{"merge-tree", code, "no answer"})
	}
	if code == 0 {
		tree, err = w.parseID([]byte(fields[0]))
		return tree, nil, err
	}
	const most = 10
	for _, path := range fields[1:] {
		if len(conflicts) == most {
			conflicts = append(conflicts, "and others")
			break
		}
		conflicts = append(conflicts, fmt.Sprintf("%+q", path))
	}
	if len(conflicts) == 0 {
		conflicts = []string{"files that git does not name"}
	}
	return "", conflicts, nil
}

// mergeable tries the merge in a workspace that keeps nothing. It is false if a branch is gone.
func (repo *repository) mergeable(ctx context.Context, k pair) (bool, error) {
	if k.base == "" || k.head == "" {
		return false, nil
	}
	compared, err := repo.compare(ctx, []pair{k})
	if err != nil || compared[k].unrelated {
		return false, err
	}
	w, err := repo.workspace(k.base, false)
	if err != nil {
		return false, err
	}
	defer w.close()
	_, conflicts, err := w.mergeTree(ctx, k.base, k.head)
	return err == nil && len(conflicts) == 0, err
}
