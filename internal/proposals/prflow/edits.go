package prflow

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/textedit"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// edits reports whether any file is given as edits.
func (r *createRequest) edits() bool {
	return slices.ContainsFunc(r.asked.Files, func(f FileRequest) bool { return len(f.Edits) > 0 })
}

// edit makes the edits on the texts that count: those of the base branch, or of the pull request that is revised, whose
// base branch is base then. From here on what they make is the content that the gates judge and that is proposed. unfit
// says why those of a file could not be made; such a request is always refused.
func (r *createRequest) edit(on rules, snapshot *gitprovider.Snapshot, base gitprovider.Tree) {
	r.edited = edited{unfit: map[string]misfit{}}
	for i, f := range r.asked.Files {
		path, err := gitprovider.ParsePath(f.Path)
		entry, exists := snapshot.Tree[f.Path]
		if err != nil || len(f.Edits) == 0 || !exists || entry.Kind != gitprovider.KindFile ||
			!on.Policy.Scope.At(on.Tier).Check(f.Path).Allowed {
			continue // other gates have the better reason
		}
		content, known := snapshot.Contents[path]
		edited, near, v := f.edited(entry.ID, content, known)
		if v == nil && r.asked.Revises > 0 {
			v = f.madeFromBase(entry.ID, base[f.Path].ID)
		}
		if v != nil {
			r.edited.unfit[f.Path] = misfit{*v, near}
			continue
		}
		if f.stale(entry.ID) != nil {
			r.edited.behind = append(r.edited.behind, f.Path)
		}
		r.asked.Files[i].Content = &edited
	}
	r.derive(on)
}

// edited returns the text that the edits make of a file's content, or why they cannot be made, and the lines that are
// like what they look for. A file that has changed since it was read takes edits whose parts are as they were.
func (f FileRequest) edited(blob string, content []byte, known bool) (text string, near []int, v *fault.Violation) {
	v = &fault.Violation{Code: fault.ContentDenied, Path: f.Path,
		Suggestion: "give the whole new content in place of edits"}
	switch {
	case !known:
		v.Rule = "file-size"
		v.Message = fmt.Sprintf("%s has more than %d bytes on the base branch, too many for edits", f.Path,
			gitprovider.MaxContentRead)
		return "", nil, v
	case !utf8.Valid(content):
		v.Rule, v.Message = "binary", f.Path+" is not text in UTF-8 on the base branch, and edits change only text"
		return "", nil, v
	}
	edited, err := textedit.Apply(string(content), f.Edits,
		func(text string) string { return clean(text, len(text)) }) // as a file is read
	mismatch, stale := (*textedit.Mismatch)(nil), f.stale(blob)
	switch misfits := errors.As(err, &mismatch); {
	case (misfits || stale != nil || f.BaseSHA == "") && textedit.Made(string(content), f.Edits):
		return "", nil, &fault.Violation{
			Code: fault.NoChange, Path: f.Path, Rule: "identical",
			Message:    fmt.Sprintf("%s already has what the edits make of it on the base branch", f.Path),
			Suggestion: "leave this file out",
		}
	case misfits && stale != nil:
		return "", mismatch.Lines, stale
	case misfits:
		return "", mismatch.Lines, &fault.Violation{
			Code: fault.Conflict, Path: f.Path, Rule: "edits",
			Message:    fmt.Sprintf("edits[%d] does not fit %s on the base branch: %s", mismatch.Index, f.Path, mismatch.Why),
			Suggestion: "make the edits again from the text that the file has now",
		}
	}
	return edited, nil, nil
}

// madeFromBase refuses edits of a file that a pull request changes if they were or may have been made from the file of
// the base branch: applied to the pull request's file they could change it twice. nil if base_sha names the branch's
// file, or if the two files are the same.
func (f FileRequest) madeFromBase(blob, onBase string) *fault.Violation {
	v := &fault.Violation{
		Code: fault.Conflict, Path: f.Path, Rule: ruleBaseSHA,
		Suggestion: "make the edits from the text that the branch has now, and give its base_sha; or give the whole new content",
	}
	switch {
	case blob == onBase, f.BaseSHA != "" && f.stale(blob) == nil, f.BaseSHA == "" && onBase == "":
		return nil
	case f.BaseSHA == "":
		v.Message = fmt.Sprintf("the pull request changes %s, and nothing says that the edits are made from its text of it",
			f.Path)
	case f.stale(onBase) == nil:
		v.Message = fmt.Sprintf(
			"base_sha is %s as it is where the pull request shall go; the edits must be made from the pull request's text",
			f.Path)
	default:
		return f.stale(blob)
	}
	return v
}

