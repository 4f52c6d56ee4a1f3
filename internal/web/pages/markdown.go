package pages

import (
	"bytes"
	"html"
	"html/template"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"

	"github.com/claudeops/claudeops/internal/base/markdown"
	"github.com/claudeops/claudeops/internal/base/textscan"
)

const (
	// maxMarkdown is the longest text that is rendered, in bytes. A longer one is shown as it is written.
	maxMarkdown = 64 << 10
	// maxTargets bounds the addresses of all links, in bytes: many may have one that is defined once.
	maxTargets  = 4 * maxMarkdown
	maxTextRune = 100_000
)

// Prose is text that others wrote: rendered, or as it is written.
type Prose struct {
	HTML template.HTML // "" for Plain
	// Plain is the text as it is written.
	Plain string
}

// Markdown renders text that others wrote, cleaned of hidden characters. No part of the result comes from the text but
// character data: links and images are their text and their target, written out, and HTML is shown as it is written. A
// text that costs too much to parse (see package markdown) is shown as it is written.
func Markdown(text string) Prose {
	cleaned := textscan.Clean(text, maxTextRune)
	if len(cleaned) > maxMarkdown {
		return Prose{Plain: cleaned}
	}
	// a style would be refused by the browser
	tables := extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))
	grammar := markdown.New(goldmark.WithExtensions(tables),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(inert{}, 1))))
	document, tooMuch := grammar.Parse([]byte(cleaned))
	if tooMuch != "" || targets(document) > maxTargets {
		return Prose{Plain: cleaned}
	}
	var b bytes.Buffer
	if err := grammar.Render(&b, []byte(cleaned), document); err != nil {
		return Prose{Plain: cleaned}
	}
	// all brackets of the text are escaped
	scoped := strings.NewReplacer("<th>", `<th scope="col">`, "<th align", `<th scope="col" align`)
	// #nosec G203: inert and goldmark's renderer escape all that comes from the text
	return Prose{HTML: template.HTML(scoped.Replace(b.String()))}
}

// IsMarkdown reports whether a file is Markdown, by its name.
func IsMarkdown(path string) bool { return strings.HasSuffix(strings.ToLower(path), ".md") }

// MarkdownFile is Markdown for a whole file. What stands before the text between lines of hyphens is shown as it is.
func MarkdownFile(text string) Prose {
	const fence = "---\n"
	if rest, has := strings.CutPrefix(text, fence); has {
		if head, body, closed := strings.Cut(rest, "\n"+fence); closed {
			prose := Markdown(body)
			if prose.HTML != "" {
				cleaned := textscan.Clean(head, maxTextRune)
				// #nosec G203: escaped
				prose.HTML = template.HTML("<pre><code>"+html.EscapeString(cleaned)+"</code></pre>\n") + prose.HTML
				return prose
			}
		}
	}
	return Markdown(text)
}

// targets returns the length of the addresses of all links and images.
func targets(document ast.Node) (bytes int) {
	_ = ast.Walk(document, func(n ast.Node, _ bool) (ast.WalkStatus, error) { // it has no error
		switch n := n.(type) {
		case *ast.Link:
			bytes += len(n.Destination)
		case *ast.Image:
			bytes += len(n.Destination)
		}
		return ast.WalkContinue, nil
	})
	return bytes
}

// inert renders those nodes that would carry something of the text into an attribute.
type inert struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (inert) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindLink, link)
	r.Register(ast.KindImage, image)
	r.Register(ast.KindAutoLink, autoLink)
	r.Register(ast.KindRawHTML, rawHTML)
	r.Register(ast.KindHTMLBlock, renderBlock)
	r.Register(ast.KindFencedCodeBlock, renderBlock)
	r.Register(ast.KindCodeBlock, renderBlock)
	r.Register(ast.KindHeading, heading)
}

func write(w util.BufWriter, text string) { _, _ = w.WriteString(text) } // to memory: it cannot fail

func link(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		write(w, ` <span class="target">(link to `+html.EscapeString(string(node.(*ast.Link).Destination))+")</span>")
	}
	return ast.WalkContinue, nil
}

func image(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		write(w, `<span class="target">(image: `)
	} else {
		write(w, " at "+html.EscapeString(string(node.(*ast.Image).Destination))+")</span>")
	}
	return ast.WalkContinue, nil
}

func autoLink(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		write(w, `<span class="target">`+html.EscapeString(string(node.(*ast.AutoLink).Label(source)))+"</span>")
	}
	return ast.WalkSkipChildren, nil
}

func rawHTML(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		segments := node.(*ast.RawHTML).Segments
		for i := range segments.Len() {
			segment := segments.At(i)
			write(w, html.EscapeString(string(segment.Value(source))))
		}
	}
	return ast.WalkSkipChildren, nil
}

func renderBlock(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	write(w, "<pre><code>")
	for i := range node.Lines().Len() {
		segment := node.Lines().At(i)
		write(w, html.EscapeString(string(segment.Value(source))))
	}
	if raw, isHTML := node.(*ast.HTMLBlock); isHTML && raw.HasClosure() {
		write(w, html.EscapeString(string(raw.ClosureLine.Value(source))))
	}
	write(w, "</code></pre>\n")
	return ast.WalkSkipChildren, nil
}

// heading keeps the order of the page's own headings, which end at the third level, whatever levels the text leaves
// out.
func heading(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	tag := "h4>"
	if node.(*ast.Heading).Level > 2 {
		tag = "h5>"
	}
	if entering {
		write(w, "<"+tag)
	} else {
		write(w, "</"+tag+"\n")
	}
	return ast.WalkContinue, nil
}
