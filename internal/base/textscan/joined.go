package textscan

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/textscan/secretrules"
)

// piece is a word that may be one part of a credential.
type piece struct {
	line  int       // where its line begins
	whole byteRange // the word
	bare  byteRange // without punctuation at its ends, such as a hyphen at the end of a line
	mark  bool      // it only counts or marks its line: "1.", "b)", "[x]", "12 |"
}

// maxColumns limits the columns of a text that are searched for pieces that stand below each other.
const maxColumns = 8

// flow gives the pieces of a text that only white space, punctuation, marks of lists and rules part, in runs of two and
// more: words over a line break, and strings in a row.
func (l layer) flow() [][]piece {
	var runs [][]piece
	var run []piece
	end := func() {
		if len(run) > 1 {
			runs = append(runs, slices.Clip(run))
			run = run[len(run):] // the rest of the array
			return
		}
		run = run[:0]
	}
	last, newLine := 0, false // where the word before ends, and whether a line ended between it and a mark
	for word := range eachWord(l.text) {
		between := l.text[last:word.whole.start]
		last = word.whole.end
		if word.mark {
			newLine = newLine || strings.Contains(between, "\n")
			continue
		}
		if len(run) > 0 && !newLine && !joins(between) {
			end()
		}
		newLine = false
		if word.cutShort(l.text) {
			end()
			continue
		}
		if l.text[word.whole.end-1] == ':' {
			end() // a name begins
		}
		run = append(run, word)
	}
	end()
	return runs
}

// columns gives the pieces that stand below each other in lines one after the other, in runs of two and more: the first
// words, the last ones, and those of the columns of a table. Words of prose end a run.
func (l layer) columns() [][]piece {
	var runs [][]piece
	var open [maxColumns][]piece
	end := func(column int) {
		if len(open[column]) > 1 {
			runs = append(runs, open[column])
		}
		open[column] = nil
	}
	line, seen, cell := -1, 0, 0
	var last [maxColumns]piece
	var filled [maxColumns]bool
	endLine := func() {
		for column := range maxColumns {
			if !filled[column] || isPlainWords(l.text[last[column].bare.start:last[column].bare.end]) {
				end(column)
				continue
			}
			open[column] = append(open[column], last[column])
		}
		filled = [maxColumns]bool{}
	}
	for word := range eachWord(l.text) {
		if word.mark || word.cutShort(l.text) {
			continue
		}
		if word.line != line {
			if line >= 0 {
				endLine()
			}
			line, seen, cell = word.line, word.line, 1
			last[0], filled[0] = word, true
		}
		value := word.value(l.text)
		last[1], filled[1] = value, true
		cell += strings.Count(l.text[seen:word.whole.start], "|")
		seen = word.whole.end
		if cell > 1 && cell < maxColumns {
			last[cell], filled[cell] = value, true
		}
	}
	if line >= 0 {
		endLine()
	}
	for column := range maxColumns {
		end(column)
	}
	return runs
}

// cutShort says whether a word is the beginning of a sample with dots for the rest, such as "ghp_...".
func (p piece) cutShort(text string) bool {
	const most = 12 // characters
	return strings.HasSuffix(text[p.whole.start:p.whole.end], "...") && p.bare.end-p.bare.start <= most
}

// value returns the part of a word behind its last equals sign or colon.
func (p piece) value(text string) piece {
	word := text[p.bare.start:p.bare.end]
	if at := strings.LastIndexAny(word, "=:") + 1; at > 0 {
		p.bare.start += at
		p.whole.start = p.bare.start
	}
	return p
}

