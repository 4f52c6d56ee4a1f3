package pages

import (
	"strings"

	"github.com/claudeops/claudeops/internal/operation"
)

// cell is a cell as a template shows it.
type cell struct {
	operation.Cell
	Base string
}

// Span is a part of one of our own texts.
type Span struct {
	Text string
	Link string // where it leads, with the base; "" for nowhere
	Code bool
}

// Rich reads one of our own texts, in which [words](/path) is a link and `words` is code; see operation.Shown. Other
// text stays unchanged.
func Rich(base, text string) (spans []Span) {
	for text != "" {
		at := strings.IndexAny(text, "[`")
		if at < 0 {
			return append(spans, Span{Text: text})
		}
		if at > 0 {
			spans = append(spans, Span{Text: text[:at]})
		}
		var span Span
		var rest string
		ok := false
		if text[at] == '`' {
			span.Text, rest, ok = strings.Cut(text[at+1:], "`")
			span.Code = true
		} else if words, after, found := strings.Cut(text[at+1:], "](/"); found {
			span.Text, span.Link = words, base+"/"
			path := ""
			path, rest, ok = strings.Cut(after, ")")
			span.Link += path
		}
		if !ok {
			return append(spans, Span{Text: text[at:]})
		}
		spans, text = append(spans, span), rest
	}
	return spans
}
