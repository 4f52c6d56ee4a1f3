package secretrules

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

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
