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
)

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
	entry, code, err := w.run(ctx, nil, []int{128}, "ls-tree", "-z", "--full-tree", commit, "--", path)
	if err != nil || code != 0 {
		return nil, err
	}
	about, name, _ := bytes.Cut(bytes.TrimSuffix(entry, []byte{0}), []byte("\t"))
	fields := bytes.Fields(about) // mode, type, object
	if len(fields) != 3 || string(name) != path || string(fields[1]) != "blob" {
		return nil, nil
	}
	text, _, err := w.run(ctx, nil, nil, "cat-file", "blob", string(fields[2]))
	return text, err
}

// Texts returns the contents of files as the head has them: of those that are there, are not empty and have at most
// maxBytes. Those with white space in their names are left out.
func (r *Reviewer) Texts(ctx context.Context, ref gitprovider.RepoRef, head string, paths []string,
	maxBytes int) (map[string]string, error) {
	repo, err := r.p.open(ctx, ref)
	if err != nil || !isID(head) {
		return nil, err
	}
	w, err := repo.workspace(head, false)
	if err != nil {
		return nil, err
	}
	defer w.close()
	o, err := w.open(ctx)
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
