package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/system/files"
)

// MergeNote is a Note for Merge. Its body goes into the merge commit's message.
type MergeNote struct {
	Note
	// Force merges although a reviewer asked for changes, or although the head moved since it was opened or approved.
	// It never overrides a conflict, a file that the base has moved elsewhere, or a base that is checked out.
	Force bool
	// Writes, if not nil, asks whether these files may be written, whatever Force says: they are all that the pull request
	// changes, as of now. Its error is the call's, and nothing was done.
	Writes func(paths []string) error
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
//   - git would write into a file that the pull request does not show, since the base has moved one there,
//   - a reviewer's latest verdict asks for changes, or the head is not the one that was opened or last approved, unless
//     forced,
//   - the base branch is checked out in a work tree, or a rebase or bisection of it runs there: moving it
//     would make the
//     work tree look as if the merge had been undone. The message gives the git commands to run there;
//     the next look then
//     finds the pull request merged.
//
// If the base branch moves meanwhile, the merge is tried again, at most mergeTries times.
//
// The base is moved and the head branch deleted in one transaction, if the branch still points to the merged commit and
// is not checked out anywhere; then the record is brought up to date. After a crash in between, the next look finds the
// merge by ancestry.
func (r *Reviewer) Merge(ctx context.Context, ref gitprovider.RepoRef, number int, n MergeNote) (Merged, error) {
	if err := n.check(false); err != nil {
		return Merged{}, err
	}
	for try := 1; ; try++ {
		merged, err := r.mergeOnce(ctx, ref, number, n)
		if try == mergeTries || !errors.Is(err, errBaseMoved) {
			return merged, err
		}
	}
}

// mergeTries bounds how often a merge is tried while others move the base.
const mergeTries = 20

var errBaseMoved = errors.New("the base branch moved")

// mergeOnce merges into the base as it is now. errBaseMoved is in the error if somebody moved the base meanwhile.
func (r *Reviewer) mergeOnce(ctx context.Context, ref gitprovider.RepoRef, number int, n MergeNote) (Merged, error) {
	repo, pr, seen, err := r.openPR(ctx, ref, number, n.Note)
	if err != nil {
		return Merged{}, err
	}
	if err := r.mayMerge(ctx, repo, pr, n.Force); err != nil {
		return Merged{}, err
	}
	k := pair{seen.branches.tips[pr.Base], seen.branches.tips[pr.Branch]}
	if k.base == "" {
		return Merged{}, fault.New(fault.NotFound, "the base branch %s is gone; restore it or close the pull request",
			pr.Base)
	}
	compared, err := repo.compareHeads(ctx, []pair{k})
	if err != nil {
		return Merged{}, repo.explainFailure(ctx, pr, k, err)
	}
	if compared[k].unrelated {
		return Merged{}, fault.New(fault.Conflict,
			"%s and %s have no commit in common, so they cannot be merged; close the pull request",
			pr.Branch, pr.Base)
	}
	if n.Writes != nil {
		if err := n.Writes(compared[k].paths); err != nil {
			return Merged{}, err
		}
	}
	out, err := repo.checkedOut(ctx)
	if err != nil {
		return Merged{}, err
	}
	if dir := out[pr.Base]; dir != "" {
		return Merged{}, repo.leftToPerson(ctx, pr, k, compared[k].paths, dir)
	}
	id, err := r.p.mergeCommit(ctx, repo, pr, k, compared[k].paths, n.Note)
	if err != nil {
		return Merged{}, err
	}
	inUse := out[pr.Branch] != "" || seen.branches.head == pr.Branch
	recorded, _, err := r.p.pulls.records.PR(ctx, repo.recordKey(), number)
	if err != nil {
		return Merged{}, err
	}
	// a look finds out by the recorded head that a pull request without a branch was merged
	deletes := !inUse && gitprovider.CheckOurs(pr.Branch) == nil && recorded.HeadCommit == k.head
	if deletes, err = repo.moveBase(ctx, pr, k, id, deletes, n); err != nil {
		return Merged{}, err
	}
	return r.afterMerge(ctx, repo, pr, Merged{Commit: id, BranchDeleted: deletes}, k.head, inUse), nil
}

// moveBase moves the base to the merge and, if deletes, removes the head branch at the same moment, so that a process
// that is killed leaves no merged branch. A branch that cannot be removed does not keep the base from moving; deleted
// reports whether it was.
func (repo *repository) moveBase(ctx context.Context, pr gitprovider.PullRequest, k pair, merge string, deletes bool,
	n MergeNote) (deleted bool, err error) {
	var turnedAway error
	move := func(deletes bool) error {
		t := &transaction{admitted: func(ctx context.Context) error {
			turnedAway = n.admitted(ctx)
			return turnedAway
		}}
		t.update(pr.Base, merge, k.base)
		if deletes {
			t.deleteBranch(pr.Branch, k.head)
		}
		return repo.update(ctx, t, fmt.Sprintf("claude-ops: merged #%d", pr.Number))
	}
	err = move(deletes)
	if err != nil && deletes && turnedAway == nil {
		if have, lookErr := repo.branches(ctx); lookErr == nil && have.tips[pr.Base] == k.base {
			deletes = false
			err = move(deletes)
		}
	}
	if err != nil {
		return false, repo.whyNotMoved(ctx, pr.Base, k.base, err)
	}
	return deletes, nil
}

// leftToPerson returns the refusal to move a base that is checked out in dir. The advice is to merge there, so the
// merge is tried before: git in the work tree would follow a file that was moved, too.
func (repo *repository) leftToPerson(ctx context.Context, pr gitprovider.PullRequest, k pair, paths []string,
	dir string) error {
	w, err := repo.workspace(k.base, false)
	if err != nil {
		return err
	}
	defer w.close()
	merge, err := w.mergeTree(ctx, k, paths)
	if err != nil {
		return err
	}
	if len(merge.elsewhere) > 0 {
		return merge.mergeProblem(pr)
	}
	return fault.New(fault.Conflict,
		"the base branch %s is checked out in %s, so it is not moved behind that work tree's back; run there: git merge "+
			"--no-ff %s (then: git branch -d %s)",
		pr.Base, dir, pr.Branch, pr.Branch)
}

// afterMerge brings record and head branch up to date. The merge stands, so failures are warnings, and a cancelled
// caller does not keep it from being recorded.
func (r *Reviewer) afterMerge(ctx context.Context, repo *repository, pr gitprovider.PullRequest, m Merged, head string,
	headInUse bool) Merged {
	const bound = 10 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
	defer cancel()
	err := r.p.pulls.updatePull(ctx, repo, pr.Number, func(rec *gitprovider.PullRequest) error {
		rec.State, rec.HeadCommit, rec.Paths = gitprovider.StateMerged, head, pr.Paths
		rec.ClosedAt = r.p.now().UTC()
		return nil
	})
	if err != nil {
		m.Warnings = append(m.Warnings, "the merge was made but not recorded; the next look at the pull request does that")
	}
	if hooks := repo.hooks(); len(hooks) > 0 {
		m.Warnings = append(m.Warnings, "the hooks of the repository did not run: "+strings.Join(hooks, ", "))
	}
	if m.BranchDeleted {
		return m
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
	recorded, reviews, err := r.p.pulls.records.PR(ctx, repo.recordKey(), pr.Number)
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

// objectors lists the reviewers whose latest verdict asks for changes, sorted. A comment is not a verdict; a dismissed
// verdict is withdrawn.
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
	paths []string, n Note) (string, error) {
	if err := repo.checkLayout(ctx); err != nil { // see update
		return "", err
	}
	w, err := repo.workspace(k.base, true)
	if err != nil {
		return "", err
	}
	defer w.close()
	merge, err := w.mergeTree(ctx, k, paths)
	if err != nil {
		return "", err
	}
	if err := merge.mergeProblem(pr); err != nil {
		return "", err
	}
	author := p.person(n.Who)
	date := fmt.Sprintf("%d +0000", p.now().Unix())
	c := w.newCommand(strings.NewReader(mergeMessage(pr, n)), nil, "commit-tree", "-p", k.base, "-p", k.head, merge.tree)
	c.env = append(slices.Clone(c.env), author.environ("AUTHOR")...)
	c.env = append(c.env, "GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date)
	out, _, err := p.git.runGit(ctx, c)
	if err != nil {
		return "", err
	}
	return w.parseID(out)
}

// person returns the identity of somebody who merges: the letters and digits of the name at localhost, so that git does
// not take persons and agents for one author.
func (p *Provider) person(name string) identity {
	person, _, _ := strings.Cut(name, " (") // what follows is the program
	local := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '.', r == '_':
			return unicode.ToLower(r)
		}
		return '-'
	}, person), "-._")
	if author := newIdentity(name, local+"@localhost"); author.name != "" && local != "" {
		return author
	}
	return p.author
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
		return fault.Wrap(errors.Join(errBaseMoved, cause), fault.Conflict,
			"the base branch %s moved meanwhile, so nothing was merged; run it again", branch)
	}
	return cause
}

