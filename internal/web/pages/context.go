package pages

import "strings"

// Bounds of the unchanged lines beside the hunks of one page. What is beyond them is counted, not shown.
const (
	maxGapLines     = 300
	maxContextLines = 2000
)

// Gap is a run of unchanged lines before a hunk, or after the last one, which people open.
type Gap struct {
	Count int
	Lines []DiffLine // nil where they are too many
}

// Pairs returns its lines side by side.
func (g *Gap) Pairs() []DiffPair { return pair(g.Lines) }

// Surround adds the unchanged lines around the hunks of this part, from the new texts of its files, by path. A file
// whose text does not fit its hunks gets none.
func (d *Diff) Surround(texts map[string]string) {
	left := maxContextLines
	for i := range d.Files {
		f := &d.Files[i]
		if text, known := texts[f.Path]; known && f.Kind == "changed" {
			lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
			if f.fits(lines) {
				f.surround(lines, &left)
			}
		}
	}
}

// fits reports whether the lines of the hunks are those of the new text.
func (f *DiffFile) fits(lines []string) bool {
	for _, h := range f.Hunks {
		for _, l := range h.Lines {
			if l.New > 0 && (l.New > len(lines) || Reveal(strings.TrimSuffix(lines[l.New-1], "\r"), maxLineRunes) != l.Text) {
				return false
			}
		}
	}
	return true
}

func (f *DiffFile) surround(lines []string, left *int) {
	before, after := 1, 1 // the next lines that no hunk has
	for i := range f.Hunks {
		h := &f.Hunks[i]
		if i > 0 || !f.Continued {
			h.Gap = gapOf(lines, before, after, h.newStart, left)
		}
		before, after = h.oldStart+h.oldLines, h.newStart+h.newLines
	}
	if len(f.Hunks) > 0 && !f.Continues {
		f.Tail = gapOf(lines, before, after, len(lines)+1, left)
	}
}

// gapOf returns the lines of the new text from one up to another; nil for none. left is what the page has room for.
func gapOf(lines []string, before, from, to int, left *int) *Gap {
	if to <= from || to > len(lines)+1 {
		return nil
	}
	g := &Gap{Count: to - from}
	if g.Count > min(maxGapLines, *left) {
		return g
	}
	*left -= g.Count
	for n := from; n < to; n++ {
		text := Reveal(strings.TrimSuffix(lines[n-1], "\r"), maxLineRunes)
		g.Lines = append(g.Lines, DiffLine{Kind: "same", Old: before + n - from, New: n, Text: text,
			Tokens: []Token{{Text: text}}})
	}
	return g
}