// eachWord calls yield with each word of a text that may be a piece.
func eachWord(text string) func(yield func(piece) bool) {
	return func(yield func(piece) bool) {
		line, first := 0, true
		for at := 0; at < len(text); {
			if text[at] == '\n' {
				line, first = at+1, true
			}
			if !inWord(text[at]) {
				at++
				continue
			}
			end := at
			for end < len(text) && inWord(text[end]) {
				end++
			}
			p := piece{line: line, whole: byteRange{at, end}, bare: byteRange{at, end}}
			for p.bare.start < end && !isAlphanumeric(text[p.bare.start]) && text[p.bare.start] != '_' {
				p.bare.start++
			}
			for p.bare.end > p.bare.start && !isAlphanumeric(text[p.bare.end-1]) && text[p.bare.end-1] != '_' {
				p.bare.end--
			}
			at = end
			if p.bare.start == p.bare.end {
				continue
			}
			p.mark = first && isMark(text[p.whole.start:p.whole.end], text[end:])
			first = first && p.mark
			if !yield(p) {
				return
			}
		}
	}
}

// inWord says whether c is a character of words: of credentials, and of what stands inside of some.
func inWord(c byte) bool {
	switch c {
	case '_', '-', '=', '.', ':', '/', '+', '@', '~', '%', '$':
		return true
	}
	return isAlphanumeric(c)
}

// isMark says whether the first word of a line counts or marks it.
func isMark(word, rest string) bool {
	const most = 3 // digits
	number := strings.TrimRight(word, ".:")
	if len(word)-len(number) > 1 || rest == "" || strings.IndexByte(" \t)]|", rest[0]) < 0 {
		return false
	}
	return len(number) == 1 || len(number) <= most && strings.Trim(number, "0123456789") == ""
}

// joins says whether what stands between two words may stand inside of a credential that is written in parts.
func joins(between string) bool {
	newLine, operator, space := false, false, false
	for _, r := range between {
		switch {
		case r == '\n':
			newLine = true
		case r == ' ', r == '\t', r == '\r':
			space = true
		case strings.ContainsRune("\"'`+|", r):
			operator = true
		case unicode.IsLetter(r):
			return false
		}
	}
	return newLine || operator || !space && len(between) <= utf8.UTFMax && strings.Trim(between, "*~\\_") == ""
}

// isPlainWords says whether a piece reads as words and numbers, such as "Node-07", rather than as a part of a
// credential.
func isPlainWords(text string) bool {
	const capitals = 8 // characters
	for word := range wordsIn(text) {
		if !ordinary(word) || len(word) >= capitals && strings.ToUpper(word) == word {
			return false
		}
	}
	return true
}

// wordy says whether half of what was put together is words.
func wordy(text string) bool {
	const least = 4 // characters
	length := 0
	for word := range wordsIn(text) {
		if len(word) >= least && ordinary(word) {
			length += len(word)
		}
	}
	return 2*length >= len(text)
}

// wordsIn gives the letters and digits of a text that stand together.
func wordsIn(text string) func(yield func(word string) bool) {
	return strings.FieldsFuncSeq(text, func(r rune) bool { return r >= utf8.RuneSelf || !isAlphanumeric(byte(r)) })
}

// ordinary says whether a word is short, or letters and numbers as in prose and names.
func ordinary(word string) bool {
	const least = 4 // characters
	mixed := strings.ToUpper(word) != word && strings.ToLower(word[1:]) != word[1:]
	return len(word) < least || !mixed && isWord(word)
}

const (
	// maxPieces is the number of pieces of a credential that are joined whatever is around them.
	maxPieces = 24
	// maxJoined bounds these pieces together, in bytes.
	maxJoined = 320
	// maxAround bounds what is looked at of the lines before the first piece and behind the last one, in bytes.
	maxAround = 128
	// minJoined is the length in bytes below which what is put together could hold no credential.
	minJoined = 12
	// perTry is the number of bytes of text whose search costs as much as the start of a search; cheaper is the factor by
	// which ruling out a credential costs less than looking for one.
	perTry, cheaper = 512, 4
)

// joiner looks for credentials in pieces of a text that are put together: every piece is tried as the first one and as
// the last one, so that what stands before and behind a credential cannot hide it.
type joiner struct {
	rules *secretrules.Set
	work  *secretrules.Work
	// budget is the number of bytes that may still be searched.
	budget int
	// beyond is the offset in the original from which on nothing more is tried.
	beyond int
	// report gets each credential that stands across pieces.
	report func(f secretrules.Finding, in layer)
}

