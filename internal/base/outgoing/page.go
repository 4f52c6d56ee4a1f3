package outgoing

import (
	"strings"

	"github.com/yuin/goldmark/ast"

	"github.com/claudeops/claudeops/internal/base/markdown"
)

// page is a body as one grammar reads it.
type page struct {
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
	addresses   []address
	notes       []int // where footnotes and references to them begin
	fences      []*ast.FencedCodeBlock
	openFence   *ast.FencedCodeBlock
	blocks      []span // of text: blocks that hold text, such as paragraphs and cells
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

// The footer of a pull request, as far as its structure goes: each of the three has to be a block of the document.
const (
	sampleRule   = "---"
	sampleText   = "Proposed."
	sampleMark   = "<!-- mark -->"
	sampleFooter = "\n\n" + sampleRule + "\n\n" + sampleText + "\n\n" + sampleMark + "\n"
)

// read parses a body with a footer behind it, or says what the body has that is too much to parse.
func read(grammar markdown.Grammar, text string) (_ *page, tooMuch string) {
	source := text + sampleFooter
	document, tooMuch := grammar.Parse([]byte(source))
	if tooMuch != "" {
		return nil, tooMuch
	}
	p := &page{text: text, source: []byte(source), view: newView(source), shown: make([]bool, len(source))}
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
func (p *page) isOfFooter(block ast.Node) bool {
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
