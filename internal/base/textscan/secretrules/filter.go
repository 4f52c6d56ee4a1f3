package secretrules

import (
	"regexp/syntax"
	"slices"
	"strings"
)

// Filter finds out that an expression matches nowhere in a text. That costs much less than the expression: it looks for
// literals of which every match contains at least one.
type Filter struct {
	alternatives [][][]string // of each, lists of literals; a match of it has one of each list
}

// NewFilter returns the filter of an expression of which each match contains one of the alternatives, or is one. It
// panics on one that is not an expression.
func NewFilter(alternatives ...string) Filter {
	var f Filter
	for _, expression := range alternatives {
		tree, err := syntax.Parse(expression, syntax.Perl)
		if err != nil {
			panic(err)
		}
		found := shapeOf(tree).best()
		lists := found.also
		if found.shortest() > 0 {
			lists = append(lists, found.choices)
		}
		f.alternatives = append(f.alternatives, lists)
	}
	return f
}

// Fold returns a text as MayMatch reads it.
func Fold(text string) string { return string(foldText(text).lower) }

// MayMatch reports false if the expression does not match in the text that Fold has returned.
func (f Filter) MayMatch(folded string) bool {
	return slices.ContainsFunc(f.alternatives, func(lists [][]string) bool {
		return !slices.ContainsFunc(lists, func(list []string) bool {
			return !slices.ContainsFunc(list, func(literal string) bool { return strings.Contains(folded, literal) })
		})
	})
}
