package pages

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// diffReader reads a unified diff. Lines of files are never confused with headers, since hunks state their number. It
// keeps the lines of one part.
type diffReader struct {
	diff         Diff
	lines, files int       // of the part that is being read
	entry        DiffEntry // of the file that is being read
	file         *DiffFile // the same, in the part that is kept; nil outside of it
	begun        bool      // there is a file
	hunk         string    // head of the one that is being read
	old, new     int       // next numbers
	oldLeft      int
	newLeft      int
	header       *regexp.Regexp
}

func readPart(text string, part int) Diff {
	r := &diffReader{
		header: regexp.MustCompile(`^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@(.*)$`),
		diff:   Diff{Part: part, Parts: 1},
	}
	for line := range strings.Lines(text) {
		r.line(strings.TrimSuffix(line, "\n"))
	}
	r.end()
	for i := range r.diff.Files {
		r.diff.Files[i].DiffEntry = r.diff.Index[r.diff.Files[i].Number-1]
	}
	return r.diff
}

func (r *diffReader) line(line string) {
	switch {
	case r.oldLeft > 0 || r.newLeft > 0:
		r.body(line)
	case strings.HasPrefix(line, "diff --git "):
		_, name, _ := strings.Cut(line, " b/")
		r.begin(name)
	case strings.HasPrefix(line, "--- "):
		if !r.begun || r.hunk != "" || r.entry.Kind != "" || r.file != nil && len(r.file.Notes) > 0 {
			r.begin("")
		}
		r.name(line[4:], "created")
	case strings.HasPrefix(line, "+++ "):
		r.name(line[4:], "deleted")
	case strings.HasPrefix(line, `\`):
		r.add(DiffLine{Kind: "note", Text: "no line break at the end"})
	case strings.HasPrefix(line, "@@ "):
		r.open(line)
	case line == "" || strings.HasPrefix(line, "index ") || strings.HasPrefix(line, "new file mode ") ||
		strings.HasPrefix(line, "deleted file mode "):
	default:
		r.note(line)
	}
}

// end notes the file that was read.
func (r *diffReader) end() {
	if !r.begun {
		return
	}
	r.diff.Index[len(r.diff.Index)-1] = r.entry
}

// begin starts a file.
func (r *diffReader) begin(name string) {
	r.end()
	if r.files == maxPartFiles {
		r.nextPart()
	}
	r.files++
	r.begun, r.hunk = true, ""
	r.entry = DiffEntry{Path: Reveal(name, maxLineRunes), Part: r.diff.Parts}
	r.diff.Index = append(r.diff.Index, r.entry)
	r.keep(false)
}

// keep makes room for the file that is being read, if it is one of the part that is kept.
func (r *diffReader) keep(continued bool) {
	r.file = nil
	if r.diff.Parts == r.diff.Part {
		r.diff.Files = append(r.diff.Files, DiffFile{DiffEntry: r.entry, Number: len(r.diff.Index), Continued: continued})
		r.file = &r.diff.Files[len(r.diff.Files)-1]
	}
}

// nextPart ends a part.
func (r *diffReader) nextPart() {
	r.diff.Parts++
	r.files, r.lines = 0, 0
}

// name reads a file's name from a header; kind is the kind of change if the file is missing on this side.
func (r *diffReader) name(name, kind string) {
	if !r.begun {
		r.begin("")
	}
	name, _, _ = strings.Cut(name, "\t")
	if name == "/dev/null" {
		r.entry.Kind = kind
		return
	}
	if r.entry.Kind == "" {
		r.entry.Kind = "changed"
	}
	r.entry.Path = Reveal(strings.TrimPrefix(strings.TrimPrefix(name, "a/"), "b/"), maxLineRunes)
}

func (r *diffReader) note(line string) {
	if !r.begun {
		r.begin("")
	}
	if r.file != nil && len(r.file.Notes) < 5 {
		r.file.Notes = append(r.file.Notes, Reveal(line, 300))
	}
}

// open starts a hunk.
func (r *diffReader) open(line string) {
	m := r.header.FindStringSubmatch(line)
	if m == nil || !r.begun {
		r.note(line)
		return
	}
	number := func(s string, otherwise int) int {
		if n, err := strconv.Atoi(s); err == nil {
			return n
		}
		return otherwise
	}
	r.old, r.oldLeft, r.new, r.newLeft = number(m[1], 0), number(m[2], 1), number(m[3], 0), number(m[4], 1)
	if r.hunk = fmt.Sprintf("Lines %d to %d", r.new, r.new+r.newLeft-1); r.newLeft == 0 {
		r.hunk = fmt.Sprintf("Lines %d to %d before", r.old, r.old+r.oldLeft-1)
	}
	if r.file != nil {
		r.file.Hunks = append(r.file.Hunks, Hunk{Head: r.hunk})
	}
}

// body takes a line of a hunk.
func (r *diffReader) body(line string) {
	sign, text := " ", ""
	if line != "" {
		sign, text = line[:1], line[1:]
	}
	switch sign {
	case "+":
		r.entry.Added++
		r.add(DiffLine{Kind: "add", Sign: "+", New: r.new, Text: text})
		r.new, r.newLeft = r.new+1, r.newLeft-1
	case "-":
		r.entry.Removed++
		r.add(DiffLine{Kind: "del", Sign: "-", Old: r.old, Text: text})
		r.old, r.oldLeft = r.old+1, r.oldLeft-1
	case `\`:
		r.add(DiffLine{Kind: "note", Text: "no line break at the end"})
	default:
		r.add(DiffLine{Kind: "same", Old: r.old, New: r.new, Text: text})
		r.old, r.oldLeft, r.new, r.newLeft = r.old+1, r.oldLeft-1, r.new+1, r.newLeft-1
	}
}

func (r *diffReader) add(line DiffLine) {
	if r.hunk == "" {
		return
	}
	if r.lines == maxPartLines {
		if r.file != nil {
			r.file.Continues = true
		}
		r.nextPart()
		r.files = 1
		r.keep(true)
		if r.file != nil {
			r.file.Hunks = []Hunk{{Head: r.hunk}}
		}
	}
	r.lines++
	if r.file == nil {
		r.diff.MoreLines++
		return
	}
	line.Text = Reveal(strings.TrimSuffix(line.Text, "\r"), maxLineRunes)
	switch {
	case line.New > 0:
		line.Mark = fmt.Sprintf("f%dn%d", r.file.Number, line.New)
	case line.Old > 0:
		line.Mark = fmt.Sprintf("f%do%d", r.file.Number, line.Old)
	}
	h := &r.file.Hunks[len(r.file.Hunks)-1]
	h.Lines = append(h.Lines, line)
}
