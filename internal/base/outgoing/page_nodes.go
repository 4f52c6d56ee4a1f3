package outgoing

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	gtext "github.com/yuin/goldmark/text"
)

// node reads a node and what it holds.
func (p *page) node(n ast.Node) {
	if p.code(n) || p.unlike(n) {
		return
	}
	from := len(p.view.text)
	p.children(n)
	if n.Type() == ast.TypeBlock && n.FirstChild() != nil && n.FirstChild().Type() == ast.TypeInline {
		p.nodes.blocks = append(p.nodes.blocks, span{from, len(p.view.text)})
		if n.Kind() == east.KindTableCell {
			p.opaque(n.Pos(), n.Pos()) // no reader looks across cells
		}
		p.endBlock()
	}
}

// code reads code, which is opaque in the view.
func (p *page) code(n ast.Node) bool {
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
func (p *page) unlike(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.AutoLink:
		p.address(n)
	case *ast.RawHTML:
		p.rawHTML(n)
	case *ast.HTMLBlock:
		p.nodes.html = append(p.nodes.html, n)
		p.showLines(n.Lines())
		p.show(n.ClosureLine.Start, n.ClosureLine.Stop)
		p.endBlock()
	case *ast.LinkReferenceDefinition:
		p.nodes.definitions = append(p.nodes.definitions, n)
		p.showLines(n.Lines())
	case *east.TaskCheckBox:
		p.show(n.Pos(), n.Pos()+len("[x]"))
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
func (p *page) children(n ast.Node) {
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
		p.show(from, to)
		if t.SoftLineBreak() || t.HardLineBreak() {
			p.view.add('\n', to, to)
		}
	}
}

func (p *page) show(from, to int) {
	for i := max(from, 0); i < min(to, len(p.shown)); i++ {
		p.shown[i] = true
	}
}

func (p *page) showLines(lines *gtext.Segments) {
	for i := range lines.Len() {
		p.show(lines.At(i).Start, lines.At(i).Stop)
	}
}

// codeLines takes the lines of a code block, without those of the footer.
func (p *page) codeLines(lines *gtext.Segments) {
	p.showLines(lines)
	for i := range lines.Len() {
		if line := lines.At(i); line.Start < len(p.text) {
			p.words.Write(p.source[line.Start:min(line.Stop, len(p.text))])
		}
	}
}

// endBlock separates blocks in the view.
func (p *page) endBlock() {
	at := len(p.view.source)
	if n := len(p.view.to); n > 0 {
		at = int(p.view.to[n-1])
	}
	p.view.add('\n', at, at)
	p.view.add('\n', at, at)
}

// opaque stands for source[from:to] in the view.
func (p *page) opaque(from, to int) { p.view.add(opaque, from, to) }

func (p *page) codeSpan(n *ast.CodeSpan) {
	from, to := n.Pos(), n.Pos()
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, isText := c.(*ast.Text); isText {
			p.show(t.Segment.Start, t.Segment.Stop)
			p.words.Write(p.source[t.Segment.Start:t.Segment.Stop])
			to = max(to, t.Segment.Stop)
		}
	}
	p.opaque(from, to)
}

// rawHTML notes HTML in a line. A line break that has no attributes is none of what hides or acts.
func (p *page) rawHTML(n *ast.RawHTML) {
	first, last := n.Segments.At(0).Start, n.Segments.At(n.Segments.Len()-1).Stop
	p.show(first, last)
	switch strings.ToLower(p.view.source[first:last]) {
	case "<br>", "<br/>", "<br />":
		p.view.add('\n', first, last)
	default:
		p.nodes.html = append(p.nodes.html, n)
		p.view.add(' ', first, last)
	}
}

// listItem takes an item's number for shown.
func (p *page) listItem(n *ast.ListItem) {
	at := n.Pos()
	for at >= 0 && at < len(p.shown) && p.view.source[at] >= '0' && p.view.source[at] <= '9' {
		p.shown[at] = true
		at++
	}
}
