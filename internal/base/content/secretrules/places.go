package secretrules

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// span is a part of a text, in bytes.
type span struct{ start, end int }

// margin is the number of bytes of a part of a text beyond what can match, so that an assertion at its edge, such as
// the edge of a word, sees its context: one character.
const margin = utf8.UTFMax

// walkCost is the cost per byte of searching for literals.
const walkCost = 10

// places gives for each rule the parts of text that its expression has to run on, in their order. They do not overlap.
// Without enough work left, some are missing.
func (s *Set) places(w *Work, text string) [][]span {
	places := make([][]span, len(s.rules))
	if !w.Spend(walkCost * len(text)) {
		return places
	}
	if strings.ContainsAny(text, foldsToASCII) {
		return s.wherever(text)
	}
	width := 1
	if !isASCII(text) {
		width = utf8.UTFMax
	}
	wanted := make([]bool, len(s.rules))
	has := make([]lists, len(s.rules))
	lines := &lineBreaks{text: text}
	lower := lowerASCII(text)
	s.literals.Walk(lower, func(at, length, literal int64) bool {
		end := int(at) + 1
		for _, u := range s.uses[literal] {
			if u.keyword {
				wanted[u.rule] = true
			}
			has[u.rule] |= u.also
			if !u.reach {
				continue
			}
			if here := (span{end - int(length), end}); s.rules[u.rule].begins(w, text, here.start, width) {
				places[u.rule] = add(places[u.rule], around(lines, here, s.rules[u.rule].reach, width))
			}
		}
		return w.Spend(0)
	})
	for i := range s.rules {
		switch r := &s.rules[i]; {
		case len(r.keywords) > 0 && !wanted[i], has[i] != 1<<len(r.reach.also)-1:
			places[i] = nil
		case len(r.reach.choices) == 0:
			places[i] = []span{{0, len(text)}}
		}
	}
	return places
}

// wherever has the whole text for each rule with a keyword in it: literals say nothing about texts with characters that
// only a change of case turns into ASCII.
func (s *Set) wherever(text string) [][]span {
	places := make([][]span, len(s.rules))
	for i := range s.rules {
		if len(s.rules[i].keywords) == 0 {
			places[i] = []span{{0, len(text)}}
		}
	}
	s.literals.Walk([]byte(strings.ToLower(text)), func(_, _, literal int64) bool {
		for _, u := range s.uses[literal] {
			if u.keyword {
				places[u.rule] = []span{{0, len(text)}}
			}
		}
		return true
	})
	return places
}

// begins says whether what is at an offset of a text can be the literal of a match, as far as the opening tells.
func (r *rule) begins(w *Work, text string, at, width int) bool {
	const failCost, matchCost = 120, 600
	o := r.opening()
	if o == nil {
		return w.Spend(walkCost)
	}
	if !o.expression.MatchString(text[at:min(len(text), at+o.most*width)]) {
		w.Spend(failCost)
		return false
	}
	return w.Spend(matchCost)
}

