package pages

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/web/views"
)

// Bounds of one part of a difference. A page shows one part, and leads to the others.
const (
	maxPartFiles = 50
	maxPartLines = 3000
	maxLineRunes = 2000
	maxIndex     = 2000 // files
)

// Diff is a part of a unified diff as a page shows it.
type Diff struct {
	Index []DiffEntry // every file, whatever the part
	Files []DiffFile  // of this part
	Part  int         // from 1
	Parts int
	Split bool   // side by side
	Read  bool   // Markdown as it reads
	As    string // of the query of the page; "" for none
	// Here is the address of the page without its query, which the links between parts lead to; "" if it shows the first
	// part alone.
	Here string
	// MoreLines is the number of lines of the other parts.
	MoreLines int
	// May says that lines may be commented on.
	May bool
}

// DiffEntry is a file in the index of a diff.
type DiffEntry struct {
	Path           string
	Kind           string // "created", "deleted" or "changed"
	Added, Removed int
	Part           int // in which it begins
	later          []partStart
}

// partStart is where a file goes on in another part: its first lines there, before and after the change.
type partStart struct{ part, old, new int }

// partOf returns the part that holds a line of the file, of those that the difference shows.
func (e DiffEntry) partOf(line int, before bool) int {
	part := e.Part
	for _, s := range e.later {
		if before && s.old <= line || !before && s.new <= line {
			part = s.part
		}
	}
	return part
}

// DiffFile is one file of a part.
type DiffFile struct {
	DiffEntry
	Number    int      // in the index, from 1
	Continued bool     // it began in an earlier part
	Continues bool     // it goes on in the next part
	Notes     []string // what the diff says beside lines, such as that a file is binary
	Hunks     []Hunk
	Rendered  *Prose // the new text, of Markdown; nil if it is not known
	Tail      *Gap   // after the last hunk; nil for none that is known
}

// Hunk is a run of lines.
type Hunk struct {
	Head  string
	Lines []DiffLine
	Pairs []DiffPair // the same, side by side
	Gap   *Gap       // before it; nil for none that is known
	// where it is in the text before the change and after it
	oldStart, oldLines, newStart, newLines int
}

// DiffLine is one line. Numbers are 0 where the line does not exist.
type DiffLine struct {
	Kind     string // "add", "del", "same" or "note"
	Sign     string
	Old, New int
	Text     string
	Tokens   []Token // the text in pieces
	Mark     string  // names the line on the page, such as f2n14, and f2o14 for a line that is removed
	Notes    []LineNote
	Facts    []LineFact // what it names or does
	Form     *LineForm  // to write a comment; nil if none is asked for
}

// LineNote is somebody's comment on a line.
type LineNote struct {
	Author, Body string
	State        views.Word
	At           time.Time
}

// LineFact is a fact of a line, as a mark.
type LineFact struct {
	Text  string // of its class: "deletes"
	Grave bool
}

// LineForm is the form that comments on a line.
type LineForm struct {
	Action, Head string // where it goes, and the commit that the line is one of
	Path         string
	Line         int
	Before       bool
	Cancel       string // leads back
	Text         string // what was written, of a form that comes back
	Failed       string // why it comes back
	Shown        []Shown
}

// LineKey is a line of a file: one that the change removes, or one of the new text.
type LineKey struct {
	Path   string
	Line   int
	Before bool
}

// Said reports whether something stands below the line.
func (l *DiffLine) Said() bool { return l != nil && (len(l.Notes) > 0 || l.Form != nil) }

// DiffPair is one row of a diff side by side; nil is an empty side.
type DiffPair struct{ Left, Right *DiffLine }

// Said reports whether something stands below the row.
func (p DiffPair) Said() bool { return p.Left.Said() || p.Right.Said() }

// lineLink is the number of a line, which leads to the form that comments on it.
type lineLink struct {
	May    bool
	Number int
	Mark   string
	Href   string
}

func linkLine(d *Diff, l *DiffLine, number int) lineLink {
	link := lineLink{May: d.May && d.Here != "", Number: number, Mark: l.Mark}
	if link.May && number > 0 {
		link.Href = d.To(d.Part) + "&on=" + l.Mark // without a fragment, which would keep the form from getting the focus
	}
	return link
}

// Shown are the fields of a form that say what the page shows, so that the form comes back to it.
type Shown struct{ Name, Value string }

// ParseDiff reads what git and our own preview write, and keeps a part, from 1; the last one if there are fewer.
// Whatever it does not understand becomes a note of the file.
func ParseDiff(text string, split bool, part int) Diff {
	diff := readPart(text, max(1, part))
	if part > diff.Parts {
		diff = readPart(text, diff.Parts)
	}
	diff.Split = split
	colours := newHighlighter()
	for i := range diff.Files {
		for j := range diff.Files[i].Hunks {
			h := &diff.Files[i].Hunks[j]
			for k := range h.Lines {
				colours.colour(diff.Files[i].Path, &h.Lines[k])
			}
			h.Pairs = pair(h.Lines)
			markWithin(h.Pairs)
		}
	}
	return diff
}

