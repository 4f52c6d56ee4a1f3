package prflow

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/textedit"
)

// FileLines is how many lines of a file a change adds and removes.
type FileLines struct {
	Path    string `json:"path"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	// Unknown says that the file on the base branch is too large to be compared, so that nothing was counted.
	Unknown bool `json:"unknown,omitempty" doc:"The file on the base branch is too large to be compared"`
}

// misfit is why edits of a file could not be made.
type misfit struct {
	violation fault.Violation
	near      []int // lines of the file that are like what the edits look for, from 1
}

// edits reports whether any file is given as edits.
func (r *request) edits() bool {
	return slices.ContainsFunc(r.asked.Files, func(f FileRequest) bool { return len(f.Edits) > 0 })
}

// edit makes the edits on the texts of the base branch. From here on what they make is the content that the gates judge and that
// is proposed. unfit says why those of a file could not be made; such a request is always refused.
func (r *request) edit(on rules, snapshot *gitprovider.Snapshot) {
	r.unfit = map[string]misfit{}
	for i, f := range r.asked.Files {
		path, err := gitprovider.ParsePath(f.Path)
		entry, exists := snapshot.Tree[f.Path]
		if err != nil || len(f.Edits) == 0 || !exists || entry.Kind != gitprovider.KindFile || !on.Policy.Scope.At(on.Tier).Check(f.Path).Allowed {
			continue // other gates have the better reason
		}
		content, known := snapshot.Contents[path]
		edited, near, v := f.edited(entry.ID, content, known)
		if v != nil {
			r.unfit[f.Path] = misfit{*v, near}
			continue
		}
		r.asked.Files[i].Content = &edited
	}
	r.derive(on)
}

// edited is the text that the edits make of a file's content, or why they cannot be made, and the lines that are like what they look for.
func (f FileRequest) edited(blob string, content []byte, known bool) (text string, near []int, v *fault.Violation) {
	edited, err := textedit.Apply(string(content), f.Edits)
	mismatch := (*textedit.Mismatch)(nil)
	if errors.As(err, &mismatch) {
		near = mismatch.Lines
	}
	if v := f.stale(blob); v != nil {
		return "", near, v
	}
	v = &fault.Violation{Code: fault.ContentDenied, Path: f.Path, Suggestion: "give the whole new content in place of edits"}
	switch {
	case !known:
		v.Rule = "file-size"
		v.Message = fmt.Sprintf("%s has more than %d bytes on the base branch, too many for edits", f.Path, gitprovider.MaxContentRead)
		return "", nil, v
	case !utf8.Valid(content):
		v.Rule, v.Message = "binary", f.Path+" is no text in UTF-8 on the base branch, and edits change only text"
		return "", nil, v
	case mismatch != nil:
		return "", near, &fault.Violation{
			Code: fault.Conflict, Path: f.Path, Rule: "edits",
			Message:    fmt.Sprintf("edits[%d] does not fit %s on the base branch: %s", mismatch.Index, f.Path, mismatch.Why),
			Suggestion: "make the edits again from the text that the file has now",
		}
	}
	return edited, nil, nil
}

// stale says that the file is another one than the one that base_sha names; nil if it is that, or none is named.
func (f FileRequest) stale(blob string) *fault.Violation {
	if f.BaseSHA == "" || strings.HasPrefix(blob, strings.ToLower(f.BaseSHA)) {
		return nil
	}
	return &fault.Violation{
		Code: fault.Conflict, Path: f.Path, Rule: "base-sha",
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

// maxPresent bounds, in bytes, the texts of the base branch that one refusal carries.
const maxPresent = 16 << 10

// presents tells a refusal what the base branch has, until its texts are as long as they may be together.
type presents struct {
	snapshot *gitprovider.Snapshot
	room     int // bytes
}

// of is what the base branch has at the path; nil if that is no file. Of a text that is too long it shows what surrounds the lines near, and
// without any its beginning.
func (p *presents) of(path gitprovider.Path, near []int) *fault.Present {
	entry, exists := p.snapshot.Tree[path.String()]
	if !exists || entry.Kind != gitprovider.KindFile {
		return nil
	}
	out := &fault.Present{BaseSHA: entry.ID}
	content, known := p.snapshot.Contents[path]
	switch {
	case !known:
		out.Cut = fmt.Sprintf("not shown: it has more than %d bytes", gitprovider.MaxContentRead)
		return out
	case !utf8.Valid(content):
		out.Cut = "not shown: it is no text in UTF-8"
		return out
	}
	text := clean(string(content), len(content))
	if text != string(content) {
		out.Cut = "without characters that a reader cannot see"
	}
	if len(text) > p.room && len(near) > 0 {
		text, out.Cut = around(text, near, p.room)
	}
	if len(text) > p.room {
		text = strings.ToValidUTF8(text[:p.room], "")
		out.Cut = fmt.Sprintf("only the first %d of %d bytes", len(text), len(content))
	}
	p.room -= len(text)
	out.Text, out.Untrusted = text, untrustedFile
	return out
}

// contextLines is how many lines are shown before and after one that is near.
const contextLines = 20

// around is what surrounds lines of a text, counted from 1, as far as there is room, and which lines that is.
func around(text string, near []int, room int) (shown, which string) {
	lines := strings.SplitAfter(text, "\n")
	var ranges []string
	end := 0
	for _, n := range slices.Sorted(slices.Values(near)) {
		from := max(n-1-contextLines, end, 0)
		to := min(n+contextLines, len(lines))
		if from >= to {
			continue
		}
		part := strings.Join(lines[from:to], "")
		if len(shown)+len(part) > room {
			break
		}
		shown, end = shown+part, to
		ranges = append(ranges, fmt.Sprintf("%d to %d", from+1, to))
	}
	if shown == "" {
		return text, ""
	}
	return shown, fmt.Sprintf("only the lines %s of %d", strings.Join(ranges, ", "), len(lines))
}
