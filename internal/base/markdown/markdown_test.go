package markdown_test

import (
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"

	"github.com/claudeops/claudeops/internal/base/markdown"
)

func TestWhatIsTooMuchToParse(t *testing.T) {
	grammar := markdown.New(goldmark.WithExtensions(extension.GFM))
	table := func(columns, rows int) string {
		return strings.Repeat("|a", columns) + "\n" + strings.Repeat("|-", columns) + "\n" + strings.Repeat("x\n", rows)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"a table of 9 columns and 1,000 rows", table(9, 999), ""},
		{"a table of more", table(100, 100), "cells"},
		{"tables of more together", strings.Repeat(table(9, 99)+"\n", 11), "cells"},
		{"bars without a table", strings.Repeat("|a|b|c|d|e|f\n", 2000), ""},
		{"rules and lists", strings.Repeat("- - -\n- a | b\n", 1000), ""},
		{"a table of a database in a code block", "```\n" + table(100, 200) + "```\n", ""},
		{"escaped bars in code", "|a|\n|-|\n" + strings.Repeat("|`\\|`|\n", 1001), "escaped bars"},
		{"escaped bars elsewhere", strings.Repeat("\\|", 2000), ""},
		{"600 links in a list", strings.Repeat("- [a name](https://example.org/a) does it\n", 600), ""},
		{"long texts in brackets", strings.Repeat("["+strings.Repeat("a", 900)+"] ", 60), ""},
		{"brackets around a long text", strings.Repeat("[", 40) + strings.Repeat("a ", 20_000) + strings.Repeat("]", 40),
			"between brackets"},
		{"brackets in code around it", "`" + strings.Repeat("[", 40) + "`" + strings.Repeat("a ", 20_000) +
			strings.Repeat("]", 40), ""},
		{"lists with empty lines", strings.Repeat("- a\n  - b\n    - c\n\n\n", 2000), ""},
		{"a deep list with many empty lines", strings.Repeat("- ", 30) + "a\n" + strings.Repeat("\n", 700), "empty lines"},
		{"a list in a quote in a list", strings.Repeat("> - ", 20) + "a", ""},
		{"more of them", strings.Repeat("> - ", 21) + "a", "in each other"},
		{"999 footnotes", strings.Repeat("[^a]\n\n", 999), ""},
		{"more footnotes", strings.Repeat("[^a]\n\n", 1001), "footnotes"},
		{"attributes of headings", strings.Repeat("# a {#b .c .d title=\"e\"}\n", 500), ""},
		{"classes of one heading", "# a {" + strings.Repeat(".b ", 2000) + "}", "attributes"},
		{"minified code", "{" + strings.Repeat("a.b(c).d,e={f:g.h};", 3000), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			document, got := grammar.Parse([]byte(tt.text))
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) || (document == nil) != (got != "") {
				t.Errorf("it has %q, want %q; %v", got, tt.want, document)
			}
		})
	}
}
