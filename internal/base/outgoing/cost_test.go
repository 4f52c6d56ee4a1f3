package outgoing_test

import (
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/outgoing"
)

// size is the most that prflow accepts for a body, in bytes.
const size = 60_000

// hostile are bodies that cost a parser most.
func hostile() map[string]string {
	full := func(piece string) string { return strings.Repeat(piece, size/len(piece)) }
	grow := func(piece func(n int) string) string {
		var b strings.Builder
		for n := 1; b.Len() < size; n++ {
			b.WriteString(piece(n))
		}
		return b.String()[:size]
	}
	return map[string]string{
		"opening brackets": full("["), "closing brackets": full("]"), "open links": full("[a]("), "images": full("![a](b)"),
		"links":        full("[a](b) "),
		"titled links": full("[a](b 'c') "), "titled links in paragraphs": full("[a](b 'c')\n\n"),
		"definitions":              full("[a]: b\n"),
		"definitions of their own": grow(func(n int) string { return "[" + strings.Repeat("a", n%300) + "]: b\n" }),
		"quotes in quotes":         full("> "), "quotes without spaces": full(">"), "lists in lists": full("- ") + "a",
		"numbers":          full("1. "),
		"quotes and lists": full("> - "),
		"deeper lists":     grow(func(n int) string { return strings.Repeat("  ", n) + "- a\n" }),
		"emphasis":         full("*a_ "), "strong": full("**a *b "), "stars": full("*"), "backticks": full("`a"),
		"growing backticks": grow(func(n int) string { return strings.Repeat("`", n) + " " }),
		"tags":              full("<b>"), "open tags": full("<a "), "comments": full("<!-- "), "instructions": full("<?"),
		"blocks of HTML":          full("<div>\n"),
		"separate blocks of HTML": full("<div>\n\n"), "fences in HTML": full("<div>\n```\n"), "mentions": full("@a "),
		"keywords": full("fix #1 "),
		"switches": full("[skip ci]"), "switches that do not end": full("[skip "), "commands": full("/merge\n"),
		"entities":        full("&#64;a"),
		"hidden entities": full("&shy;"), "tables": "|a|\n|-|\n" + full("|b|c\n"), "wide tables": full("|a") + "\n" +
			full("|-"), "footnotes": full("[^a]: b\n"),
		"references to a footnote": full("[^a] ") + "\n\n[^a]: b", "attributes": full("# a {#b c=d}\n"),
		"dollars": full("$\\"), "wikis": full("[[a]]"),
		"open wikis": full("[["), "addresses": full("https://a.org/b.png "), "addresses of mail": full("a@b.org "),
		"fences": full("```a b\n"),
		"lines":  full("a\n"), "one word": full("a"), "backslashes": full("\\"), "spaces": full(" ") + "a",
		"definition lists": full("a\n: b\n"), "colons": full(": "),
		"signs of formulas": full("\\("), "signs of formulas in brackets": full("\\["), "a row of many cells": "|a|\n|-|\n" +
			full("|b"),
		"keywords without end": full("fixes "), "spaces after a keyword": "fixes " + full(" "),
		"brackets after a keyword": full("fixes ((((("),
	}
}

// TestHostileBodiesCostLittle holds the bounds of bounds.go. The bound on the time is far above what is measured
// (BenchmarkHostileBodies), for machines that are busy: what it catches is time that grows with the square of a size.
func TestHostileBodiesCostLittle(t *testing.T) {
	for name, body := range hostile() {
		begun := time.Now()
		rewritten, _ := outgoing.Rules{}.Body(body)
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("%s took %v", name, took)
		}
		if again, _ := (outgoing.Rules{}).Body(rewritten); again != rewritten && len(rewritten) <= 2*size {
			t.Errorf("%s changed when they were rewritten again", name)
		}
	}
}

func BenchmarkHostileBodies(b *testing.B) {
	for name, body := range hostile() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				outgoing.Rules{}.Body(body)
			}
		})
	}
}
