package secretrules

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// byteRange is a part of a text, in bytes.
type byteRange struct{ start, end int }

// margin is the number of bytes of a part of a text beyond what can match, so that an assertion at its edge, such as
// the edge of a word, sees its context: one character.
const margin = utf8.UTFMax

// walkCost is the cost per byte of searching for literals.
const walkCost = 6

// places gives for each rule the parts of text that its expression has to run on, in their order. They do not overlap.
// Of an open text, a match may be in what is left when its end is cut off. Without enough work left, some are missing.
func (s *Set) places(w *Work, text string, open bool) [][]byteRange {
	places := make([][]byteRange, len(s.rules))
	if !w.Spend(walkCost * len(text)) {
		return places
	}
	folded := foldText(text)
	wanted, some := s.wanted(w, folded.lower)
	if !some || !w.Spend(walkCost*len(text)) {
		return places
	}
	width := 1
	if !isASCII(text) {
		width = utf8.UTFMax
	}
	lines := &lineBreaks{text: text}
	s.literals.Walk(folded.lower, func(start, end, literal int) bool {
		here := byteRange{folded.originalOffset(start), folded.originalOffset(end)}
		for _, u := range s.uses[literal] {
			if r := &s.rules[u.rule]; u.reach && wanted[u.rule] && r.begins(w, text, here.start, open) {
				places[u.rule] = mergePlace(places[u.rule], around(lines, here, r.reach, width))
			}
		}
		return w.Spend(0)
	})
	for i, r := range s.rules {
		if wanted[i] && len(r.reach.choices) == 0 {
			places[i] = []byteRange{{0, len(text)}}
		}
	}
	return places
}

// wanted marks the rules of which a text in lower case has a keyword and all else that stands in each match, and
// reports whether there are any.
func (s *Set) wanted(w *Work, lower []byte) (rules []bool, some bool) {
	rules = make([]bool, len(s.rules))
	has := make([]literalLists, len(s.rules))
	seen := make([]bool, len(s.uses))
	for i, r := range s.rules {
		rules[i] = len(r.keywords) == 0
	}
	s.literals.Walk(lower, func(_, _, literal int) bool {
		if !seen[literal] {
			seen[literal] = true
			for _, u := range s.uses[literal] {
				rules[u.rule] = rules[u.rule] || u.keyword
				has[u.rule] |= u.also
			}
		}
		return w.Spend(0)
	})
	for i, r := range s.rules {
		rules[i] = rules[i] && has[i] == 1<<len(r.reach.also)-1
		some = some || rules[i]
	}
	return rules, some
}

// begins says whether what is at an offset of a text can be the literal of a match, as far as the opening tells.
func (r *rule) begins(w *Work, text string, at int, open bool) bool {
	const startCost, readCost = 20, 6
	opening := r.opening()
	if opening == nil {
		return w.Spend(walkCost)
	}
	matched, read := opening.matches(text[at:], open)
	return w.Spend(startCost+readCost*read) && matched
}

// around returns the span of possible matches that contain a literal, and the margin. width is the most bytes of a
// character of text.
func around(lines *lineBreaks, literal byteRange, reach literals, width int) byteRange {
	text := lines.text
	place := byteRange{0, len(text)}
	if before := reach.before; before.chars != unbounded {
		place.start = max(0, literal.start-before.chars*width-margin)
	} else if before.lines != unbounded {
		place.start = lines.before(literal.start, before.lines)
	}
	if after := reach.after; after.chars != unbounded {
		place.end = min(len(text), literal.end+after.chars*width+margin)
	} else if after.lines != unbounded {
		place.end = lines.endAfter(literal.end, after.lines)
	}
	for range utf8.UTFMax - 1 { // a part begins and ends between characters
		if place.start > 0 && !utf8.RuneStart(text[place.start]) {
			place.start--
		}
		if place.end < len(text) && !utf8.RuneStart(text[place.end]) {
			place.end++
		}
	}
	return place
}

// lineBreaks tells where lines of a text begin and end, many times.
type lineBreaks struct {
	text string
	at   []int // made when it is needed
}

// countBefore returns the number of line breaks before an offset.
func (l *lineBreaks) countBefore(at int) int {
	if l.at == nil {
		for i := range len(l.text) {
			if l.text[i] == '\n' {
				l.at = append(l.at, i)
			}
		}
		l.at = append(l.at, len(l.text)) // the end is one, too
	}
	n, _ := slices.BinarySearch(l.at, at)
	return n
}

// before returns the start of the line n line breaks before at, including its line break and the margin before it.
func (l *lineBreaks) before(at, n int) int {
	number := l.countBefore(at) - n - 1
	if number < 0 {
		return 0
	}
	return max(0, l.at[number]-margin)
}

// endAfter returns the end of the line n line breaks behind at, including its line break and the margin.
func (l *lineBreaks) endAfter(at, n int) int {
	number := l.countBefore(at) + n
	if number >= len(l.at) {
		return len(l.text)
	}
	return min(len(l.text), l.at[number]+1+margin)
}

