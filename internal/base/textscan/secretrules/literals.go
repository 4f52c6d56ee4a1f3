package secretrules

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

const (
	// maxChoices limits the alternative literals for one part of an expression; a part with more has none.
	maxChoices = 40
	// unbounded is a number without a limit.
	unbounded = -1
)

// extent is the most that a part of an expression can match.
type extent struct {
	chars int // characters, or unbounded
	lines int // line breaks among them, or unbounded
}

// literals are strings of which every match of an expression contains at least one, in lower case, and how far the
// match can reach around it. No choices means that nothing of the kind is known. They hold for texts as foldText
// returns them.
type literals struct {
	choices []string
	before  extent // of a match before the literal
	after   extent // of a match behind it
	// opening, if not nil, matches where such a literal begins that is part of a match.
	opening *syntax.Regexp
	// also are more literals: every match contains at least one of each of these lists too.
	also [][]string
}

// shape describes the texts that a part of an expression can match.
type shape struct {
	exact    []string // all that it can match, in lower case; nil if that is too much or unknown
	required literals
	most     extent
}

// best gives the literals that a search should look for.
func (s shape) best() literals {
	if found := (literals{choices: s.exact}); found.better(s.required) {
		return found
	}
	return s.required
}

// better reports whether a search for l costs less than one for other: long literals first, of these the ones whose
// match has bounds, then those at its beginning, of these the longest, and the fewest.
func (l literals) better(other literals) bool {
	const telling = 3 // characters, from which on a literal is rare enough in prose
	length, otherLength := l.shortest(), other.shortest()
	switch bounded, otherBounded := l.hasBounds(), other.hasBounds(); {
	case length == 0 || otherLength == 0:
		return length > otherLength
	case bounded != otherBounded && min(length, otherLength) >= telling:
		return bounded
	case l.leads() != other.leads() && min(length, otherLength) >= telling:
		return l.leads()
	case length != otherLength:
		return length > otherLength
	}
	return len(l.choices) < len(other.choices)
}

// leads reports whether a match begins with the literal.
func (l literals) leads() bool { return l.before.chars == 0 }

func (l literals) hasBounds() bool { return l.before.hasBounds() && l.after.hasBounds() }

// hasBounds reports whether a part has an end that is known before it is matched: some characters, or some lines, away.
func (e extent) hasBounds() bool { return e.chars != unbounded || e.lines != unbounded }

// shortest returns the length of the shortest choice in bytes, and 0 if there is none.
func (l literals) shortest() int {
	if len(l.choices) == 0 {
		return 0
	}
	least := len(l.choices[0])
	for _, choice := range l.choices {
		least = min(least, len(choice))
	}
	return least
}

func shapeOf(tree *syntax.Regexp) shape {
	switch tree.Op {
	case syntax.OpLiteral:
		return literalShape(tree.Rune)
	case syntax.OpCharClass:
		return classShape(tree.Rune)
	case syntax.OpAnyChar:
		return shape{most: extent{1, 1}}
	case syntax.OpAnyCharNotNL:
		return shape{most: extent{1, 0}}
	case syntax.OpCapture:
		return shapeOf(tree.Sub[0])
	case syntax.OpConcat:
		return concatenated(tree.Sub)
	case syntax.OpAlternate:
		return alternative(tree)
	case syntax.OpQuest:
		return repeated(tree.Sub[0], 0, 1)
	case syntax.OpStar:
		return repeated(tree.Sub[0], 0, unbounded)
	case syntax.OpPlus:
		return repeated(tree.Sub[0], 1, unbounded)
	case syntax.OpRepeat:
		return repeated(tree.Sub[0], tree.Min, tree.Max)
	case syntax.OpNoMatch:
		return shape{}
	default: // the empty match, and assertions
		return shape{exact: []string{""}}
	}
}

func literalShape(runes []rune) shape {
	text := string(runes)
	most := extent{len(runes), strings.Count(text, "\n")}
	if !isASCII(text) {
		return shape{most: most}
	}
	return shape{exact: []string{strings.ToLower(text)}, most: most}
}

