package outgoing

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// edit puts something in the place of text[at:at+cut].
type edit struct {
	at, cut int
	put     string
}

// insertion puts text before an offset.
func insertion(at int, text string) edit { return edit{at: at, put: text} }

// entity writes the ASCII character at an offset as an entity: it is shown, and begins nothing.
func entity(text string, at int) edit {
	put := "&#" + strconv.Itoa(int(text[at])) + ";"
	switch text[at] {
	case '<':
		put = "&lt;"
	case '&':
		put = "&amp;"
	}
	return edit{at: at, cut: 1, put: put}
}

// apply makes the edits. Of two that touch the same characters the first is made; the other is found again, if it is
// still needed, in the next round.
func (*rewriter) apply(text string, edits []edit) string {
	if len(edits) == 0 {
		return text
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Or(a.at-b.at, b.cut-a.cut) })
	var b strings.Builder
	done, last := 0, edit{at: -1}
	for _, e := range edits {
		if e.at < done || e.at == last.at {
			continue
		}
		b.WriteString(text[done:e.at])
		b.WriteString(e.put)
		done, last = e.at+e.cut, e
	}
	b.WriteString(text[done:])
	return b.String()
}
