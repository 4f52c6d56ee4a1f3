package outgoing_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	render "github.com/yuin/goldmark/renderer/html"
	"golang.org/x/net/html"

	"github.com/claudeops/claudeops/internal/base/content"
)

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
	if err != nil {
		t.Fatal(err)
	}
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
	shown := content.Clean(page.visible, len(page.visible)+1)
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