// layer looks at the pieces of a layer. It gives the offset in the original of where the budget was used up, or a
// negative number.
func (j *joiner) layer(l layer) (beyond int) {
	if !j.work.Spend(2 * layerCost * len(l.text)) { // for both kinds of pieces
		return -1
	}
	var probe *secretrules.Probe // made when it is needed, which is rare
	for _, runs := range [][][]piece{l.flow(), l.columns()} {
		for _, run := range runs {
			if !l.hasDigit(run) || !l.changedIn(run[0].line, run[len(run)-1].whole.end) {
				continue // it is words, or the layer before has these pieces as well
			}
			if probe == nil {
				probe = j.rules.Probe(j.work, l.text, hasForm)
			}
			j.scanRun(l, run, probe)
			if j.budget < 0 {
				return j.beyond
			}
		}
	}
	return -1
}

// hasDigit reports whether pieces have a digit; without one they are not a credential.
func (l layer) hasDigit(run []piece) bool {
	return slices.ContainsFunc(run,
		func(p piece) bool { return strings.ContainsAny(l.text[p.whole.start:p.whole.end], "0123456789") })
}

// changedIn says whether the step that made a layer has changed something from start to end, as far as is known.
func (l layer) changedIn(start, end int) bool {
	if l.changed == nil {
		return true
	}
	at, _ := slices.BinarySearchFunc(l.changed, start, func(s byteRange, start int) int { return s.end - start })
	return at < len(l.changed) && l.changed[at].start <= end
}

// scanRun tries all that begins and ends at pieces of a run, and what is too long for that in whole and by lines of
// equal length.
func (j *joiner) scanRun(l layer, run []piece, probe *secretrules.Probe) {
	hints := []hints{j.hints(l, run, false, probe), j.hints(l, run, true, probe)}
	for first := range run[:len(run)-1] {
		if j.budget < 0 {
			return
		}
		last := reach(run, first)
		j.beyond = l.originalOffset(run[first].line)
		named := probe.Between(j.work, around(l, run[first]), run[first].whole.start)
		if !named && !hints[0].mayJoin(first, last) && !hints[1].mayJoin(first, last) ||
			!j.mayHold(l, run[first:last+1], probe) {
			continue
		}
		for end := first + 1; end <= last && j.budget >= 0; end++ {
			j.scanJoined(l, run[first:end+1])
		}
	}
	if reach(run, 0) == len(run)-1 || len(hints[0].at)+len(hints[1].at) == 0 {
		return
	}
	for _, block := range append(blocks(run), run) {
		if j.budget < 0 {
			break
		}
		j.scanJoined(l, block)
	}
}

// hints lists where joined pieces have what a rule looks for.
type hints struct {
	starts []int // of the pieces, and the end
	at     []secretrules.Hint
}

func (j *joiner) hints(l layer, run []piece, bare bool, probe *secretrules.Probe) hints {
	if bare && !punctuated(run) {
		return hints{}
	}
	var h hints
	var text strings.Builder
	for _, p := range run {
		h.starts = append(h.starts, text.Len())
		s := p.spanOf(bare)
		text.WriteString(l.text[s.start:s.end])
	}
	h.starts = append(h.starts, text.Len())
	h.at = probe.Hints(j.work, text.String())
	return h
}

// mayJoin says whether a match may begin in the first piece and go on to the last one.
func (h hints) mayJoin(first, last int) bool {
	if len(h.at) == 0 {
		return false
	}
	i, _ := slices.BinarySearchFunc(h.at, h.starts[first],
		func(hint secretrules.Hint, start int) int { return hint.At - start })
	for ; i < len(h.at) && h.at[i].At < h.starts[last+1]; i++ {
		if h.at[i].From < h.starts[first+1] {
			return true
		}
	}
	return false
}

