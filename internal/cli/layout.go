package cli

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/web/views"
)

// A table stands in the text of an answer as lines of cells until the answer is printed: only then it is known how wide
// the terminal is.
const (
	rowMark    = "\x1e"
	cellMark   = "\x1f"
	columnMark = "\x1d" // begins a head that says how its column gives way
)

// layout says how the columns of a table, named by their heads, give way on a narrow terminal. Columns that it does not
// name are never cut.
type layout struct {
	text  []string // free text, which is cut
	goes  []string // columns that are left out, the first of them first, before text is cut below shortText
	folds bool     // the last column goes on in further lines, and is not cut
}

// listing adds a table whose first row is its head, of capital letters.
func listing(w *strings.Builder, l layout, rows [][]string) {
	head := slices.Clone(rows[0])
	for i, name := range rows[0] {
		kind := "k"
		if slices.Contains(l.text, name) || l.folds && i == len(head)-1 {
			kind = "t"
		}
		head[i] = columnMark + kind + string(rune('a'+slices.Index(l.goes, name)+1)) + name
	}
	for i, row := range rows {
		if l.folds {
			w.WriteString(rowMark)
		}
		if i == 0 {
			w.WriteString(rowMark + strings.Join(head, cellMark) + "\n")
			continue
		}
		columns(w, [][]string{row})
	}
}

// columns adds a table that does not say how it gives way: its columns of sentences are cut. The first row may be a
// head of capital letters.
func columns(w *strings.Builder, rows [][]string) {
	plain := strings.NewReplacer(rowMark, "", cellMark, "", columnMark, "", "\n", " ", "\t", " ")
	for _, row := range rows {
		w.WriteString(rowMark)
		for i, cell := range row {
			if i > 0 {
				w.WriteString(cellMark)
			}
			w.WriteString(plain.Replace(cell))
		}
		w.WriteByte('\n')
	}
}

// sentences adds a table whose last column holds sentences: on a narrow terminal they go on in the next line, and are
// never cut.
func sentences(w *strings.Builder, rows [][]string) {
	for _, row := range rows {
		w.WriteString(rowMark)
		columns(w, [][]string{row})
	}
}

// surface describes where an answer is printed.
type surface struct {
	width  int // of the terminal, in columns; 0 for none: nothing is cut then
	colour bool
	long   bool      // every column, uncut, and times by the clock of this machine
	now    time.Time // from which ages count
}

// lay lays out the tables of a text.
func (s surface) lay(text string) string {
	var out strings.Builder
	var rows [][]string
	folds := false
	for line := range strings.Lines(text) {
		if row, is := strings.CutPrefix(line, rowMark); is {
			row, folds = strings.CutPrefix(row, rowMark)
			rows = append(rows, strings.Split(strings.TrimSuffix(row, "\n"), cellMark))
			continue
		}
		s.table(&out, rows, folds)
		rows = nil
		out.WriteString(line)
	}
	s.table(&out, rows, folds)
	return out.String()
}

const (
	gap       = 2  // between columns
	shortText = 16 // a column of free text is not cut below this width while another can be left out
	shortFold = 30 // one that goes on in further lines is not narrower while another can be cut
	narrowest = 8  // the minimum width of a column of free text
)

// tableColumn is one of a table that is laid out.
type tableColumn struct {
	text  bool // may be cut
	short int  // width below which it is not cut while another column can be left out
	goes  int  // the lower, the sooner it is left out; 0 for never
	width int
	left  bool // out
}

