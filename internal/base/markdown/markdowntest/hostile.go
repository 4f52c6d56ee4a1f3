// Package markdowntest has texts that cost a parser of Markdown most, for the tests of all who parse what others wrote.
package markdowntest

import (
	"fmt"
	"runtime"
	"strings"
)

// Size is about how many bytes each of Hostile has: the most that is accepted for a body.
const Size = 60_000

// Hostile returns texts, by what they are full of.
func Hostile() map[string]string {
	all := map[string]string{}
	for _, some := range []map[string]string{brackets(), containers(), inline(), tables(), html(), notes(), lines()} {
		for name, text := range some {
			all[name] = text
		}
	}
	return all
}

// full repeats a piece.
func full(piece string) string { return strings.Repeat(piece, Size/len(piece)) }

// half repeats a piece up to half of the size.
func half(piece string) string { return strings.Repeat(piece, Size/2/len(piece)) }

// grow puts pieces behind each other, each for its number.
func grow(piece func(n int) string) string {
	var b strings.Builder
	for n := 1; b.Len() < Size; n++ {
		b.WriteString(piece(n))
	}
	return b.String()[:Size]
}

// repeat is grow with the number in one piece.
func repeat(format string) string {
	return grow(func(n int) string { return strings.ReplaceAll(format, "N", fmt.Sprint(n)) })
}

func brackets() map[string]string {
	long := half("b")
	return map[string]string{
		"opening brackets": full("["), "closing brackets": full("]"), "open links": full("[a]("), "images": full("![a](b)"),
		"opening brackets in paragraphs": full(strings.Repeat("[", 3900) + "\n\n"), "links": full("[a](b) "),
		"open links in paragraphs": full(strings.Repeat("[a](", 1900) + "\n\n"),
		"titled links":             full("[a](b 'c') "), "titled links in paragraphs": full("[a](b 'c')\n\n"),
		"definitions": full("[a]: b\n"), "definitions in paragraphs": full("[a]: b\n\n"),
		"definitions of their own":        grow(func(n int) string { return "[" + strings.Repeat("a", n%300) + "]: b\n" }),
		"definitions that are used":       repeat("[N]\n\n[N]: x\n\n"),
		"references":                      half("[a][b] ") + "\n\n" + half("[b]: c\n"),
		"references to a long address":    half("[a]\n\n") + "[a]: /" + long,
		"images of a long address":        half("![a]\n\n") + "[a]: /" + long,
		"references to a long title":      half("[a]\n\n") + "[a]: /b '" + long + "'",
		"references in a line":            strings.Repeat("[a] ", 3900) + "\n\n[a]: /" + long,
		"brackets in brackets":            strings.Repeat("[", 999) + half("a") + strings.Repeat("]", 999),
		"brackets around a long text":     strings.Repeat("[", 3900) + half("a") + strings.Repeat("]", 3900),
		"long labels":                     full("[" + strings.Repeat("a", 998) + "] "),
		"links of long addresses":         full("[a](/" + strings.Repeat("b", 400) + ") "),
		"open images":                     full("!["),
		"wikis":                           full("[[a]]"),
		"open wikis":                      full("[["),
		"brackets after a keyword":        full("fixes ((((("),
		"check boxes":                     full("- [ ] a\n"),
		"check boxes apart":               full("- [ ] a\n\n"),
		"switches":                        full("[skip ci]"),
		"switches that do not end":        full("[skip "),
		"signs of formulas in brackets":   full("\\["),
		"signs of formulas in paragraphs": full("\\[ \\] \\( \\)\n\n"),
	}
}

func containers() map[string]string {
	deep := strings.Repeat("- ", 40) + "a"
	steps := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.Repeat("  ", i) + "- a\n")
		}
		return b.String()
	}
	return map[string]string{
		"quotes in quotes": full("> "), "quotes without spaces": full(">"), "lists in lists": full("- ") + "a",
		"numbers": full("1. "), "quotes and lists": full("> - "),
		"deeper lists":            grow(func(n int) string { return strings.Repeat("  ", n) + "- a\n" }),
		"deeper quotes":           grow(func(n int) string { return strings.Repeat(">", n%40) + " a\n\n" }),
		"deep quotes":             full(strings.Repeat(">", 40) + "a\n"),
		"deep empty quotes":       full(strings.Repeat(">", 40) + "\n"),
		"deep lists":              full(deep + "\n"),
		"deep lists apart":        full(deep + "\n\n"),
		"a deep list, empty":      deep + full("\n") + "b",
		"a deep list, blank":      deep + "\n" + full(" \n") + "b",
		"a deep list, lazy":       deep + "\n" + full("b\n"),
		"a deep list, then lazy":  deep + "\nb\n" + full("\n") + "b",
		"a deep quote, lazy":      strings.Repeat(">", 40) + "a\n" + full("b\n"),
		"steps, then empty lines": steps(100) + strings.Repeat("\n", 45_000),
		"steps, then lines":       steps(100) + strings.Repeat("b\n", 20_000),
		"steps, then deep lines":  steps(40) + full(strings.Repeat("  ", 40)+"b\n\n"),
		"tabs":                    full("\t") + "a", "lists by tabs": full("-\ta\n\t"),
		"kinds of lists":   full("1) a\n2. b\n"),
		"definition lists": full("a\n: b\n"), "definition lists apart": full("a\n\n: b\n\n"),
		"terms": half("a\n") + half(": b\n"), "colons": full(": "),
		"deep definitions": full(strings.Repeat(": ", 40) + "a\n"),
	}
}