// All reports whether this part is all there is.
func (d *Diff) All() bool { return d.Parts == 1 }

// Added returns the number of added lines in all files.
func (d *Diff) Added() (n int) {
	for _, e := range d.Index {
		n += e.Added
	}
	return n
}

// Removed returns the number of removed lines in all files.
func (d *Diff) Removed() (n int) {
	for _, e := range d.Index {
		n += e.Removed
	}
	return n
}

// To returns the address of a part.
func (d *Diff) To(part int) string {
	query := "?part=" + strconv.Itoa(part)
	if view := d.viewName(); view != "" {
		query += "&view=" + view
	}
	if d.As != "" {
		query += "&as=" + d.As
	}
	return d.Here + query
}

// viewName names how it is shown, as addresses have it; "" for unified.
func (d *Diff) viewName() string {
	switch {
	case d.Read:
		return "read"
	case d.Split:
		return "split"
	}
	return ""
}

// DiffView is a link to this part seen in another way.
type DiffView struct {
	Text, To string
	Shown    bool
}

// Views returns the ways to look at this part; as it reads, where it has Markdown whose text is known.
func (d *Diff) Views() (out []DiffView) {
	ways := []Diff{{}, {Split: true}}
	for _, f := range d.Files {
		if f.Rendered != nil {
			ways = append(ways, Diff{Read: true})
			break
		}
	}
	for i, way := range ways {
		other := *d
		other.Split, other.Read = way.Split, way.Read
		out = append(out, DiffView{[]string{"Unified", "Side by side", "As it reads"}[i], other.To(d.Part) + "#files",
			d.viewName() == way.viewName()})
	}
	return out
}

// Shown returns the fields that a form has to send so that it comes back to this part.
func (d *Diff) Shown(mark string) []Shown {
	out := []Shown{{"part", strconv.Itoa(d.Part)}}
	if view := d.viewName(); view != "" {
		out = append(out, Shown{"view", view})
	}
	if mark != "" {
		out = append(out, Shown{"on", mark})
	}
	return out
}

// Before returns the part before this one; 0 for none.
func (d *Diff) Before() int { return d.Part - 1 }

// After returns the part after this one; 0 for none.
func (d *Diff) After() int {
	if d.Part == d.Parts {
		return 0
	}
	return d.Part + 1
}

// FirstIndex returns the files that the index shows, and how many it does not.
func (d *Diff) FirstIndex() List {
	if len(d.Index) <= maxIndex {
		return List{Items: d.Index}
	}
	return List{d.Index[:maxIndex], len(d.Index) - maxIndex}
}

// Paths returns the paths of the files of this part that exist after the change.
func (d *Diff) Paths() (paths []string) {
	for _, f := range d.Files {
		if f.Kind != "deleted" {
			paths = append(paths, f.Path)
		}
	}
	return paths
}

// Render notes the new texts of Markdown files, by path.
func (d *Diff) Render(texts map[string]string) {
	for i := range d.Files {
		if text, known := texts[d.Files[i].Path]; known && IsMarkdown(d.Files[i].Path) {
			prose := MarkdownFile(text)
			d.Files[i].Rendered = &prose
		}
	}
}

// Annotate puts what was said beside the lines of this part, and a form below the line with the mark.
func (d *Diff) Annotate(notes map[LineKey][]LineNote, mark string, form func(LineKey) *LineForm) {
	for i := range d.Files {
		f := &d.Files[i]
		for j := range f.Hunks {
			for k := range f.Hunks[j].Lines {
				l := &f.Hunks[j].Lines[k]
				if l.Kind == "note" {
					continue
				}
				key := LineKey{Path: f.Path, Line: l.New}
				if l.Kind == "del" {
					key = LineKey{f.Path, l.Old, true}
				}
				l.Notes = notes[key]
				if l.Kind == "same" {
					l.Notes = append(l.Notes[:len(l.Notes):len(l.Notes)], notes[LineKey{f.Path, l.Old, true}]...)
				}
				if mark != "" && mark == l.Mark {
					l.Form = form(key)
				}
			}
		}
	}
}

// MarkFacts marks the lines of this part that facts are of.
func (d *Diff) MarkFacts(of map[LineKey][]LineFact) {
	for i := range d.Files {
		f := &d.Files[i]
		for j := range f.Hunks {
			for k := range f.Hunks[j].Lines {
				switch l := &f.Hunks[j].Lines[k]; l.Kind {
				case "add":
					l.Facts = of[LineKey{Path: f.Path, Line: l.New}]
				case "del":
					l.Facts = of[LineKey{f.Path, l.Old, true}]
				}
			}
		}
	}
}

// LineHref returns the address of a line on the page, or of its file where the difference does not have the line; "" if
// it has neither.
func (d *Diff) LineHref(key LineKey) string {
	for i, e := range d.Index {
		if e.Path != key.Path {
			continue
		}
		part, mark := e.partOf(key.Line, key.Before), fmt.Sprintf("f%dn%d", i+1, key.Line)
		if key.Before {
			mark = fmt.Sprintf("f%do%d", i+1, key.Line)
		}
		switch {
		case part == d.Part && !d.shows(mark):
			return fmt.Sprintf("#f%d", i+1)
		case part == d.Part:
			return "#" + mark
		case d.Here != "":
			return d.To(part) + "#" + mark
		}
	}
	return ""
}

