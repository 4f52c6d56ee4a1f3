package sanitize

import (
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	gtext "github.com/yuin/goldmark/text"

	"github.com/claudeops/claudeops/internal/base/markdown"
)

// parsedBody is a body as one grammar reads it.
type parsedBody struct {
	text   string // the body, without the footer
	source []byte // the body with the footer
	view   *view
	shown  []bool // of each byte of text: it is seen, or it is part of a mark-up that hides nothing

	nodes pageNodes
	words strings.Builder // what the page shows, code included, without HTML

	footerStands bool
}

// pageNodes are the parts of a page that are more than text.
type pageNodes struct {
	html        []ast.Node // *ast.RawHTML and *ast.HTMLBlock
	images      []*ast.Image
	links       []linkNode
	definitions []*ast.LinkReferenceDefinition
	addresses   []autoLink
	notes       []int // where footnotes and references to them begin
	fences      []*ast.FencedCodeBlock
	openFence   *ast.FencedCodeBlock
	blocks      []byteRange // of text: blocks that hold text, such as paragraphs and cells
}

type linkNode struct {
	node *ast.Link
	view byteRange // of the view's text: what the link shows
}

// autoLink is a link that has its address as text.
type autoLink struct {
	node  *ast.AutoLink
	from  int // in text, without <
	label string
}

// The footer of a pull request, as far as its structure goes: each of the three has to be a block of the document.
const (
	sampleRule   = "---"
	sampleText   = "Proposed."
	sampleMark   = "<!-- mark -->"
	sampleFooter = "\n\n" + sampleRule + "\n\n" + sampleText + "\n\n" + sampleMark + "\n"
)

// parsePage parses a body with a footer behind it, or says what the body has that is too much to parse.
func parsePage(grammar markdown.Grammar, text string) (_ *parsedBody, tooMuch string) {
	source := text + sampleFooter
	document, tooMuch := grammar.Parse([]byte(source))
	if tooMuch != "" {
		return nil, tooMuch
	}
	p := &parsedBody{text: text, source: []byte(source), view: newView(source), shown: make([]bool, len(source))}
	inFooter := 0
	for block := document.FirstChild(); block != nil; block = block.NextSibling() {
		if p.isOfFooter(block) {
			inFooter++
			continue
		}
		if fence, isFence := block.(*ast.FencedCodeBlock); isFence {
			if n := fence.Lines().Len(); n > 0 && fence.Lines().At(n-1).Stop > len(text) {
				p.nodes.openFence = fence
			}
		}
		p.node(block)
	}
	p.footerStands = inFooter == 3
	p.view.source = text
	return p, ""
}

// isOfFooter reports whether a block of the document is one of the three of the footer.
func (p *parsedBody) isOfFooter(block ast.Node) bool {
	is := func(part string) bool { return block.Pos() == len(p.text)+strings.Index(sampleFooter, part) }
	switch block.(type) {
	case *ast.ThematicBreak:
		return is(sampleRule)
	case *ast.Paragraph:
		return is(sampleText)
	case *ast.HTMLBlock:
		return is(sampleMark)
	}
	return false
}

// node reads a node and what it holds.
func (p *parsedBody) node(n ast.Node) {
	if p.code(n) || p.unlike(n) {
		return
	}
	from := len(p.view.text)
	p.children(n)
	if n.Type() == ast.TypeBlock && n.FirstChild() != nil && n.FirstChild().Type() == ast.TypeInline {
		p.nodes.blocks = append(p.nodes.blocks, byteRange{from, len(p.view.text)})
		if n.Kind() == east.KindTableCell {
			p.opaque(n.Pos(), n.Pos()) // no reader looks across cells
		}
		p.endBlock()
	}
}

// code reads code, which is opaque in the view.
func (p *parsedBody) code(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CodeSpan:
		p.codeSpan(n)
		return true
	case *ast.CodeBlock:
		p.codeLines(n.Lines())
	case *ast.FencedCodeBlock:
		p.codeLines(n.Lines())
		p.nodes.fences = append(p.nodes.fences, n)
	default:
		return false
	}
	p.opaque(n.Pos(), n.Pos())
	p.endBlock()
	return true
}