// maxWorkTrees bounds the linked work trees that are looked at.
const maxWorkTrees = 1000

// checkedOut gives the folder of the work tree for each branch that is checked out somewhere, or that a rebase or a
// bisection there will come back to.
func (repo *repository) checkedOut(ctx context.Context) (map[string]string, error) {
	out, _, err := repo.refCommand(ctx, nil, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	place := ""
	for _, field := range splitZ(out) {
		if path, ok := strings.CutPrefix(field, "worktree "); ok {
			place = path
		}
		if branch, ok := strings.CutPrefix(field, "branch "+headsPrefix); ok {
			found[branch] = place
		}
	}
	repo.underWay(repo.gitDir, found)
	dir, err := files.OpenDir(repo.gitDir)
	if err != nil {
		return nil, unreadable(err)
	}
	defer dir.Close()
	linked, _, err := dir.Entries("worktrees", maxWorkTrees)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, unreadable(err)
	}
	for _, entry := range linked {
		repo.underWay(filepath.Join(repo.gitDir, "worktrees", entry.Name()), found)
	}
	return found, nil
}

// underWay adds the branches that a rebase or a bisection in one work tree has taken; gitDir is that work tree's.
func (repo *repository) underWay(gitDir string, found map[string]string) {
	const most = 4 << 10
	for _, name := range []string{"rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"} {
		text, _, err := files.ReadUnlinked(filepath.Join(gitDir, filepath.FromSlash(name)), most)
		branch := strings.TrimPrefix(strings.TrimSpace(string(text)), headsPrefix)
		if err != nil || branch == "" || found[branch] != "" {
			continue // nothing of the kind is under way
		}
		what, _, _ := strings.Cut(strings.ToLower(name), "_")
		what, _, _ = strings.Cut(what, "-")
		found[branch] = fmt.Sprintf("a git %s that has not ended (%s)", what, gitDir)
	}
}

