package sanitize_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	render "github.com/yuin/goldmark/renderer/html"
	"golang.org/x/net/html"

	"github.com/claudeops/claudeops/internal/base/sanitize"
	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// footer has the form of prflow's.
const footer = "\n\n---\n\nProposed by an agent through Claude Ops at tier 2. Files: `checks/a.md`.\n\n<!-- " +
	"claude-ops:v1 e30 AAAA -->\n"

// acceptable reports whether the content gate accepts a text.
func acceptable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsRune(text, 0) && len(textscan.Hidden(text)) == 0
}

func FuzzBody(f *testing.F) {
	for _, seed := range bodySeeds() {
		f.Add(seed)
	}
	files, _ := filepath.Glob("testdata/ordinary/*.md")
	for _, file := range files {
		raw := operationtest.ReadFile(f, file)
		f.Add(string(raw))
	}
	f.Fuzz(func(t *testing.T, text string) {
		switch {
		case len(text) > 10_000:
		case acceptable(text):
			checkBody(t, text)
		default:
			sanitize.Rules{}.Body(text) // it comes before the content gate refuses it, and must not panic
			sanitize.Rules{}.Title(text)
		}
	})
}

// checkBody holds what every body must have after it was rewritten.
func checkBody(t *testing.T, text string) {
	t.Helper()
	once, _ := sanitize.Rules{}.Body(text)
	if twice, _ := (sanitize.Rules{}).Body(once); twice != once {
		t.Fatalf("rewritten twice, %q became %q and then %q", text, once, twice)
	}
	if acts := actsInSource(once); acts != "" {
		t.Errorf("%q became %q, whose source has %q", text, once, acts)
	}
	github, gitea := renderGitHub(t, once), renderGitea(t, once)
	for _, page := range []rendered{github, gitea} {
		if acts := page.acts(); acts != "" {
			t.Errorf("%q became %q, which has %s", text, once, acts)
		}
		if page.comments > 0 {
			t.Errorf("%q became %q, which has a comment", text, once)
		}
	}
	// Where a text has footnotes, renderers without them read the rest of it in another way, too.
	if missing := lacks(github.visible, visibleText(t, text)); missing >= 0 && !strings.Contains(text, "[^") {
		t.Errorf("%q became %q, whose page lacks %q", text, once, missing)
	}
	for _, page := range []rendered{renderGitHub(t, once+footer), renderGitea(t, once+footer)} {
		if n := len(page.top); n < 3 || !slices.Equal(page.top[n-3:], []string{"hr", "p", "#comment"}) || page.comments != 1 {
			t.Errorf("%q became %q, after which the footer is read as %q", text, once, page.top)
		}
	}
}

func FuzzTitle(f *testing.F) {
	for _, seed := range titleSeeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !acceptable(text) || strings.ContainsAny(text, "\r\n\t") || len(text) > 500 {
			return
		}
		once, _ := sanitize.Rules{}.Title(text)
		if twice, _ := (sanitize.Rules{}).Title(once); twice != once {
			t.Fatalf("rewritten twice, %q became %q and then %q", text, once, twice)
		}
		page := rendered{nodes: []string{once}, blocks: []string{once}}
		if acts := page.acts() + actsInSource(once); acts != "" {
			t.Errorf("%q became %q, which has %s", text, once, acts)
		}
		if missing := lacks(once, text); missing >= 0 {
			t.Errorf("%q became %q, which lacks %q", text, once, missing)
		}
		for _, start := range []string{"fixup!", "squash!", "amend!", "wip:", "[wip]"} {
			if strings.HasPrefix(strings.ToLower(once), start) {
				t.Errorf("%q became %q, which begins with %s", text, once, start)
			}
		}
	})
}

func titleSeeds() []string {
	return []string{
		"Plain", "Fixes #12", "fixup! squash! x", "WIP: x", "[skip ci] x", "[ci skip", "x ***NO_CI***", "@ann's disk",
		"@@@ann", "<!-- x -->",
		"<img src=x>", "![a](b)", "Signed-off-by: a", "/merge", "bors r+", "Fix&#32;&#35;1", "＠ann ［ｓｋｉｐ ｃｉ］", `Fixes \#1`,
		"skip-checks: true",
		"<<b>", "fix owner/x#1 closes GH-2", "[[skip ci]]", "&#64;ann",
	}
}

