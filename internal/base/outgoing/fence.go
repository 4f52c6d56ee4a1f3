package outgoing

import (
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// drawnForm returns the languages of code blocks that GitHub or Gitea draw instead of showing, and of those that a
// click commits.
func drawnForm() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(?:mermaid|math|geojson|topojson|stl|plantuml|suggestion)$`)
}

// fence returns the edits for a fenced code block: it ends before the footer, is not drawn as a picture, and has no
// text in the line that opens it, where no reader sees it.
func (r pageRules) fence(p *page, n *ast.FencedCodeBlock) []edit {
	var out []edit
	if n == p.nodes.openFence {
		r.warn("a code block in the body that did not end is closed")
		out = append(out, insertion(len(p.text), "\n"+fenceRun(p.text[n.Pos():])))
	}
	if n.Info == nil {
		return out
	}
	from, to := n.Info.Segment.Start, n.Info.Segment.Stop
	info := p.text[from:min(to, len(p.text))]
	switch {
	case !r.forms.language.MatchString(info):
		r.warn("%s, which opens a code block, is shown as code", quote(info))
		first := strings.IndexAny(info, " \t")
		if first < 0 || !r.forms.language.MatchString(info[:first]) {
			first = 0
		}
		rest := len(info) - len(strings.TrimLeft(info[first:], " \t")) - first
		out = append(out, edit{from + first, rest, "\n" + continued(p.text, n.Pos())})
	case r.forms.drawn.MatchString(info):
		r.warn("the code block %s is shown as code, and does nothing else", quote(info))
		out = append(out, insertion(from, "text-"))
	default:
		p.show(from, to)
	}
	return out
}

// fenceRun returns the run of backticks or tildes at the start of text.
func fenceRun(text string) string {
	return text[:len(text)-len(strings.TrimLeft(text, text[:1]))]
}

// continued returns the prefix for further lines of the block that begins at an offset: the signs of quotes, and spaces
// for everything else.
func continued(text string, at int) string {
	line := text[strings.LastIndexByte(text[:at], '\n')+1 : at]
	return strings.Map(func(r rune) rune {
		if r == '>' || r == '\t' {
			return r
		}
		return ' '
	}, line)
}

// fenced returns a text as one code block.
func fenced(text string) string {
	run := "```"
	for strings.Contains(text, run) {
		run += "`"
	}
	return run + "\n" + text + "\n" + run
}

// isOneFence reports whether a text has the form that fenced makes.
func isOneFence(text string) bool {
	if !strings.HasPrefix(text, "```") {
		return false
	}
	run := fenceRun(text)
	inner, isOpened := strings.CutPrefix(text, run+"\n")
	inner, isClosed := strings.CutSuffix(inner, "\n"+run)
	return isOpened && isClosed && !strings.Contains(inner, run)
}