// around returns the span of possible matches that contain a literal, and the margin. width is the most bytes of a
// character of text.
func around(lines *lineBreaks, literal span, reach literals, width int) span {
	text := lines.text
	place := span{0, len(text)}
	if before := reach.before; before.chars != unbounded {
		place.start = max(0, literal.start-before.chars*width-margin)
	} else if before.lines != unbounded {
		place.start = lines.before(literal.start, before.lines)
	}
	if after := reach.after; after.chars != unbounded {
		place.end = min(len(text), literal.end+after.chars*width+margin)
	} else if after.lines != unbounded {
		place.end = lines.after(literal.end, after.lines)
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

// number returns the number of line breaks before an offset.
func (l *lineBreaks) number(at int) int {
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
	number := l.number(at) - n - 1
	if number < 0 {
		return 0
	}
	return max(0, l.at[number]-margin)
}

// after returns the end of the line n line breaks behind at, including its line break and the margin.
func (l *lineBreaks) after(at, n int) int {
	number := l.number(at) + n
	if number >= len(l.at) {
		return len(l.text)
	}
	return min(len(l.text), l.at[number]+1+margin)
}

// add puts a place among places that are in order, and makes one of all that overlap or touch.
func add(places []span, place span) []span {
	for len(places) > 0 && places[len(places)-1].end >= place.start {
		last := places[len(places)-1]
		place = span{min(last.start, place.start), max(last.end, place.end)}
		places = places[:len(places)-1]
	}
	return append(places, place)
}

// lowerASCII returns text with the letters of ASCII in lower case, and as many bytes.
func lowerASCII(text string) []byte {
	lower := []byte(text)
	toLowerASCII(lower)
	return lower
}

func toLowerASCII(text []byte) {
	for i, c := range text {
		if 'A' <= c && c <= 'Z' {
			text[i] = c + 'a' - 'A'
		}
	}
}

// Probe tells where in texts a match of some rules may be. It costs far less than Find.
type Probe struct {
	set    *Set
	of     []bool // the rules
	wanted []bool // the rules of which a text had a keyword
	names  []hit  // literals of the text that the probe was made for
}

// hit is the place of a rule's literal in a text.
type hit struct{ at, rule int }

// Hint says that the text at At has a part of a match that begins at From or later, and at At or before it.
type Hint struct{ From, At int }

// Probe prepares for parts of text that are put together in other ways, for those rules of which wanted is true.
func (s *Set) Probe(w *Work, text string, wanted func(rule string) bool) *Probe {
	p := &Probe{set: s, of: make([]bool, len(s.rules)), wanted: make([]bool, len(s.rules))}
	for i, r := range s.rules {
		p.of[i] = wanted(r.id)
	}
	p.names = p.walk(w, text, false)
	return p
}

// Between says whether from start to end the text of the probe has something that every match of some rule contains.
func (p *Probe) Between(start, end int) bool {
	at, _ := slices.BinarySearchFunc(p.names, start, func(h hit, start int) int { return h.at - start })
	for ; at < len(p.names) && p.names[at].at < end; at++ {
		if p.wanted[p.names[at].rule] {
			return true
		}
	}
	return false
}

// Hints lists, in order, where in another text matches may be. Their rule has one of its keywords there or in the text
// of the probe. Without enough work left, some are missing.
func (p *Probe) Hints(w *Work, text string) []Hint {
	var all []Hint
	for _, h := range p.walk(w, text, true) {
		if !p.wanted[h.rule] {
			continue
		}
		hint := Hint{At: h.at}
		if before := p.set.rules[h.rule].reach.before.chars; before != unbounded {
			hint.From = max(0, h.at-before)
		}
		all = append(all, hint)
	}
	slices.SortFunc(all, func(a, b Hint) int { return cmp.Or(a.At-b.At, a.From-b.From) })
	return slices.Compact(all)
}

func (p *Probe) walk(w *Work, text string, opened bool) []hit {
	var hits []hit
	if !w.Spend(walkCost * len(text)) {
		return nil
	}
	width := 1
	if !isASCII(text) {
		width = utf8.UTFMax
	}
	p.set.literals.Walk(lowerASCII(text), func(at, length, literal int64) bool {
		start := int(at) + 1 - int(length)
		for _, u := range p.set.uses[literal] {
			r := &p.set.rules[u.rule]
			if !p.of[u.rule] {
				continue
			}
			p.wanted[u.rule] = p.wanted[u.rule] || u.keyword || len(r.keywords) == 0
			if u.reach && (!opened && r.reach.before.chars != 0 || r.begins(w, text, start, width)) {
				hits = append(hits, hit{start, u.rule})
			}
		}
		return w.Spend(0)
	})
	if !opened {
		slices.SortFunc(hits, func(a, b hit) int { return a.at - b.at })
	}
	return hits
}

// MayMatch says whether a text has all that a match of one of the rules needs.
func (p *Probe) MayMatch(w *Work, text string) bool {
	for i, places := range p.set.places(w, text) {
		if len(places) > 0 && p.of[i] {
			return true
		}
	}
	return false
}