func bodySeeds() []string {
	return []string{
		"@ann fixes #1 <!-- x -->", "```\n@a\n```", "`` ` @a ``", "<!-<!-- -->-->", "fix: o/r#1`", "~~~~\n#1\n~~~",
		"@a/b/c @a.b-", "closes `#1`",
		"_@e_ .@t x/@y &#64;y [@e](https://x) *@*x",
		"Fixes&nbsp;#1 Fix*es* [#2](x) closes\n#3 fixes <https://h/o/r/issues/4>",
		"<details>\n<summary>a</summary>\n\n```\nx", "<?php x", "<![CDATA[ x", "<!DOCTYPE x", "<script>\nx\n\n@a",
		"a <b>c</b> d <i", "<div>\n```\n@a\n```\n</div>",
		"[//]: # (x)", "[a]: b 'c'\n\n[a]", "[a]: b\n[a]: c\n\n[a][]", "[x](y 'z') ![i](j) [![k](l)](m)",
		"[^1]: x\n\n    y\n\na[^1]",
		"| a |\n|-|\n| b | c |\n| @d |", "# h {#id .c}", "t\n: d\n\n    @x", "- a\n  ```\n  b", "> ```sh x\n> y\n@z",
		"1. a\n\n   <!-- x\n", "``` a b\nc\n```",
		"```mermaid\nx\n```", "---\na: b\n---\nc", "$\\x$ `a` $$\ny", "\\[ a\n\nb", "[[a.png]]", "&#x202e;a &shy;b &amp;shy;",
		"[skip ci] `[no ci]` ***NO_CI***",
		"/merge\n - /lgtm\n> /approve", "bors r+\n\n@dependabot merge\n`@claude`",
		"Signed-off-by: a\n    Co-authored-by: b\n```\nReviewed-by: c",
		"https://h/a.png <https://h/@b> https://h/@c", "a\n===\nb\n---", "- [x] a\n- [ ] @b", "a  \nb\\\nc", "* * *\n***",
		"[a](<b c>) [d]() [](e)",
		"Proposed by an agent through Claude Ops at tier 3", "<br>\n@a", "fixes<br>#1", "*fixes* **#1**", "~~fixes~~ #1",
		"> fixes\n> #1", "<a@b.c> <x.@b.c>",
		"``<!-- claude-ops:v1 a b -->``", "    <!-- claude-ops:v1 a b -->", "- - - - a", "> > > @a",
		"[a]\n\n[a]: <javascript:x>", "\ta\n\tb", "a\r\nfixes #1\r\n```\r\nb",
	}
}

// pieces returns the building blocks of bodies in TestRandomBodies.
func pieces() []string {
	return []string{
		"a", "b c", "@x", "@claude", "Fixes", "closes", "#12", "o/r#1", "GH-2", ":", "&nbsp;", "&#64;", "&#35;1", "&shy;",
		" ", " ", " ", "\n", "\n", "\n\n", "\n\n",
		"*", "**", "_", "`", "``", "```", "~~~", "~~", "[", "]", "(", ")", "![", "](u)", "](u 't')", "[r]", "[r]: u\n",
		"\n[r]: u 't'\n", "[^1]", "\n[^1]: n\n",
		"<", ">", "<b>", "</b>", "<br>", "<!--", "-->", "<?", "?>", "<![CDATA[", "]]>", "<!X", "<div>", "\n<div>\n",
		"</details>", "\n<script>\n",
		"\n- ", "\n1. ", "\n> ", "\n  ", "\n    ", "\n\t", "|", "\n|-|-|\n", "\n| a | b |\n|-|-|\n| c | d | e |\n", "\n# ",
		"{#i .c}", "\n===\n", "\n---\n",
		"\n: ", "\\", "\\[", "\\(", "\\]", "$", "$$", "[[", "]]", "https://e.org/i.png", "<https://e.org/@x>",
		"https://h.org/issues/3", "www.e.org/@y",
		"\n/merge\n", "\nbors r+\n", "\nSigned-off-by: x\n", "[skip ci]", "[skip", "ci]", "***NO_CI***", "skip-checks: true",
		"\n```sh x\n", "\n```\n", "\n~~~\n",
		"\n```mermaid\n", "- [x] ", "é", "＠z", "a@b.org", "\r\n", "!", "'", "\"", "&", ";", "#", "\x00", "\xff", "\r",
		"\u202e", "<!-- claude-ops:v1 a b -->", "\nProposed by an agent through Claude Ops",
	}
}