// classShape reads a class, given as pairs of first and last characters. The two non-ASCII characters that equal an
// ASCII letter in another case (they are in [a-z] if case is ignored) count as that letter.
func classShape(pairs []rune) shape {
	const few = 16
	most := extent{chars: 1}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i] <= '\n' && '\n' <= pairs[i+1] {
			most.lines = 1
		}
	}
	letters := make([]byte, 0, few+1)
	for i := 0; i < len(pairs); i += 2 {
		for r := pairs[i]; r <= pairs[i+1]; r++ {
			if r > utf8.RuneSelf && !strings.ContainsRune(foldsToASCII, r) || len(letters) > few {
				return shape{most: most}
			}
			if letter := byte(unicode.ToLower(r)); r < utf8.RuneSelf && bytes.IndexByte(letters, letter) < 0 {
				letters = append(letters, letter)
			}
		}
	}
	var exact []string
	for _, letter := range letters {
		exact = append(exact, string(rune(letter)))
	}
	return shape{exact: distinct(exact), most: most}
}

// concatenated puts what is known of parts together: neighbours that are known whole become longer literals.
func concatenated(parts []*syntax.Regexp) shape {
	const telling = 2 // bytes, from which on more literals are worth looking for
	shapes := make([]shape, len(parts))
	for i, part := range parts {
		shapes[i] = shapeOf(part)
	}
	all := shape{most: mostOf(shapes)}
	var also [][]string
	for first := 0; first < len(shapes); {
		run, next := shapes[first].exact, first+1
		for run != nil && next < len(shapes) {
			longer := products(run, shapes[next].exact)
			if longer == nil {
				break
			}
			run, next = longer, next+1
		}
		found := literals{choices: run}
		switch {
		case run != nil && first == 0 && next == len(shapes):
			all.exact = run
		case run == nil:
			found = shapes[first].required
		}
		if found.before.chars == 0 {
			found.opening = &syntax.Regexp{Op: syntax.OpConcat, Sub: parts[first:]}
		}
		found.before = mostOf(shapes[:first]).plus(found.before)
		found.after = found.after.plus(mostOf(shapes[next:]))
		if found.shortest() >= telling {
			also = append(append(also, found.choices), found.also...)
		}
		if found.better(all.required) {
			all.required = found
		}
		first = next
	}
	all.required.also = also
	return all
}

// products returns each of left followed by each of right; nil if one is unknown or there would be too many.
func products(left, right []string) []string {
	if left == nil || right == nil || len(left)*len(right) > maxChoices {
		return nil
	}
	all := make([]string, 0, len(left)*len(right))
	for _, l := range left {
		for _, r := range right {
			all = append(all, l+r)
		}
	}
	return distinct(all)
}

// alternative knows what is known of each part.
func alternative(tree *syntax.Regexp) shape {
	all := shape{exact: []string{}}
	known := true
	for i, part := range tree.Sub {
		s := shapeOf(part)
		if all.exact != nil && s.exact != nil && len(all.exact)+len(s.exact) <= maxChoices {
			all.exact = distinct(append(all.exact, s.exact...))
		} else {
			all.exact = nil
		}
		found := s.best()
		known = known && found.shortest() > 0 && len(all.required.choices)+len(found.choices) <= maxChoices
		all.required.choices = append(all.required.choices, found.choices...)
		all.required.before = all.required.before.or(found.before)
		all.required.after = all.required.after.or(found.after)
		if i == 0 {
			all.required.also = found.also
		} else {
			all.required.also = inBoth(all.required.also, found.also)
		}
		all.most = all.most.or(s.most)
	}
	if !known {
		all.required = literals{}
	}
	all.required.choices = distinct(all.required.choices)
	if all.required.before.chars == 0 {
		all.required.opening = tree
	}
	return all
}

// inBoth returns the lists that two parts have in common.
func inBoth(some, others [][]string) (both [][]string) {
	for _, list := range some {
		if slices.ContainsFunc(others, func(other []string) bool { return slices.Equal(list, other) }) {
			both = append(both, list)
		}
	}
	return both
}

