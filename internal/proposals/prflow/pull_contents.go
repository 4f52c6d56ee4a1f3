package prflow

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/aymanbagabas/go-udiff"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// pullContents holds what an open pull request of ours changes, in the form in which it may be shown.
type pullContents struct {
	base, head *gitprovider.Snapshot // files alone
	files      []changedFile         // in the order of their paths
	notes      []string              // what is not among them, and what else a reader has to know
	made       []record.Proposal     // that made it, oldest first; empty if the record was lost
}

// changedFile is a file that a pull request changes.
type changedFile struct {
	path          string
	id            string // blob on the branch; "" if the pull request removes the file
	before, after shownText
	created       bool // the base branch has no such file
}

// contents reads the files of a pull request of ours on its branch and on its base branch, two calls beside those for
// what is large. not_found for one that is not ours, conflict for one that is not open.
func (f fileReader) contents(ctx context.Context, at gitprovider.Resolution, pr gitprovider.PullRequest) (*pullContents,
	error) {
	if err := f.isOurs(at, pr); err != nil {
		return nil, err
	}
	out := &pullContents{}
	var paths []gitprovider.Path
	for _, p := range pr.Paths[:min(len(pr.Paths), gitprovider.MaxFilesPerPR)] {
		path, err := gitprovider.ParsePath(p)
		if err != nil || f.authority.mayRead(p, pr.Paths) != nil {
			out.notes = append(out.notes, quote(clean(p, gitprovider.MaxPathBytes))+
				" is not shown: it is not one of the files that may be proposed")
			continue
		}
		paths = append(paths, path)
	}
	if more := len(pr.Paths) - gitprovider.MaxFilesPerPR; more > 0 {
		out.notes = append(out.notes, fmt.Sprintf("%d more files are not shown", more))
	}
	if err := f.readSides(ctx, at, pr, paths, out); err != nil {
		return nil, err
	}
	var err error
	if out.made, err = f.history.MadeOf(ctx, at.Provider.Name(), out.head.Repo.Owner, out.head.Repo.Name,
		pr.Number); err != nil {
		return nil, err
	}
	for _, path := range paths {
		if err := f.addFile(ctx, out, path, pr.Number); err != nil {
			return nil, err
		}
	}
	out.withholdParts(f.shower.secrets)
	return out, nil
}

// withholdParts shows no file if a credential of this server stands in parts of several.
func (c *pullContents) withholdParts(secrets Secrets) {
	var texts []string
	for _, f := range c.files {
		texts = append(texts, f.before.text, f.after.text)
	}
	if secrets.Spread(texts) != nil {
		c.files, c.notes = nil, []string{"nothing is shown: the files hold a credential of this server in parts"}
	}
}

// readSides reads both branches side by side.
func (f fileReader) readSides(ctx context.Context, at gitprovider.Resolution, pr gitprovider.PullRequest,
	paths []gitprovider.Path,
	out *pullContents,
) error {
	var baseErr, headErr error
	var both sync.WaitGroup
	both.Go(func() {
		defer caught(f.log, func() { baseErr = fault.New(fault.Internal, "internal error") })
		out.base, baseErr = f.look(ctx, at, place{query: pr.Base, name: "the base branch"}, paths)
	})
	out.head, headErr = f.look(ctx, at, branchOf(pr), paths)
	both.Wait()
	if headErr != nil {
		return headErr
	}
	return baseErr
}