// mergePlace puts a place among places that are in order, and makes one of all that overlap or touch.
func mergePlace(places []byteRange, place byteRange) []byteRange {
	for len(places) > 0 && places[len(places)-1].end >= place.start {
		last := places[len(places)-1]
		place = byteRange{min(last.start, place.start), max(last.end, place.end)}
		places = places[:len(places)-1]
	}
	return append(places, place)
}

// foldedText is a text with the letters of ASCII in lower case, those of foldsToASCII among them.
type foldedText struct {
	lower []byte
	at    []int // offsets in lower of the letters that are shorter there, in order
	more  []int // bytes that the text has more up to each of these, the letter included
}

func foldText(text string) foldedText {
	f := foldedText{lower: make([]byte, 0, len(text))}
	rest := text
	for more := 0; ; {
		next := strings.IndexAny(rest, foldsToASCII)
		if next < 0 {
			break
		}
		r, size := utf8.DecodeRuneInString(rest[next:])
		f.lower = append(append(f.lower, rest[:next]...), letterOf(r))
		more += size - 1
		f.at, f.more = append(f.at, len(f.lower)-1), append(f.more, more)
		rest = rest[next+size:]
	}
	f.lower = append(f.lower, rest...)
	for i, c := range f.lower {
		if 'A' <= c && c <= 'Z' {
			f.lower[i] = c + 'a' - 'A'
		}
	}
	return f
}

// originalOffset returns the offset in the text of an offset in lower.
func (f foldedText) originalOffset(at int) int {
	if n, _ := slices.BinarySearch(f.at, at); n > 0 {
		return at + f.more[n-1]
	}
	return at
}

// Probe tells where in texts a match of some rules may be. It costs far less than Find.
type Probe struct {
	set    *Set
	text   string // that the probe was made for
	of     []bool // the rules
	wanted []bool // the rules of which a text had a keyword
	names  []hit  // literals of the text
}

// hit is the place of a rule's literal in a text.
type hit struct{ at, rule int }

// Hint says that the text at At has a part of a match that begins at From or later, and at At or before it.
type Hint struct{ From, At int }

// Probe prepares for parts of text that are put together in other ways, for those rules of which wanted is true.
func (s *Set) Probe(w *Work, text string, wanted func(rule string) bool) *Probe {
	p := &Probe{set: s, text: text, of: make([]bool, len(s.rules)), wanted: make([]bool, len(s.rules))}
	for i, r := range s.rules {
		p.of[i] = wanted(r.id)
	}
	p.names = p.hits(w, text)
	return p
}

// Between says whether from start to end the text of the probe has something that every match of some rule contains.
func (p *Probe) Between(w *Work, start, end int) bool {
	at, _ := slices.BinarySearchFunc(p.names, start, func(h hit, start int) int { return h.at - start })
	for ; at < len(p.names) && p.names[at].at < end; at++ {
		h := p.names[at]
		r := &p.set.rules[h.rule]
		if p.wanted[h.rule] && (r.reach.before.chars != 0 || r.begins(w, p.text, h.at, true)) {
			return true
		}
	}
	return false
}

// Hints lists, in order, where in another text matches may be. Their rule has one of its keywords there or in the text
// of the probe. Without enough work left, some are missing.
func (p *Probe) Hints(w *Work, text string) []Hint {
	var all []Hint
	for _, h := range p.hits(w, text) {
		r := &p.set.rules[h.rule]
		if !p.wanted[h.rule] || !r.begins(w, text, h.at, true) {
			continue
		}
		hint := Hint{At: h.at}
		if before := r.reach.before.chars; before != unbounded {
			hint.From = max(0, h.at-before)
		}
		all = append(all, hint)
	}
	slices.SortFunc(all, func(a, b Hint) int { return cmp.Or(a.At-b.At, a.From-b.From) })
	return slices.Compact(all)
}

// hits lists, in order, where a text has literals of the rules, and notes of which it has a keyword.
func (p *Probe) hits(w *Work, text string) []hit {
	var hits []hit
	if !w.Spend(walkCost * len(text)) {
		return nil
	}
	folded := foldText(text)
	p.set.literals.Walk(folded.lower, func(start, _, literal int) bool {
		for _, u := range p.set.uses[literal] {
			if !p.of[u.rule] {
				continue
			}
			p.wanted[u.rule] = p.wanted[u.rule] || u.keyword || len(p.set.rules[u.rule].keywords) == 0
			if u.reach {
				hits = append(hits, hit{folded.originalOffset(start), u.rule})
			}
		}
		return w.Spend(0)
	})
	slices.SortFunc(hits, func(a, b hit) int { return a.at - b.at })
	return hits
}

// MayMatch says whether a text, or its beginning alone, has all that a match of one of the rules needs.
func (p *Probe) MayMatch(w *Work, text string) bool {
	for i, places := range p.set.places(w, text, true) {
		if len(places) > 0 && p.of[i] {
			return true
		}
	}
	return false
}
