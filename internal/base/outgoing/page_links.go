package outgoing

import (
	"strings"

	"github.com/yuin/goldmark/ast"
)

// address reads a link that has its address as text.
func (p *page) address(n *ast.AutoLink) {
	label := string(n.Label(p.source))
	from := max(n.Pos(), 0)
	at := strings.Index(p.view.source[from:], label)
	if at < 0 {
		return
	}
	at += from
	first := len(p.view.text)
	p.view.addRaw(at, at+len(label))
	p.show(at, at+len(label))
	p.words.WriteString(label)
	p.nodes.addresses = append(p.nodes.addresses, address{n, at, label})
	p.view.addresses = append(p.view.addresses, span{first, len(p.view.text)})
	if first < len(p.view.from) && at > 0 && p.view.source[at-1] == '<' {
		p.view.from[first]-- // what is put before the address has to stand before its bracket
	}
}

// link reads a link and its text.
func (p *page) link(n *ast.Link) {
	first := len(p.view.text)
	p.view.links = append(p.view.links, linkAt{first, n.Pos(), target(n)})
	p.children(n)
	p.nodes.links = append(p.nodes.links, linkNode{n, span{first, len(p.view.text)}})
	end := n.Pos() + 1
	if last := len(p.view.to); last > first {
		end = max(end, int(p.view.to[last-1]))
	}
	p.showTarget(end)
}

// maxTarget is the longest address of a link, in bytes.
const maxTarget = 500

// target returns the address of a link, or as much of it as shows that it is too long: many links may have one address.
func target(n *ast.Link) string { return string(n.Destination[:min(len(n.Destination), maxTarget+1)]) }

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