// addFile adds a file that can be shown on both sides, and a note about any other one.
func (f fileReader) addFile(ctx context.Context, out *pullContents, path gitprovider.Path, number int) error {
	file := changedFile{path: path.String(), id: out.head.Tree[path.String()].ID}
	_, onBase := out.base.Tree[path.String()]
	file.created = !onBase
	if !onBase && file.id == "" {
		return nil // a rename's old name that was never on the base, or gone from both by now
	}
	for _, side := range []struct {
		shown    *shownText
		snapshot *gitprovider.Snapshot
		is       bool
		name     string
	}{{&file.before, out.base, onBase, "the base branch"},
		{&file.after, out.head, file.id != "", fmt.Sprintf("the branch of #%d", number)}} {
		if !side.is {
			continue
		}
		if _, v := fileAt(side.snapshot.Tree, path, side.name); v != nil {
			out.notes = append(out.notes, v.Message)
			return nil
		}
		content, known := side.snapshot.Contents[path]
		shown, err := f.shower.show(ctx, path.String(), content, known)
		switch {
		case fault.CodeOf(err) == fault.ContentDenied:
			out.notes = append(out.notes, fault.From(err).Message)
			return nil
		case err != nil:
			return err
		}
		*side.shown = shown
		for _, lack := range shown.lacks {
			if !slices.Contains(out.notes, lack) {
				out.notes = append(out.notes, lack)
			}
		}
	}
	if was, known := out.forkedFrom(path.String()); known && was != out.base.Tree[path.String()].ID {
		out.notes = append(out.notes,
			fmt.Sprintf(
				"%s has changed on the base branch since #%d did: the difference is against the base branch as it is now",
				path, number))
	}
	out.files = append(out.files, file)
	return nil
}

// forkedFrom returns the blob that a file was on the base branch when the pull request came to change it, by our
// record; "" if it was not there.
func (c *pullContents) forkedFrom(path string) (id string, known bool) {
	for _, p := range c.made {
		for _, f := range p.Files {
			if f.Path == path {
				return f.BaseSHA, true
			}
		}
	}
	return "", false
}

// diff returns the unified difference of one file. It is "" if what differs is not shown.
func (c changedFile) diff() string {
	before, after := "a/"+c.path, "b/"+c.path
	if c.created {
		before = "/dev/null"
	}
	if c.id == "" {
		after = "/dev/null"
	}
	return udiff.Unified(before, after, c.before.text, c.after.text)
}

// diff joins the differences of the files as far as there is room, in bytes of JSON, and names those that are left out.
func (c *pullContents) diff(room int) (text string, leftOut []string) {
	var b strings.Builder
	for _, f := range c.files {
		one := f.diff()
		size := jsonLength(one)
		if size > room {
			leftOut = append(leftOut, fmt.Sprintf("the difference of %s is left out: it has %d bytes", f.path, len(one)))
			continue
		}
		room -= size
		b.WriteString(one)
	}
	return b.String(), leftOut
}

// lineText returns the text of the line that a comment is on; "" if it is not known. A commit that is not the head any
// more is known by our records of what we put there.
func (c *pullContents) lineText(comment gitprovider.LineComment) string {
	text, known := "", false
	at := slices.IndexFunc(c.files, func(f changedFile) bool { return f.path == comment.Path })
	switch {
	case at < 0: // not shown, whatever the records have of it
	case comment.Before:
		was, recorded := c.forkedFrom(comment.Path)
		text, known = c.files[at].before.text, recorded && was == c.base.Tree[comment.Path].ID
	case comment.Commit == c.head.BaseCommit:
		text, known = c.files[at].after.text, c.files[at].id != ""
	default:
		text, known = c.recordedAt(comment.Commit, comment.Path)
	}
	lines := strings.Split(text, "\n")
	if !known || comment.Line < 1 || comment.Line > len(lines) {
		return ""
	}
	return clean(strings.TrimSuffix(lines[comment.Line-1], "\r"), maxLine)
}

// recordedAt returns the text at a path in one of our commits, if we proposed the path in that commit or before it. The
// text passed the content gate then.
func (c *pullContents) recordedAt(commit, path string) (text string, known bool) {
	for _, p := range c.made {
		for _, f := range p.Files {
			if f.Path == path {
				text, known = f.Content, f.Action != gitprovider.ActionDelete
			}
		}
		if p.Commit == commit {
			return text, known
		}
	}
	return "", false
}