// reach returns the last piece of a run that is put together with the one at first.
func reach(run []piece, first int) int {
	last, length := first, run[first].length()
	for last+1 < len(run) && last+1-first < maxPieces && length+run[last+1].length() <= maxJoined {
		last++
		length += run[last].length()
	}
	return last
}

// blocks gives the parts of a run that are as long as each other, with a shorter one at the end, as text is broken at a
// width.
func blocks(run []piece) [][]piece {
	var all [][]piece
	for start := 0; start < len(run); {
		end := start + 1
		for end < len(run) && run[end].length() == run[start].length() {
			end++
		}
		next := end
		if end < len(run) && run[end].length() < run[start].length() {
			end++
		}
		if end-start > 2 && end-start < len(run) {
			all = append(all, run[start:end])
		}
		start = next
	}
	return all
}

// mayHold says whether pieces that are put together hold what a rule looks for.
func (j *joiner) mayHold(l layer, run []piece, probe *secretrules.Probe) bool {
	for _, bare := range []bool{false, true} {
		if bare && !punctuated(run) {
			continue
		}
		var text strings.Builder
		first := run[0].spanOf(bare)
		text.WriteString(l.text[around(l, run[0]):first.start])
		before := text.Len()
		for _, p := range run {
			s := p.spanOf(bare)
			text.WriteString(l.text[s.start:s.end])
		}
		j.budget -= (text.Len() + perTry) / cheaper
		together := text.String()[before:]
		if len(together) >= minJoined && strings.ContainsAny(together, "0123456789") &&
			probe.MayMatch(j.work, text.String()) {
			return true
		}
	}
	return false
}

func (p piece) length() int { return p.whole.end - p.whole.start }

// spanOf returns the part of the text that a piece is.
func (p piece) spanOf(bare bool) byteRange {
	if bare {
		return p.bare
	}
	return p.whole
}

// around returns the start of the searched text before a piece: at most maxAround bytes before it, in its line, and not
// within a word.
func around(l layer, p piece) int {
	if p.whole.start-p.line <= maxAround {
		return p.line
	}
	from := p.whole.start - maxAround
	if space := strings.IndexAny(l.text[from:p.whole.start], " \t"); space >= 0 {
		return from + space
	}
	return p.whole.start
}

// behind returns the end of the searched text behind one.
func behind(l layer, p piece) int {
	rest := l.text[p.whole.end:]
	if newLine := strings.IndexByte(rest[:min(len(rest), maxAround)], '\n'); newLine >= 0 {
		return p.whole.end + newLine
	}
	if len(rest) <= maxAround {
		return len(l.text)
	}
	return p.whole.end + max(0, strings.LastIndexAny(rest[:maxAround], " \t"))
}

// scanJoined looks at pieces put together: as words, and without the punctuation between them if there is any.
func (j *joiner) scanJoined(l layer, run []piece) {
	for _, bare := range []bool{false, true} {
		if bare && !punctuated(run) {
			continue
		}
		b := layerBuilder{from: l}
		b.copyTo(run[0].spanOf(bare).end, around(l, run[0]))
		var joints []int
		for i, p := range run[1:] {
			joints = append(joints, len(b.text))
			end := p.spanOf(bare).end
			if i == len(run)-2 {
				end = behind(l, p)
			}
			b.copyTo(end, p.spanOf(bare).start)
		}
		if j.budget -= len(b.text) + perTry; j.budget < 0 {
			return
		}
		part := b.layer()
		for _, f := range j.rules.FindWithin(j.work, part.text) {
			if crosses(f, joints) {
				j.report(f, part)
			}
		}
	}
}

// punctuated says whether punctuation stands where pieces are put together.
func punctuated(run []piece) bool {
	for i, p := range run {
		if i > 0 && p.bare.start != p.whole.start || i < len(run)-1 && p.bare.end != p.whole.end {
			return true
		}
	}
	return false
}

// crosses says whether a credential stands on both sides of a joint.
func crosses(f secretrules.Finding, joints []int) bool {
	for _, joint := range joints {
		if f.From < joint && joint < f.To {
			return true
		}
	}
	return false
}