// table lays out rows, two spaces between columns. If it folds, the last column goes on in further lines.
func (s surface) table(out *strings.Builder, rows [][]string, folds bool) {
	if len(rows) == 0 {
		return
	}
	s.showTimes(rows)
	kinds, hasHead := columnsOf(rows)
	if last := &kinds[len(kinds)-1]; folds {
		last.text, last.short = true, shortFold
	}
	if s.width > 0 && !s.long {
		values := rows
		if hasHead {
			values = rows[1:]
		}
		leaveOutEmpty(kinds, values)
		fit(kinds, s.width)
	}
	if folds && s.width > 0 && !s.long {
		fitLast(kinds, s.width)
		rows = foldLast(rows, kinds)
	}
	for number, row := range rows {
		s.line(out, row, kinds, number == 0 && hasHead)
	}
}

// line writes a row. Nothing stands behind its last cell.
func (s surface) line(out *strings.Builder, row []string, kinds []tableColumn, head bool) {
	spaces := 0
	for i, cell := range row {
		kind := kinds[i]
		if kind.left {
			continue
		}
		if cell == "" {
			spaces += kind.width + gap
			continue
		}
		if kind.text && s.width > 0 && !s.long {
			cell = cutTo(cell, kind.width)
		}
		out.WriteString(strings.Repeat(" ", spaces) + s.paint(cell, head, kind.text))
		spaces = kind.width - displayWidth(cell) + gap
		if s.width > 0 && hasRightToLeft(cell) { // else a terminal may order the next cells from right to left, too
			out.WriteString(leftToRightMark)
		}
	}
	out.WriteByte('\n')
}

// columnsOf returns the columns of a table, with the widths that they would have, and takes the marks from its head.
func columnsOf(rows [][]string) (kinds []tableColumn, hasHead bool) {
	declared := false
	for i, cell := range rows[0] {
		if mark, is := strings.CutPrefix(cell, columnMark); is && len(mark) > 1 {
			declared = true
			kinds = append(kinds, tableColumn{text: mark[0] == 't', goes: int(mark[1] - 'a')})
			rows[0][i] = mark[2:]
		}
	}
	hasHead = declared || len(rows) > 1 && isHead(rows[0])
	for _, row := range rows {
		for i, cell := range row {
			if i == len(kinds) {
				kinds = append(kinds, tableColumn{})
			}
			kinds[i].width = max(kinds[i].width, displayWidth(cell))
			if !declared && i > 0 {
				kinds[i].text = kinds[i].text || strings.Contains(cell, " ") && !isAge(cell) || displayWidth(cell) > longestID
			}
		}
	}
	if !declared {
		for i := 1; i < len(kinds); i++ {
			kinds[i].goes = len(kinds) - i
		}
	}
	return kinds, hasHead
}

// longestID is the width of our ids; a column of longer words is cut if nothing else is said about it.
const longestID = 26

// isAge reports whether a cell is an age, such as "3 h", or an amount with its unit.
func isAge(cell string) bool {
	return displayWidth(cell) <= len("in 999 min") && cell != "" && hasDigit(cell)
}

func hasDigit(text string) bool { return strings.ContainsAny(text, "0123456789") }

// leaveOutEmpty leaves out the columns that may go and hold nothing. The rows are those without the head.
func leaveOutEmpty(kinds []tableColumn, rows [][]string) {
	for i := range kinds {
		kinds[i].left = kinds[i].goes > 0 && !slices.ContainsFunc(rows, func(row []string) bool { return row[i] != "" })
	}
}

// fit leaves columns out until the others fit into a width with the free text at least shortText wide, and then cuts
// the widest text as far as it takes.
func fit(kinds []tableColumn, width int) {
	for {
		least := -1
		for i, kind := range kinds {
			if kind.goes > 0 && !kind.left && (least < 0 || kind.goes < kinds[least].goes) {
				least = i
			}
		}
		if least < 0 || total(kinds, true) <= width {
			break
		}
		kinds[least].left = true
	}
	narrow(kinds, width, func(kind tableColumn) int {
		if kind.short == shortFold {
			return shortFold
		}
		return narrowest
	})
	narrow(kinds, width, func(tableColumn) int { return narrowest })
}