func inline() map[string]string {
	return map[string]string{
		"emphasis": full("*a_ "), "strong": full("**a *b "), "stars": full("*"), "struck": full("~~a "),
		"emphasis in paragraphs": full(strings.Repeat("*a **b _c ", 390) + "\n\n"),
		"closed emphasis":        full("*a* _b_\n\n"),
		"stars in paragraphs":    full(strings.Repeat("*", 3900) + "a" + strings.Repeat("*", 90) + "\n\n"),
		"backticks":              full("`a"), "code": full("`a` "),
		"too many stars before a long run of backticks": half("**: ") + half("`"),
		"growing backticks":                             grow(func(n int) string { return strings.Repeat("`", n) + " " }),
		"mentions":                                      full("@a "), "keywords": full("fix #1 "),
		"commands": full("/merge\n"),
		"entities": full("&#64;a"), "hidden entities": full("&shy;"), "open entities": full("&a"),
		"dollars": full("$\\"), "formulas": full("$$ \\ a\n\n"), "signs of formulas": full("\\("),
		"addresses": full("https://a.org/b.png "), "addresses apart": full("http://a.b/c.png\n\n"),
		"addresses of mail": full("a@b.org "), "addresses without a name": full("www.a.b "),
		"schemes": full("http://"), "hosts": full("www."), "signs of mail": full("a@"), "colons of mail": full("a:b@c "),
		"one word": full("a"), "backslashes": full("\\"), "spaces": full(" ") + "a", "hard breaks": full("a  \n"),
		"keywords without end": full("fixes "), "spaces after a keyword": "fixes " + full(" "),
	}
}

func tables() map[string]string {
	table := func(columns, rows int, row string) string {
		return strings.Repeat("|a", columns) + "\n" + strings.Repeat("|-", columns) + "\n" + strings.Repeat(row+"\n", rows)
	}
	return map[string]string{
		"tables": "|a|\n|-|\n" + full("|b|c\n"), "a wide table": table(Size/4, 0, ""),
		"a table of both": table(7500, 15_000, "x"), "a small table of both": table(1000, 1000, "x"),
		"a table in a quote":    "> " + strings.ReplaceAll(table(5000, 9000, "x"), "\n", "\n>"),
		"a table below text":    half("a\n") + table(2000, 10_000, "x"),
		"a lazy table":          "> a\n> " + table(7500, 15_000, "x"),
		"a table by colons":     strings.Repeat(":-|", 5000) + "\n" + strings.Repeat(":-|", 5000) + "\n" + half("x\n"),
		"tables apart":          full(table(20, 20, "x") + "\n"),
		"tables of one row":     full(table(1, 1, "x") + "\n"),
		"a row of many cells":   "|a|\n|-|\n" + full("|b"),
		"rows of bars":          full("|-\n"),
		"escaped bars":          "|a|\n|-|\n" + full("|\\|"),
		"escaped bars in code":  "|a|\n|-|\n" + full("|`\\|`|\n"),
		"a cell of bars":        "|a|\n|-|\n|`" + full("\\|") + "`|",
		"a cell of code":        "|a|\n|-|\n|" + full("`\\|` ") + "|",
		"a table in a footnote": "[^a]: |a\n\n" + strings.ReplaceAll(table(5000, 6000, "x"), "\n", "\n    "),
	}
}

func html() map[string]string {
	return map[string]string{
		"tags": full("<b>"), "open tags": full("<a "), "comments": full("<!-- "), "instructions": full("<?"),
		"blocks of HTML": full("<div>\n"), "separate blocks of HTML": full("<div>\n\n"),
		"fences in HTML":     full("<div>\n```\n"),
		"attributes of HTML": "<a " + full("b=c ") + ">", "open attributes of HTML": full("<a b=c "),
		"HTML in quotes": full("> <div>\n"), "tags apart": full("a <b>\n\n"),
	}
}

func notes() map[string]string {
	return map[string]string{
		"footnotes": full("[^a]: b\n"), "references to a footnote": full("[^a] ") + "\n\n[^a]: b",
		"references to a long footnote": half("[^a]\n\n") + "[^a]: " + half("b"),
		"footnotes in footnotes":        full("[^a]: [^a]\n\n"), "footnotes that are used": repeat("[^N]\n\n[^N]: x\n\n"),
		"attributes": full("# a {#b c=d}\n"), "attributes of one heading": "# a {" + full("b=c ") + "}",
		"classes of one heading":        "# a {" + full(".b ") + "}",
		"classes below a heading":       "a {" + full(".b,") + "}\n===",
		"classes by name":               "# a {" + full("class=\"b\"") + "}",
		"classes of headings":           full("# a {" + strings.Repeat(".b ", 300) + "}\n"),
		"headings":                      full("# a\n\n"),
		"headings of one text":          full("# " + strings.Repeat("a", 1000) + "\n\n"),
		"underlined headings":           full("a\n-\n"),
		"underlined headings of dashes": full("a\n===\n"),
	}
}

func lines() map[string]string {
	return map[string]string{
		"lines": full("a\n"), "paragraphs": full("a\n\n"), "fences": full("```a b\n"), "fences apart": full("```\na\n```\n"),
		"rules": full("***\n"), "indented code": full("    a\n"), "empty lines in a list": "- a\n" + full("\n"),
		"front matter": "---\n" + full("a: b\n") + "---\n",
	}
}

// Allocated returns the number of bytes that the process allocates while work runs. Nothing else may run meanwhile.
func Allocated(work func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
