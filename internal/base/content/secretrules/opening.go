package secretrules

import (
	"regexp"
	"regexp/syntax"
)

// opening matches at the beginning of a text in which a literal of a rule is part of a match.
type opening struct {
	expression *regexp.Regexp
	most       int // the most characters of its match
}

// newOpening gives nil if the literals of an expression do not stand where something begins.
func newOpening(tree *syntax.Regexp) *opening {
	open := shapeOf(tree).best().opening
	if open == nil {
		return nil
	}
	begin := open()
	return &opening{expression: regexp.MustCompile(`\A(?:` + begin.String() + `)`), most: shapeOf(begin).most.chars}
}

// openingOf gives an expression for how each match of an expression begins: its parts up to the first that can be long,
// and of that as much as it needs at least. Assertions are left out, so it needs no text around a match. whole says
// that nothing was cut off behind it.
func openingOf(tree *syntax.Regexp) (opening *syntax.Regexp, whole bool) {
	switch tree.Op {
	case syntax.OpLiteral, syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpNoMatch:
		return tree, true
	case syntax.OpCapture:
		return openingOf(tree.Sub[0])
	case syntax.OpConcat:
		return openingOfConcat(tree.Sub)
	case syntax.OpAlternate:
		all := &syntax.Regexp{Op: syntax.OpAlternate, Flags: tree.Flags}
		whole = true
		for _, part := range tree.Sub {
			begin, complete := openingOf(part)
			all.Sub = append(all.Sub, begin)
			whole = whole && complete
		}
		return all, whole
	case syntax.OpQuest:
		return openingOfRepeat(tree, 0, 1)
	case syntax.OpStar:
		return openingOfRepeat(tree, 0, unbounded)
	case syntax.OpPlus:
		return openingOfRepeat(tree, 1, unbounded)
	case syntax.OpRepeat:
		return openingOfRepeat(tree, tree.Min, tree.Max)
	default: // the empty match, and assertions
		return &syntax.Regexp{Op: syntax.OpEmptyMatch}, true
	}
}

func openingOfConcat(parts []*syntax.Regexp) (*syntax.Regexp, bool) {
	all := &syntax.Regexp{Op: syntax.OpConcat}
	for _, part := range parts {
		begin, whole := openingOf(part)
		all.Sub = append(all.Sub, begin)
		if !whole {
			return all, false
		}
	}
	return all, true
}

func openingOfRepeat(tree *syntax.Regexp, least, most int) (*syntax.Regexp, bool) {
	const long = 64 // characters
	begin, whole := openingOf(tree.Sub[0])
	length := shapeOf(begin).most.times(most).chars
	switch {
	case whole && length != unbounded && length <= long:
		return &syntax.Regexp{Op: syntax.OpRepeat, Flags: tree.Flags, Min: least, Max: most, Sub: []*syntax.Regexp{begin}},
			true
	case least == 0:
		return &syntax.Regexp{Op: syntax.OpEmptyMatch}, false
	case whole:
		return &syntax.Regexp{Op: syntax.OpRepeat, Flags: tree.Flags, Min: least, Max: least, Sub: []*syntax.Regexp{begin}},
			false
	}
	return begin, false
}