// shows reports whether a line with the mark is in this part.
func (d *Diff) shows(mark string) bool {
	for _, f := range d.Files {
		for _, h := range f.Hunks {
			for _, l := range h.Lines {
				if l.Mark == mark {
					return true
				}
			}
		}
	}
	return false
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
		r.readLine(strings.TrimSuffix(line, "\n"))
	}
	r.finishFile()
	for i := range r.diff.Files {
		r.diff.Files[i].DiffEntry = r.diff.Index[r.diff.Files[i].Number-1]
	}
	return r.diff
}

func (r *diffReader) readLine(line string) {
	switch {
	case r.oldLeft > 0 || r.newLeft > 0:
		r.body(line)
	case strings.HasPrefix(line, "diff --git "):
		_, name, _ := strings.Cut(line, " b/")
		r.startFile(name)
	case strings.HasPrefix(line, "--- "):
		if !r.begun || r.hunk != "" || r.entry.Kind != "" || r.file != nil && len(r.file.Notes) > 0 {
			r.startFile("")
		}
		r.readFileName(line[4:], "created")
	case strings.HasPrefix(line, "+++ "):
		r.readFileName(line[4:], "deleted")
	case strings.HasPrefix(line, `\`):
		r.appendDiffLine(DiffLine{Kind: "note", Text: "no line break at the end"})
	case strings.HasPrefix(line, "@@ "):
		r.startHunk(line)
	case line == "" || strings.HasPrefix(line, "index ") || strings.HasPrefix(line, "new file mode ") ||
		strings.HasPrefix(line, "deleted file mode "):
	default:
		r.addFileNote(line)
	}
}

// finishFile notes the file that was read.
func (r *diffReader) finishFile() {
	if !r.begun {
		return
	}
	r.diff.Index[len(r.diff.Index)-1] = r.entry
}

// startFile starts a file.
func (r *diffReader) startFile(name string) {
	r.finishFile()
	if r.files == maxPartFiles {
		r.nextPart()
	}
	r.files++
	r.begun, r.hunk = true, ""
	r.entry = DiffEntry{Path: Reveal(name, maxLineRunes), Part: r.diff.Parts}
	r.diff.Index = append(r.diff.Index, r.entry)
	r.allocateFile(false)
}

// allocateFile makes room for the file that is being read, if it is one of the part that is kept.
func (r *diffReader) allocateFile(continued bool) {
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

// readFileName reads a file's name from a header; kind is the kind of change if the file is missing on this side.
func (r *diffReader) readFileName(name, kind string) {
	if !r.begun {
		r.startFile("")
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

func (r *diffReader) addFileNote(line string) {
	if !r.begun {
		r.startFile("")
	}
	if r.file != nil && len(r.file.Notes) < 5 {
		r.file.Notes = append(r.file.Notes, Reveal(line, 300))
	}
}

// startHunk starts a hunk.
func (r *diffReader) startHunk(line string) {
	m := r.header.FindStringSubmatch(line)
	if m == nil || !r.begun {
		r.addFileNote(line)
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
		h := Hunk{Head: r.hunk, oldStart: r.old, oldLines: r.oldLeft, newStart: r.new, newLines: r.newLeft}
		if h.oldLines == 0 { // it stands after the line that it names
			h.oldStart++
		}
		if h.newLines == 0 {
			h.newStart++
		}
		r.file.Hunks = append(r.file.Hunks, h)
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
		r.appendDiffLine(DiffLine{Kind: "add", Sign: "+", New: r.new, Text: text})
		r.new, r.newLeft = r.new+1, r.newLeft-1
	case "-":
		r.entry.Removed++
		r.appendDiffLine(DiffLine{Kind: "del", Sign: "-", Old: r.old, Text: text})
		r.old, r.oldLeft = r.old+1, r.oldLeft-1
	case `\`:
		r.appendDiffLine(DiffLine{Kind: "note", Text: "no line break at the end"})
	default:
		r.appendDiffLine(DiffLine{Kind: "same", Old: r.old, New: r.new, Text: text})
		r.old, r.oldLeft, r.new, r.newLeft = r.old+1, r.oldLeft-1, r.new+1, r.newLeft-1
	}
}

func (r *diffReader) appendDiffLine(line DiffLine) {
	if r.hunk == "" {
		return
	}
	if r.lines == maxPartLines {
		if r.file != nil {
			r.file.Continues = true
		}
		r.nextPart()
		r.files = 1
		r.entry.later = append(r.entry.later, partStart{r.diff.Parts, r.old, r.new})
		r.allocateFile(true)
		if r.file != nil {
			r.file.Hunks = []Hunk{{Head: r.hunk, oldStart: r.old, oldLines: r.oldLeft, newStart: r.new, newLines: r.newLeft}}
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
