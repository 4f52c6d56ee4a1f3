package outgoing

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	gtext "github.com/yuin/goldmark/text"
)

// page is a body as one grammar reads it.
type page struct {
	text   string // the body, without the footer
	source []byte // the body with the footer
	view   *view
	shown  []bool // of each byte of text: it is seen, or it is part of a mark-up that hides nothing

	html        []ast.Node // *ast.RawHTML and *ast.HTMLBlock
	images      []*ast.Image
	links       []linkNode
	definitions []*ast.LinkReferenceDefinition
	addresses   []address
	notes       []int // where footnotes and references to them begin
	fences      []*ast.FencedCodeBlock
	blocks      []span // of text: blocks that hold text, such as paragraphs and cells
	openFence   *ast.FencedCodeBlock
	words       strings.Builder // what the page shows, code included, without HTML
	closers     int             // how many blocks the footer was read as

	footerStands bool
}

type linkNode struct {
	node *ast.Link
	view span // of the view's text: what the link shows
}

// address is a link that has its address as text.
type address struct {
	node  *ast.AutoLink
	from  int // in text, without <
	label string
}

// sampleFooter has the structure of the footer of a pull request. Each of its blocks has to be a block of the document.
const sampleFooter = "\n\n---\n\nProposed.\n\n<!-- mark -->\n"

// read parses a body with a footer behind it.
func read(grammar parser.Parser, text string) *page {
	source := text + sampleFooter
	p := &page{text: text, source: []byte(source), view: newView(source), shown: make([]bool, len(source))}
	document := grammar.Parse(gtext.NewReader(p.source))
	for block := document.FirstChild(); block != nil; block = block.NextSibling() {
		p.topLevel(block)
	}
	p.footerStands = p.closers == 3
	p.view.source = text
	return p
}

// topLevel reads a block of the document.
func (p *page) topLevel(block ast.Node) {
	at := block.Pos()
	switch block := block.(type) {
	case *ast.ThematicBreak:
		if at == len(p.text)+strings.Index(sampleFooter, "---") {
			p.closers++
		}
	case *ast.Paragraph:
		if at == len(p.text)+strings.Index(sampleFooter, "Proposed") {
			p.closers++
			return
		}
	case *ast.HTMLBlock:
		if at == len(p.text)+strings.Index(sampleFooter, "<!--") {
			p.closers++
			return
		}
	case *ast.FencedCodeBlock:
		if n := block.Lines().Len(); n > 0 && block.Lines().At(n-1).Stop > len(p.text) {
			p.openFence = block
		}
	}
	p.node(block)
}

// node reads a node and what it holds.
func (p *page) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.CodeSpan:
		p.codeSpan(n)
		return
	case *ast.AutoLink:
		p.address(n)
		return
	case *ast.RawHTML:
		p.rawHTML(n)
		return
	case *ast.HTMLBlock:
		p.html = append(p.html, n)
		p.showLines(n.Lines())
		p.show(n.ClosureLine.Start, n.ClosureLine.Stop)
		p.endBlock()
		return
	case *ast.CodeBlock:
		p.codeLines(n.Lines())
		p.code(n.Pos())
		return
	case *ast.FencedCodeBlock:
		p.codeLines(n.Lines())
		p.fences = append(p.fences, n)
		p.code(n.Pos())
		return
	case *ast.LinkReferenceDefinition:
		p.definitions = append(p.definitions, n)
		p.showLines(n.Lines())
		return
	case *east.TaskCheckBox:
		p.show(n.Pos(), n.Pos()+len("[x]"))
		return
	case *east.FootnoteLink, *east.Footnote:
		p.notes = append(p.notes, n.Pos())
	case *ast.ListItem:
		p.listItem(n)
	case *ast.Image:
		p.images = append(p.images, n)
	case *ast.Link:
		p.link(n)
		return
	}
	from := len(p.view.text)
	p.children(n)
	if n.Type() == ast.TypeBlock && n.FirstChild() != nil && n.FirstChild().Type() == ast.TypeInline {
		p.blocks = append(p.blocks, span{from, len(p.view.text)})
		if n.Kind() == east.KindTableCell {
			p.code(n.Pos()) // no reader looks across cells
			return
		}
		p.endBlock()
	}
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

func (p *page) code(at int) {
	p.view.add(opaque, at, at)
	p.endBlock()
}

func (p *page) codeSpan(n *ast.CodeSpan) {
	from, to := n.Pos(), n.Pos()
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, isText := c.(*ast.Text); isText {
			p.show(t.Segment.Start, t.Segment.Stop)
			p.words.Write(p.source[t.Segment.Start:t.Segment.Stop])
			to = max(to, t.Segment.Stop)
		}
	}
	p.view.add(opaque, from, to)
}

func (p *page) address(n *ast.AutoLink) {
	label := string(n.Label(p.source))
	at := strings.Index(p.view.source[max(n.Pos(), 0):], label) + max(n.Pos(), 0)
	first := len(p.view.text)
	p.view.addRaw(at, at+len(label))
	p.show(at, at+len(label))
	p.words.WriteString(label)
	p.addresses = append(p.addresses, address{n, at, label})
	p.view.addresses = append(p.view.addresses, span{first, len(p.view.text)})
	if first < len(p.view.from) && at > 0 && p.view.source[at-1] == '<' {
		p.view.from[first]-- // what is put before the address has to stand before its bracket
	}
}

// rawHTML notes HTML in a line. A line break that has no attributes is none of what hides or acts.
func (p *page) rawHTML(n *ast.RawHTML) {
	first, last := n.Segments.At(0).Start, n.Segments.At(n.Segments.Len()-1).Stop
	p.show(first, last)
	switch strings.ToLower(p.view.source[first:last]) {
	case "<br>", "<br/>", "<br />":
		p.view.add('\n', first, last)
	default:
		p.html = append(p.html, n)
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

func (p *page) link(n *ast.Link) {
	first := len(p.view.text)
	p.view.links = append(p.view.links, linkAt{first, n.Pos(), string(n.Destination)})
	p.children(n)
	p.links = append(p.links, linkNode{n, span{first, len(p.view.text)}})
	end := n.Pos() + 1
	if last := len(p.view.to); last > first {
		end = max(end, int(p.view.to[last-1]))
	}
	p.showTarget(end)
}

// showTarget takes what follows a link's text, which ends at an offset, for shown: `](target)`, `][label]` or `]`. What
// of it hides text is judged elsewhere.
func (p *page) showTarget(at int) {
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
	p.show(at, end)
}

// targetEnd is where the target of a link ends that has no title, its bracket included (CommonMark 0.31, "Links").
func targetEnd(source string, at int) int {
	depth := 0
	for ; at < len(source); at++ {
		switch source[at] {
		case '\\':
			at++
		case '<':
			if end := strings.IndexByte(source[at:], '>'); end > 0 && strings.TrimSpace(source[:at]) != "" && source[at-1] == '(' {
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
