package content

import (
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/content/secretrules"
)

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
			j.run(l, run, probe)
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
	at, _ := slices.BinarySearchFunc(l.changed, start, func(s span, start int) int { return s.end - start })
	return at < len(l.changed) && l.changed[at].start <= end
}

// run tries all that begins and ends at pieces of a run, and what is too long for that in whole and by lines of equal
// length.
func (j *joiner) run(l layer, run []piece, probe *secretrules.Probe) {
	hints := []hints{j.hints(l, run, false, probe), j.hints(l, run, true, probe)}
	for first := range run[:len(run)-1] {
		if j.budget < 0 {
			return
		}
		last := reach(run, first)
		j.beyond = l.origin(run[first].line)
		named := probe.Between(around(l, run[first]), run[first].whole.start)
		if !named && !hints[0].within(first, last) && !hints[1].within(first, last) ||
			!j.mayHold(l, run[first:last+1], probe) {
			continue
		}
		for end := first + 1; end <= last && j.budget >= 0; end++ {
			j.try(l, run[first:end+1])
		}
	}
	if reach(run, 0) == len(run)-1 || len(hints[0].at)+len(hints[1].at) == 0 {
		return
	}
	for _, block := range append(blocks(run), run) {
		if j.budget < 0 {
			break
		}
		j.try(l, block)
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
		s := p.span(bare)
		text.WriteString(l.text[s.start:s.end])
	}
	h.starts = append(h.starts, text.Len())
	h.at = probe.Hints(j.work, text.String())
	return h
}

// within says whether a match may begin in the first piece and go on to the last one.
func (h hints) within(first, last int) bool {
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
		first := run[0].span(bare)
		text.WriteString(l.text[around(l, run[0]):first.start])
		before := text.Len()
		for _, p := range run {
			s := p.span(bare)
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

// span returns the part of the text that a piece is.
func (p piece) span(bare bool) span {
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

// try looks at pieces put together: as words, and without the punctuation between them if there is any.
func (j *joiner) try(l layer, run []piece) {
	for _, bare := range []bool{false, true} {
		if bare && !punctuated(run) {
			continue
		}
		b := layerBuilder{from: l}
		b.copyTo(run[0].span(bare).end, around(l, run[0]))
		var joints []int
		for i, p := range run[1:] {
			joints = append(joints, len(b.text))
			end := p.span(bare).end
			if i == len(run)-2 {
				end = behind(l, p)
			}
			b.copyTo(end, p.span(bare).start)
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