// unlike reads what is not as simple as a node with texts in it. It reports whether it has read what the node holds.
func (p *parsedBody) unlike(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.AutoLink:
		p.readAutoLink(n)
	case *ast.RawHTML:
		p.rawHTML(n)
	case *ast.HTMLBlock:
		p.nodes.html = append(p.nodes.html, n)
		p.showLines(n.Lines())
		p.markVisible(n.ClosureLine.Start, n.ClosureLine.Stop)
		p.endBlock()
	case *ast.LinkReferenceDefinition:
		p.nodes.definitions = append(p.nodes.definitions, n)
		p.showLines(n.Lines())
	case *east.TaskCheckBox:
		p.markVisible(n.Pos(), n.Pos()+len("[x]"))
	case *ast.Link:
		p.link(n)
	case *ast.Image:
		p.nodes.images = append(p.nodes.images, n)
		return false
	case *ast.ListItem:
		p.listItem(n)
		return false
	case *east.FootnoteLink, *east.Footnote:
		p.nodes.notes = append(p.nodes.notes, n.Pos())
		return false
	default:
		return false
	}
	return true
}

// children reads what a node holds. Texts that follow each other without a gap are one text.
func (p *parsedBody) children(n ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		t, isText := c.(*ast.Text)
		if !isText {
			p.node(c)
			continue
		}
		from, to := t.Segment.Start, t.Segment.Stop
		for !t.SoftLineBreak() && !t.HardLineBreak() {
			next, isText := t.NextSibling().(*ast.Text)
			if !isText || next.Segment.Start != to {
				break
			}
			t, c, to = next, next, next.Segment.Stop
		}
		first := len(p.view.text)
		p.view.addText(from, to)
		p.words.Write(p.view.text[first:])
		p.markVisible(from, to)
		if t.SoftLineBreak() || t.HardLineBreak() {
			p.view.appendRune('\n', to, to)
		}
	}
}

func (p *parsedBody) markVisible(from, to int) {
	for i := max(from, 0); i < min(to, len(p.shown)); i++ {
		p.shown[i] = true
	}
}

func (p *parsedBody) showLines(lines *gtext.Segments) {
	for i := range lines.Len() {
		p.markVisible(lines.At(i).Start, lines.At(i).Stop)
	}
}

// codeLines takes the lines of a code block, without those of the footer.
func (p *parsedBody) codeLines(lines *gtext.Segments) {
	p.showLines(lines)
	for i := range lines.Len() {
		if line := lines.At(i); line.Start < len(p.text) {
			p.words.Write(p.source[line.Start:min(line.Stop, len(p.text))])
		}
	}
}

// endBlock separates blocks in the view.
func (p *parsedBody) endBlock() {
	at := len(p.view.source)
	if n := len(p.view.to); n > 0 {
		at = int(p.view.to[n-1])
	}
	p.view.appendRune('\n', at, at)
	p.view.appendRune('\n', at, at)
}

// opaque stands for source[from:to] in the view.
func (p *parsedBody) opaque(from, to int) { p.view.appendRune(opaque, from, to) }

func (p *parsedBody) codeSpan(n *ast.CodeSpan) {
	from, to := n.Pos(), n.Pos()
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, isText := c.(*ast.Text); isText {
			p.markVisible(t.Segment.Start, t.Segment.Stop)
			p.words.Write(p.source[t.Segment.Start:t.Segment.Stop])
			to = max(to, t.Segment.Stop)
		}
	}
	p.opaque(from, to)
}

// rawHTML notes HTML in a line. A line break that has no attributes is none of what hides or acts.
func (p *parsedBody) rawHTML(n *ast.RawHTML) {
	first, last := n.Segments.At(0).Start, n.Segments.At(n.Segments.Len()-1).Stop
	p.markVisible(first, last)
	switch strings.ToLower(p.view.source[first:last]) {
	case "<br>", "<br/>", "<br />":
		p.view.appendRune('\n', first, last)
	default:
		p.nodes.html = append(p.nodes.html, n)
		p.view.appendRune(' ', first, last)
	}
}