// narrow takes from the widest column of free text, again and again, until all fit into a width or none is wider than
// least says.
func narrow(kinds []tableColumn, width int, least func(tableColumn) int) {
	for total(kinds, false) > width {
		widest := -1
		for i, kind := range kinds {
			if kind.text && !kind.left && kind.width > least(kind) && (widest < 0 || kind.width > kinds[widest].width) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		kinds[widest].width--
	}
}

// fitLast narrows the last column alone.
func fitLast(kinds []tableColumn, width int) {
	last := &kinds[len(kinds)-1]
	last.width = max(narrowest, min(last.width, last.width-total(kinds, false)+width))
}

// total is the width of the columns that stay, with those of free text as they are or short.
func total(kinds []tableColumn, short bool) (sum int) {
	shown := 0
	for _, kind := range kinds {
		if kind.left {
			continue
		}
		shown++
		if kind.text && short {
			sum += min(kind.width, max(kind.short, shortText))
			continue
		}
		sum += kind.width
	}
	return sum + gap*max(0, shown-1)
}

// foldLast adds a row for each further line of a last cell that is wider than its column.
func foldLast(rows [][]string, kinds []tableColumn) (out [][]string) {
	for _, row := range rows {
		last := len(row) - 1
		for i, line := range fold(row[last], kinds[last].width) {
			if i > 0 {
				row = make([]string, last+1)
			}
			out = append(out, append(slices.Clone(row[:last]), line))
		}
	}
	return out
}

func isHead(row []string) bool {
	return row[0] != "" && !slices.ContainsFunc(row, func(cell string) bool { return cell != strings.ToUpper(cell) })
}

// showTimes replaces the cells that are a time: by ages at a terminal, and by the clock of this machine if all is to be
// shown. A program that reads the table gets them as they are.
func (s surface) showTimes(rows [][]string) {
	if s.width == 0 && !s.long {
		return
	}
	for _, row := range rows {
		for i, cell := range row {
			at, err := time.Parse(time.RFC3339, cell)
			switch {
			case err != nil:
			case s.long:
				row[i] = at.Local().Format(time.DateTime)
			default:
				row[i] = views.Age(s.now.Sub(at))
			}
		}
	}
}

// paint colours a head, and words for states; not free text.
func (s surface) paint(cell string, head, text bool) string {
	colour := 0
	switch {
	case head:
		colour = bold
	case !text:
		colour = colourOf(cell)
	}
	if !s.colour || cell == "" || colour == 0 {
		return cell
	}
	return painted(colour, cell)
}

func colourOf(word string) int {
	switch stateTones()[word] {
	case views.Good:
		return green
	case views.Bad:
		return red
	case views.Warn:
		return yellow
	case views.Info:
		return cyan
	case views.Done:
		return magenta
	}
	return 0
}

// stateTones returns the tones of the words for states. Those of pages have theirs there.
//
//nolint:gochecknoglobals // made once, then never changed
var stateTones = sync.OnceValue(func() map[string]views.Tone {
	tones := map[string]views.Tone{
		"Good": views.Good, "ok": views.Good, "yes": views.Good, "Expired": views.Mute, "Revoked": views.Bad,
		"error": views.Bad, "no": views.Bad, "warning": views.Warn,
	}
	add := func(w views.Word) { tones[w.Text] = w.Tone }
	for _, o := range record.Outcomes() {
		add(views.Outcome(o))
	}
	for _, s := range record.PullStates() {
		add(wordFor(s))
	}
	for _, s := range sessions.States() {
		add(views.Session(s))
	}
	for _, s := range []gitprovider.ReviewState{gitprovider.ReviewApproved, gitprovider.ReviewChangesRequested} {
		add(views.Review(s))
	}
	return tones
})

// wordFor returns the word that pages have for a state; none for "".
func wordFor[State ~string](s State) views.Word {
	word, err := views.WordOf(s)
	if s == "" || err != nil {
		return views.Word{Text: string(s)}
	}
	return word
}