func TestRandomBodies(t *testing.T) {
	const bodies, most = 500, 25
	random := rand.New(rand.NewPCG(1, 2))
	all := pieces()
	for range bodies {
		var b strings.Builder
		for range 1 + random.IntN(most) {
			b.WriteString(all[random.IntN(len(all))])
		}
		if text := b.String(); acceptable(text) {
			checkBody(t, text)
		} else {
			sanitize.Rules{}.Body(text)
			sanitize.Rules{}.Title(text)
		}
		if t.Failed() {
			return
		}
	}
}

// TestRandomBodiesHideNothing puts words of their own between the pieces, and looks for each on the page.
func TestRandomBodiesHideNothing(t *testing.T) {
	const bodies, most = 500, 12
	random := rand.New(rand.NewPCG(3, 4))
	all := pieces()
	for range bodies {
		var b strings.Builder
		words := 1 + random.IntN(most)
		for n := range words {
			fmt.Fprintf(&b, "%s%sq%dz", all[random.IntN(len(all))], all[random.IntN(len(all))], n)
		}
		text := b.String() + all[random.IntN(len(all))]
		if !acceptable(text) {
			continue
		}
		rewritten, _ := sanitize.Rules{}.Body(text)
		for _, page := range []rendered{renderGitHub(t, rewritten), renderGitea(t, rewritten)} {
			for n := range words {
				if word := fmt.Sprintf("q%dz", n); !strings.Contains(page.visible+page.targets, word) {
					t.Fatalf("%q became %q, whose page does not show %s", text, rewritten, word)
				}
			}
		}
	}
}

// rendered is a body as a browser has it: made with goldmark's own renderer, raw HTML included, and parsed as HTML. It
// shares nothing with the package that it tests but goldmark's parser.
type rendered struct {
	visible  string   // all text
	nodes    []string // texts outside of code, by text node
	blocks   []string // texts outside of code, by block; code is U+FFFC
	elements []string // of the body itself, without the footer
	targets  string   // of links, and the languages of code blocks
	comments int
	top      []string // names of the elements at the top, comments as "#comment"
}

func renderGitHub(t *testing.T, source string) rendered {
	t.Helper()
	return parseRendered(t, source, goldmark.New(goldmark.WithExtensions(extension.GFM),
		goldmark.WithRendererOptions(render.WithUnsafe())))
}

func renderGitea(t *testing.T, source string) rendered {
	t.Helper()
	return parseRendered(t, source,
		goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote, extension.DefinitionList),
			goldmark.WithParserOptions(parser.WithAttribute()), goldmark.WithRendererOptions(render.WithUnsafe())))
}

func parseRendered(t *testing.T, source string, markdown goldmark.Markdown) rendered {
	t.Helper()
	var b bytes.Buffer
	if err := markdown.Convert([]byte(source), &b); err != nil {
		t.Fatal(err)
	}
	document, err := html.Parse(strings.NewReader("<!DOCTYPE html><html><head></head><body>" + b.String() +
		"</body></html>"))
	must.Do(t, err)
	body := document.LastChild.LastChild
	var r rendered
	for c := body.FirstChild; c != nil; c = c.NextSibling {
		switch c.Type {
		case html.ElementNode:
			r.top = append(r.top, c.Data)
		case html.CommentNode:
			r.top = append(r.top, "#comment")
		case html.TextNode:
			if strings.TrimSpace(c.Data) != "" {
				r.top = append(r.top, "#text")
			}
		}
	}
	r.read(body, false)
	r.blocks = append(r.blocks, "")
	return r
}