// listItem takes an item's number for shown.
func (p *parsedBody) listItem(n *ast.ListItem) {
	at := n.Pos()
	for at >= 0 && at < len(p.shown) && p.view.source[at] >= '0' && p.view.source[at] <= '9' {
		p.shown[at] = true
		at++
	}
}

// readAutoLink reads a link that has its address as text.
func (p *parsedBody) readAutoLink(n *ast.AutoLink) {
	label := string(n.Label(p.source))
	from := max(n.Pos(), 0)
	at := strings.Index(p.view.source[from:], label)
	if at < 0 {
		return
	}
	at += from
	first := len(p.view.text)
	p.view.addRaw(at, at+len(label))
	p.markVisible(at, at+len(label))
	p.words.WriteString(label)
	p.nodes.addresses = append(p.nodes.addresses, autoLink{n, at, label})
	p.view.addresses = append(p.view.addresses, byteRange{first, len(p.view.text)})
	if first < len(p.view.from) && at > 0 && p.view.source[at-1] == '<' {
		p.view.from[first]-- // what is put before the address has to stand before its bracket
	}
}

// link reads a link and its text.
func (p *parsedBody) link(n *ast.Link) {
	first := len(p.view.text)
	p.view.links = append(p.view.links, linkAt{first, n.Pos(), linkTarget(n)})
	p.children(n)
	p.nodes.links = append(p.nodes.links, linkNode{n, byteRange{first, len(p.view.text)}})
	end := n.Pos() + 1
	if last := len(p.view.to); last > first {
		end = max(end, int(p.view.to[last-1]))
	}
	p.showTarget(end)
}

// maxTarget is the longest address of a link, in bytes.
const maxTarget = 500

// linkTarget returns the address of a link, or as much of it as shows that it is too long: many links may have one
// address.
func linkTarget(n *ast.Link) string {
	return string(n.Destination[:min(len(n.Destination), maxTarget+1)])
}

// showTarget takes what follows a link's text, which ends at an offset, for shown: `](target)`, `][label]` or `]`. What
// of it hides text is judged elsewhere.
func (p *parsedBody) showTarget(at int) {
	source := p.view.source
	closing := strings.IndexByte(source[at:], ']')
	if closing < 0 {
		return
	}
	end := at + closing + 1
	switch {
	case end < len(source) && source[end] == '(':
		end = targetEnd(p.view.source, end+1)
	case end < len(source) && source[end] == '[':
		if label := strings.IndexByte(source[end:], ']'); label > 0 {
			end += label + 1
		}
	}
	p.markVisible(at, end)
}

// targetEnd returns the end of the target of a link without a title, its bracket included (CommonMark 0.31, "Links").
func targetEnd(source string, at int) int {
	depth := 0
	for ; at < len(source); at++ {
		switch source[at] {
		case '\\':
			at++
		case '<':
			if end := strings.IndexByte(source[at:], '>'); end > 0 && strings.TrimSpace(source[:at]) != "" &&
				source[at-1] == '(' {
				at += end
			}
		case '(':
			depth++
		case ')':
			if depth == 0 {
				return at + 1
			}
			depth--
		}
	}
	return len(source)
}

// grammars returns the parsers of the forges' dialects: GitHub's (GitHub Flavored Markdown with footnotes) and Gitea's
// and Forgejo's, which also know lists of definitions and attributes of headings. Where they disagree, a body has to be
// harmless in both.
func grammars() []markdown.Grammar {
	return []markdown.Grammar{
		markdown.New(goldmark.WithExtensions(extension.GFM, extension.Footnote)),
		markdown.New(goldmark.WithExtensions(extension.GFM, extension.Footnote, extension.DefinitionList),
			goldmark.WithParserOptions(parser.WithAttribute(), parser.WithAutoHeadingID())),
	}
}
