package cli

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// A table stands in the text of an answer as lines of cells until the answer is printed: only then it is known how wide
// the terminal is.
const (
	rowMark  = "\x1e"
	cellMark = "\x1f"
)

// columns adds a table. The first row may be a head of capital letters.
func columns(w *strings.Builder, rows [][]string) {
	plain := strings.NewReplacer(rowMark, "", cellMark, "", "\n", " ")
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

// surface describes where an answer is printed.
type surface struct {
	width  int // of the terminal, in columns; 0 for none: nothing is cut then
	colour bool
}

// lay lays out the tables of a text.
func (s surface) lay(text string) string {
	var out strings.Builder
	var rows [][]string
	for line := range strings.Lines(text) {
		if row, is := strings.CutPrefix(line, rowMark); is {
			rows = append(rows, strings.Split(strings.TrimSuffix(row, "\n"), cellMark))
			continue
		}
		s.table(&out, rows)
		rows = nil
		out.WriteString(line)
	}
	s.table(&out, rows)
	return out.String()
}

// gap is between columns.
const gap = 2

// table lays out rows, two spaces between columns.
func (s surface) table(out *strings.Builder, rows [][]string) {
	widths := s.widths(rows)
	for number, row := range rows {
		head := number == 0 && len(rows) > 1 && isHead(row)
		for i, cell := range row {
			cell = cut(cell, widths[i])
			padding := ""
			if i < len(row)-1 {
				padding = strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+gap)
			}
			out.WriteString(s.paint(cell, head) + padding)
		}
		out.WriteByte('\n')
	}
}

// narrowest is the minimum width of a column, in characters.
const narrowest = 8

// widths returns the widths of the columns. If they are too wide for the terminal, the widest ones are reduced step by
// step.
func (s surface) widths(rows [][]string) (widths []int) {
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	if s.width == 0 || len(widths) == 0 {
		return widths
	}
	total := gap * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; total > s.width; total-- {
		widest := slices.Index(widths, slices.Max(widths))
		if widths[widest] <= narrowest {
			break
		}
		widths[widest]--
	}
	return widths
}

// cut shortens a cell, and shows that it did.
func cut(cell string, width int) string {
	runes := []rune(cell)
	if len(runes) <= width || width < 1 {
		return cell
	}
	return string(runes[:width-1]) + "…"
}

func isHead(row []string) bool {
	return row[0] != "" && !slices.ContainsFunc(row, func(cell string) bool { return cell != strings.ToUpper(cell) })
}

// paint colours a head, and words that say how something went.
func (s surface) paint(cell string, head bool) string {
	colour := colourOf(cell)
	if head {
		colour = bold
	}
	if !s.colour || cell == "" || colour == 0 {
		return cell
	}
	return painted(colour, cell)
}

func colourOf(word string) int {
	switch word {
	case "opened", "revised", "reused", "merged", "succeeded", "done", "good", "ok", "yes":
		return green
	case "refused", "failed", "timeout", "interrupted", "error", "no":
		return red
	case "dry_run", "limit", "cancelled", "skipped", "warning", "running":
		return yellow
	}
	return 0
}