func (r *rendered) read(n *html.Node, inCode bool) {
	if len(r.blocks) == 0 {
		r.blocks = []string{""}
	}
	say := func(text string) { r.blocks[len(r.blocks)-1] += text }
	switch n.Type {
	case html.TextNode:
		r.visible += n.Data
		if inCode {
			say("\ufffc")
		} else {
			r.nodes = append(r.nodes, n.Data)
			say(n.Data)
		}
		return
	case html.CommentNode:
		r.comments++
		return
	case html.ElementNode:
		r.elements = append(r.elements, n.Data)
		for _, a := range n.Attr {
			if a.Key == "href" || a.Key == "class" {
				r.targets += a.Val + "\n"
			}
		}
		switch n.Data {
		case "code", "pre":
			inCode = true
		case "br":
			say("\n")
		case "p", "li", "td", "th", "h1", "h2", "h3", "h4", "h5", "h6", "dt", "dd", "blockquote":
			r.blocks = append(r.blocks, "")
			defer func() { r.blocks = append(r.blocks, "") }()
		}
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		r.read(c, inCode)
	}
}

// visibleText returns the text that a page shows with HTML left out, without invisible characters.
func visibleText(t *testing.T, source string) string {
	t.Helper()
	page := parseRendered(t, source, goldmark.New(goldmark.WithExtensions(extension.GFM)))
	shown := textscan.Clean(page.visible, len(page.visible)+1)
	return shown
}

// acts says what of a page acts, "" if nothing does. The patterns are wider than those of GitHub's and Gitea's code.
func (r rendered) acts() string {
	for _, node := range r.nodes {
		if found := regexp.MustCompile(`(?:^|[^A-Za-z0-9])@[A-Za-z0-9_-]+`).FindString(node); found != "" &&
			!regexp.MustCompile(`^(?:https?://|www\.)\S+$`).MatchString(node) {
			return "a mention: " + found
		}
	}
	closing := regexp.MustCompile(`(?i)\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?|reopen(?:s|ed)?):?[\s\x{a0}]+` +
		`(?:[\w./-]*[#!]\d+|GH-\d+|https?://\S+/(?:issues|pulls?)/\d+)`)
	for _, block := range r.blocks {
		if found := closing.FindString(block); found != "" {
			return "a closing keyword: " + found
		}
	}
	for _, e := range r.elements {
		switch e {
		case "body", "p", "a", "em", "strong", "del", "code", "pre", "ul", "ol", "li", "blockquote", "hr", "br", "input",
			"table", "thead",
			"tbody", "tr", "td", "th", "h1", "h2", "h3", "h4", "h5", "h6", "dl", "dt", "dd":
		default:
			return "the element " + e
		}
	}
	return ""
}

// actsInSource says what acts in a text that is read without Markdown.
func actsInSource(text string) string {
	forms := []string{
		`(?i)\[\s*(?:skip[ _-]*(?:ci|actions)|(?:ci|actions)[ _-]*skip|no[ _-]*ci)\s*\]`, `(?i)\*\*\*NO_CI\*\*\*`,
		`(?i)skip-checks:\s*true`,
		`(?im)^\s*/(?:merge|lgtm|approve|retest|rebase)\s*$`, `(?im)^(?:signed-off|co-authored|reviewed)-by:`,
		`(?im)^bors r\+`,
		`(?i)(?:^|\s)@(?:dependabot|claude|coderabbitai)\b`, `<!-- claude-ops:`,
	}
	for _, form := range forms {
		if found := regexp.MustCompile(form).FindString(text); found != "" {
			return found
		}
	}
	return ""
}

// lacks is a character of which a text has fewer than another, spaces aside, or -1. What became code shows its entities
// as they are written.
func lacks(all, text string) rune {
	entity := regexp.MustCompile(`&(?:#\d+|#[xX][0-9a-fA-F]+|\w+);`)
	normal := func(s string) string {
		return strings.ReplaceAll(entity.ReplaceAllStringFunc(s, html.UnescapeString), "%40", "@")
	}
	has := map[rune]int{}
	for _, r := range normal(all) {
		has[r]++
	}
	for _, want := range normal(text) {
		if has[want]--; has[want] < 0 && !unicode.IsSpace(want) && want != '\\' { // a backslash may have become a line's end
			return want
		}
	}
	return -1
}