// treeMerge is git's merge of two commits.
type treeMerge struct {
	tree string // unused unless the other two are empty
	// conflicts are files in which both sides change the same lines, and elsewhere those that the merge writes although
	// the pull request does not show them. Both are quoted for a message, and at most ten.
	conflicts, elsewhere []string
}

// mergeProblem says why the merge is not made; nil if it may be.
func (m treeMerge) mergeProblem(pr gitprovider.PullRequest) error {
	switch {
	case len(m.conflicts) > 0:
		return fault.New(fault.Conflict, "%s conflicts with %s in %s; close the pull request, or resolve the conflict "+
			"on its branch",
			pr.Branch, pr.Base, strings.Join(m.conflicts, ", "))
	case len(m.elsewhere) > 0:
		return fault.New(fault.Conflict, "%s has moved a file of this pull request, and the merge would write into %s, "+
			"which the pull request does not show; close it and have the change proposed again, or merge %s into %s and look "+
			"at the pull request again",
			pr.Base, strings.Join(m.elsewhere, ", "), pr.Base, pr.Branch)
	}
	return nil
}

// mergeTree merges two commits. paths are the files that the pull request shows as changed: git follows renames of the
// base, so that what a merge writes is held against them. Merge drivers that a repository configures do not take part.
func (w *workspace) mergeTree(ctx context.Context, k pair, paths []string) (treeMerge, error) {
	out, code, err := w.runGit(ctx, nil, []int{1}, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages",
		k.base,
		k.head)
	if err != nil {
		return treeMerge{}, err
	}
	fields := splitZ(out)
	switch {
	case len(fields) == 0:
		return treeMerge{}, gitFailure(&exitError{"merge-tree", code, "no answer"})
	case code != 0 && len(fields) == 1:
		return treeMerge{conflicts: []string{"files that git does not name"}}, nil
	case code != 0:
		return treeMerge{conflicts: quotePaths(fields[1:])}, nil
	}
	tree, err := w.parseID([]byte(fields[0]))
	if err != nil {
		return treeMerge{}, err
	}
	out, _, err = w.runGit(ctx, nil, nil, "diff-tree", "-r", "-z", "--name-only", "--no-renames", k.base, tree)
	if err != nil {
		return treeMerge{}, err
	}
	elsewhere := slices.DeleteFunc(splitZ(out), func(path string) bool { return slices.Contains(paths, path) })
	return treeMerge{tree: tree, elsewhere: quotePaths(elsewhere)}, nil
}

// quotePaths quotes paths for a message, at most ten.
func quotePaths(paths []string) (out []string) {
	const most = 10
	for i, path := range paths {
		if i == most {
			return append(out, "and others")
		}
		out = append(out, fmt.Sprintf("%+q", path))
	}
	return out
}

// mergeable tries the merge in a workspace that keeps nothing. It is false if a branch is gone.
func (repo *repository) mergeable(ctx context.Context, k pair) (bool, error) {
	if k.base == "" || k.head == "" {
		return false, nil
	}
	compared, err := repo.compareHeads(ctx, []pair{k})
	if err != nil || compared[k].unrelated {
		return false, err
	}
	w, err := repo.workspace(k.base, false)
	if err != nil {
		return false, err
	}
	defer w.close()
	merge, err := w.mergeTree(ctx, k, compared[k].paths)
	return err == nil && len(merge.conflicts)+len(merge.elsewhere) == 0, err
}
