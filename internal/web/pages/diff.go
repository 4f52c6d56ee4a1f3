package pages

import (
	"regexp"
	"strconv"
	"strings"
)

// Bounds of a diff on a page.
const (
	maxDiffFiles = 50
	maxFileLines = 1000
	maxDiffLines = 5000
	maxLineRunes = 2000
)

// Diff is a unified diff as a page shows it.
type Diff struct {
	Files     []DiffFile
	MoreFiles int  // left out
	Split     bool // side by side
}

// DiffFile is one file of a diff.
type DiffFile struct {
	Path           string
	Kind           string // "created", "deleted" or "changed"
	Added, Removed int
	Notes          []string // what the diff says beside lines, such as that a file is binary
	Hunks          []Hunk
	MoreLines      int // left out
}

// Hunk is a run of lines.
type Hunk struct {
	Head  string
	Lines []DiffLine
	Pairs []DiffPair // the same, side by side
}

// DiffLine is one line. Numbers are 0 where the line does not exist.
type DiffLine struct {
	Kind     string // "add", "del", "same" or "note"
	Sign     string
	Old, New int
	Text     string
	Tokens   []Token // the text in pieces
}

// DiffPair is one row of a diff side by side; nil is an empty side.
type DiffPair struct{ Left, Right *DiffLine }

// diffReader reads a unified diff. Lines of files cannot be taken for headers, since hunks say how many they have.
type diffReader struct {
	diff     Diff
	shown    int // lines
	files    int
	file     *DiffFile
	hunk     *Hunk
	old, new int // next numbers
	oldLeft  int
	newLeft  int
	header   *regexp.Regexp
}

// ParseDiff reads what git and our own preview write. Whatever it does not understand becomes a note of the file.
func ParseDiff(text string, split bool) Diff {
	r := &diffReader{header: regexp.MustCompile(`^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@(.*)$`)}
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		r.line(line)
	}
	r.diff.Split = split
	r.diff.MoreFiles = max(0, r.files-maxDiffFiles)
	colours := newHighlighter()
	for i := range r.diff.Files {
		for j := range r.diff.Files[i].Hunks {
			h := &r.diff.Files[i].Hunks[j]
			for k := range h.Lines {
				colours.colour(r.diff.Files[i].Path, &h.Lines[k])
			}
			h.Pairs = pair(h.Lines)
		}
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
		if r.file == nil || len(r.file.Hunks) > 0 || len(r.file.Notes) > 0 || r.file.Kind != "" {
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

// begin starts a file.
func (r *diffReader) begin(name string) {
	r.files++
	r.hunk, r.file = nil, &DiffFile{}
	if r.files <= maxDiffFiles {
		r.diff.Files = append(r.diff.Files, DiffFile{})
		r.file = &r.diff.Files[len(r.diff.Files)-1]
	}
	r.file.Path = Reveal(name, maxLineRunes)
}

// name takes a file's name from a header; kind is what the file is if this side of it is missing.
func (r *diffReader) name(name, kind string) {
	if r.file == nil {
		r.begin("")
	}
	name, _, _ = strings.Cut(name, "\t")
	if name == "/dev/null" {
		r.file.Kind = kind
		return
	}
	if r.file.Kind == "" {
		r.file.Kind = "changed"
	}
	r.file.Path = Reveal(strings.TrimPrefix(strings.TrimPrefix(name, "a/"), "b/"), maxLineRunes)
}

func (r *diffReader) note(line string) {
	if r.file == nil {
		r.begin("")
	}
	if len(r.file.Notes) < 5 {
		r.file.Notes = append(r.file.Notes, Reveal(line, 300))
	}
}

// open starts a hunk.
func (r *diffReader) open(line string) {
	m := r.header.FindStringSubmatch(line)
	if m == nil || r.file == nil {
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
	head, _, _ := strings.Cut(line[3:], " @@")
	r.file.Hunks = append(r.file.Hunks, Hunk{Head: "@@ " + head + " @@"})
	r.hunk = &r.file.Hunks[len(r.file.Hunks)-1]
}

// body takes a line of a hunk.
func (r *diffReader) body(line string) {
	sign, text := " ", ""
	if line != "" {
		sign, text = line[:1], line[1:]
	}
	switch sign {
	case "+":
		r.add(DiffLine{Kind: "add", Sign: "+", New: r.new, Text: text})
		r.file.Added++
		r.new, r.newLeft = r.new+1, r.newLeft-1
	case "-":
		r.add(DiffLine{Kind: "del", Sign: "-", Old: r.old, Text: text})
		r.file.Removed++
		r.old, r.oldLeft = r.old+1, r.oldLeft-1
	case `\`:
		r.add(DiffLine{Kind: "note", Text: "no line break at the end"})
	default:
		r.add(DiffLine{Kind: "same", Old: r.old, New: r.new, Text: text})
		r.old, r.oldLeft, r.new, r.newLeft = r.old+1, r.oldLeft-1, r.new+1, r.newLeft-1
	}
}

func (r *diffReader) add(line DiffLine) {
	if r.hunk == nil {
		return
	}
	if r.shown >= maxDiffLines || r.linesOfFile() >= maxFileLines {
		r.file.MoreLines++
		return
	}
	r.shown++
	line.Text = Reveal(strings.TrimSuffix(line.Text, "\r"), maxLineRunes)
	r.hunk.Lines = append(r.hunk.Lines, line)
}

func (r *diffReader) linesOfFile() (n int) {
	for _, h := range r.file.Hunks {
		n += len(h.Lines)
	}
	return n
}

// pair puts removed lines beside the added ones that follow them.
func pair(lines []DiffLine) (out []DiffPair) {
	for i := 0; i < len(lines); {
		var removed, added []*DiffLine
		for ; i < len(lines) && lines[i].Kind == "del"; i++ {
			removed = append(removed, &lines[i])
		}
		for ; i < len(lines) && lines[i].Kind == "add"; i++ {
			added = append(added, &lines[i])
		}
		for j := range max(len(removed), len(added)) {
			var p DiffPair
			if j < len(removed) {
				p.Left = removed[j]
			}
			if j < len(added) {
				p.Right = added[j]
			}
			out = append(out, p)
		}
		if len(removed)+len(added) == 0 {
			out = append(out, DiffPair{&lines[i], &lines[i]})
			i++
		}
	}
	return out
}