// stale says that the file is another one than the one that base_sha names; nil if it is that, or none is named.
func (f FileRequest) stale(blob string) *fault.Violation {
	if f.BaseSHA == "" || strings.HasPrefix(blob, strings.ToLower(f.BaseSHA)) {
		return nil
	}
	return &fault.Violation{
		Code: fault.Conflict, Path: f.Path, Rule: ruleBaseSHA,
		Message:    fmt.Sprintf("%s is the blob %s on the base branch now, not %s", f.Path, short(blob), f.BaseSHA),
		Suggestion: "make the change again from the text that the file has now",
	}
}

// linesOf counts what the changes add and remove.
func linesOf(changes []gitprovider.Change, snapshot *gitprovider.Snapshot) []FileLines {
	out := []FileLines{}
	for _, c := range changes {
		before, known := snapshot.Contents[c.Path]
		_, exists := snapshot.Tree[c.Path.String()]
		lines := FileLines{Path: c.Path.String(), Unknown: exists && !known}
		if !lines.Unknown {
			counts := textedit.Compare(string(before), c.Content)
			lines.Added, lines.Removed = counts.Added, counts.Removed
		}
		out = append(out, lines)
	}
	slices.SortFunc(out, func(a, b FileLines) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// maxPresent bounds, in bytes, the texts of a branch that one refusal carries.
const maxPresent = 16 << 10

// lacking is a file that a refusal shows as a branch has it.
type lacking struct {
	path gitprovider.Path
	near []int  // lines that matter most, from 1
	diff string // what has changed since the version that was named; "" if that is not known
	more string // address of the resource that has all of it
}

// presents returns the branch's text at the paths of a refusal; nil for a path that is not a file there. Short texts
// are shown whole; the room they leave is divided among the longer ones.
func presents(snapshot *gitprovider.Snapshot, files []lacking) []*fault.Present {
	out := make([]*fault.Present, len(files))
	order := make([]int, len(files))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return len(snapshot.Contents[files[a].path]) - len(snapshot.Contents[files[b].path])
	})
	room := maxPresent
	for done, i := range order {
		out[i] = presentOf(snapshot, files[i], room/(len(order)-done))
		if out[i] != nil {
			room -= len(out[i].Text)
		}
	}
	return out
}

// presentOf shows a file in at most room bytes. Of a text that is too long it shows what surrounds the lines near, and
// without any its beginning.
func presentOf(snapshot *gitprovider.Snapshot, f lacking, room int) *fault.Present {
	entry, exists := snapshot.Tree[f.path.String()]
	if !exists || entry.Kind != gitprovider.KindFile {
		return nil
	}
	out := &fault.Present{BaseSHA: entry.ID}
	content, known := snapshot.Contents[f.path]
	switch {
	case !known:
		out.Cut = fmt.Sprintf("not shown: it has more than %d bytes", gitprovider.MaxContentRead)
		return out
	case !utf8.Valid(content):
		out.Cut = "not shown: it is not text in UTF-8"
		return out
	}
	text := clean(string(content), len(content))
	if text != string(content) {
		out.Cut = "without characters that a reader cannot see"
	}
	switch {
	case len(text) > room && f.diff != "" && len(f.diff) <= room:
		out.Diff, out.Untrusted = f.diff, untrustedFile
		out.Cut = "what has changed since the base_sha that was given; all of it is " + f.more
		return out
	case len(text) > room && len(f.near) > 0:
		text, out.Cut = around(text, f.near, room)
		out.Cut += "; all of it is " + f.more
	}
	if len(text) > room {
		text = strings.ToValidUTF8(text[:room], "")
		out.Cut = fmt.Sprintf("only the first %d of %d bytes; all of it is %s", len(text), len(content), f.more)
	}
	out.Text, out.Untrusted = text, untrustedFile
	return out
}

// around returns the lines surrounding the given ones, counted from 1, and the range shown: as much as fits into room
// bytes.
func around(text string, near []int, room int) (shown, which string) {
	lines := strings.SplitAfter(text, "\n")
	for near = slices.Sorted(slices.Values(near)); len(near) > 0; near = near[:len(near)-1] {
		for _, context := range []int{20, 10, 5, 2, 0} { // lines before and after
			if shown, which = surrounding(lines, near, context); len(shown) <= room {
				return shown, which
			}
		}
	}
	return shown, which // a line that is longer than there is room
}

func surrounding(lines []string, near []int, context int) (shown, which string) {
	var ranges []string
	end := 0
	for _, n := range near {
		from := max(n-1-context, end, 0)
		to := min(n+context, len(lines))
		if from >= to {
			continue
		}
		shown, end = shown+strings.Join(lines[from:to], ""), to
		ranges = append(ranges, fmt.Sprintf("%d to %d", from+1, to))
	}
	return shown, fmt.Sprintf("only the lines %s of %d", strings.Join(ranges, ", "), len(lines))
}