func repeated(part *syntax.Regexp, least, most int) shape {
	s := shapeOf(part)
	switch {
	case least == 0 && most == 1 && s.exact != nil:
		return shape{exact: distinct(append([]string{""}, s.exact...)), most: s.most}
	case least == 1 && most == 1:
		return s
	case least == most && s.exact != nil && most > 1:
		all := s.exact
		for range most - 1 {
			all = products(all, s.exact)
		}
		if all != nil {
			return shape{exact: all, most: s.most.times(most)}
		}
	}
	result := shape{most: s.most.times(most)}
	if least == 0 {
		return result
	}
	// The first of the repeated matches has it.
	result.required = s.best()
	result.required.after = result.required.after.plus(s.most.times(most)) // one more than needed
	return result
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// foldsToASCII are the characters beyond ASCII that are equal to a letter of ASCII when case is ignored: the long s,
// the sign of Kelvin, and the capital I with a dot, whose small letter begins with an i.
const foldsToASCII = "\u017f\u212a\u0130"

// letterOf returns the small letter of ASCII that one of foldsToASCII counts as.
func letterOf(r rune) byte {
	switch r {
	case '\u017f':
		return 's'
	case '\u212a':
		return 'k'
	}
	return 'i'
}

func distinct(values []string) []string {
	slices.Sort(values)
	return slices.Compact(values)
}

func mostOf(parts []shape) extent {
	var total extent
	for _, part := range parts {
		total = total.plus(part.most)
	}
	return total
}

func (e extent) plus(other extent) extent {
	return extent{sum(e.chars, other.chars), sum(e.lines, other.lines)}
}

// times returns the extent of n matches in a row; n may be unbounded.
func (e extent) times(n int) extent { return extent{product(e.chars, n), product(e.lines, n)} }

// or returns an extent that is enough for either of two.
func (e extent) or(other extent) extent {
	return extent{larger(e.chars, other.chars), larger(e.lines, other.lines)}
}

func sum(a, b int) int {
	if a == unbounded || b == unbounded {
		return unbounded
	}
	return a + b
}

func product(a, b int) int {
	switch {
	case a == 0 || b == 0:
		return 0
	case a == unbounded || b == unbounded:
		return unbounded
	}
	return a * b
}

func larger(a, b int) int {
	if a == unbounded || b == unbounded {
		return unbounded
	}
	return max(a, b)
}

// newOpening gives what matches at the beginning of a text in which a literal of a rule is part of a match; nil if the
// literals of its expression do not stand where something begins.
func newOpening(tree *syntax.Regexp) *automaton {
	rest := shapeOf(tree).best().opening
	if rest == nil {
		return nil
	}
	return newAutomaton(rest)
}

// lead is the start of an expression that takes as few characters of a kind as it can, such as [\w.-]{0,50}?. A match
// begins as far before the rest of the expression as there are such characters, so the rest can be searched for alone:
// package regexp needs a tenth of the time for it.
type lead struct {
	kind *syntax.Inst // reads one of the characters
	most int          // characters
	rest func() *regexp.Regexp
}

// newLead gives the lead of an expression; nil if it has none.
func newLead(tree *syntax.Regexp) *lead {
	if tree.Op != syntax.OpConcat || tree.Sub[0].Op != syntax.OpRepeat {
		return nil
	}
	first := tree.Sub[0]
	if first.Min != 0 || first.Max < 1 || first.Flags&syntax.NonGreedy == 0 || first.Sub[0].Op != syntax.OpCharClass {
		return nil
	}
	rest := &syntax.Regexp{Op: syntax.OpConcat, Flags: tree.Flags, Sub: tree.Sub[1:]}
	return &lead{kind: newAutomaton(first.Sub[0]).reading[0], most: first.Max,
		rest: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(rest.String()) })}
}

// before returns where a match begins whose rest begins at the end of a text.
func (l *lead) before(text string) int {
	at := len(text)
	for range l.most {
		r, size := utf8.DecodeLastRuneInString(text[:at])
		if size == 0 || !l.kind.MatchRune(r) {
			break
		}
		at -= size
	}
	return at
}
