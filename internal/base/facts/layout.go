package facts

import (
	"path"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"github.com/claudeops/claudeops/internal/base/markdown"
	"github.com/claudeops/claudeops/internal/base/strictyaml"
)

// unit is a part of a file that is read as one: a paragraph, a heading, a block of code, a header.
type unit struct {
	where    Where
	prose    bool   // sentences, not code
	language string // of code, in lower case; "" if it is not said
	lines    []unitLine
	words    *wordCache // of the file that the unit is in; nil for none
}

// unitLine is a line of a unit, without the marks of lists and quotations before it.
type unitLine struct {
	number int // in the file, from 0
	text   string
}

// layoutOf parts a file into units, in the order of its lines.
func layoutOf(name, text string, lines []string) []unit {
	switch kind := fileKind(name, lines); kind {
	case "markdown":
		return markdownLayout(text, lines)
	default:
		return []unit{{where: Code, language: kind, lines: numbered(lines, 0)}}
	}
}

// fileKind says how a file is read: "markdown" for text, or the language of its code.
func fileKind(name string, lines []string) string {
	switch extension := strings.TrimPrefix(strings.ToLower(path.Ext(name)), "."); extension {
	case "":
		if len(lines) > 0 && strings.HasPrefix(lines[0], "#!") {
			return shebang(lines[0])
		}
		switch strings.ToLower(path.Base(name)) {
		case "makefile", "dockerfile", "justfile":
			return "sh"
		}
		return "markdown"
	case "md", "markdown", "mdx", "mdc", "txt", "rst", "adoc", "j2", "tmpl":
		return "markdown"
	default:
		return extension
	}
}

// shebang gives the language of a script that begins with #!.
func shebang(line string) string {
	for _, language := range []string{"python", "node", "ruby", "perl", "php"} {
		if strings.Contains(line, language) {
			return language
		}
	}
	return "sh"
}

func numbered(lines []string, first int) []unitLine {
	out := make([]unitLine, len(lines))
	for i, line := range lines {
		out[i] = unitLine{first + i, line}
	}
	return out
}

// markdownLayout parts a Markdown file. Lines that show nothing, such as the definition of a link, are a comment.
func markdownLayout(content string, lines []string) []unit {
	var units []unit
	body := content
	first := 0
	if header, ok := strictyaml.CutFrontMatter(content); ok {
		first = header.BodyLine - 1
		body = header.Body
		units = append(units, unit{where: FrontMatter, language: "yaml", lines: numbered(lines[1:first-1], 1)})
	}
	source := []byte(body)
	document, tooMuch := markdown.Blocks().Parse(source)
	if tooMuch != "" {
		return append(units, unparsed(lines[min(first, len(lines)):], first)...)
	}
	m := markdownWalk{text: body, source: source, starts: lineStarts(body), first: first,
		shown: make([]bool, len(lines)+1), lines: make([]unitLine, 0, len(lines)+1), units: make([]unit, 0, len(lines)/2+1)}
	_ = ast.Walk(document, m.visit) // whose function returns no error
	units = append(units, m.units...)
	return append(units, m.hidden(lines)...)
}

// unparsed gives the lines of a text that is too much to parse: each as prose, and all as code.
func unparsed(lines []string, first int) []unit {
	all := numbered(lines, first)
	units := append(make([]unit, 0, len(lines)+1), unit{where: Code, lines: all})
	for i := range all {
		units = append(units, unit{where: Prose, prose: true, lines: all[i : i+1 : i+1]})
	}
	return units
}

// markdownWalk collects the units of a document.
type markdownWalk struct {
	text   string
	source []byte // of text
	starts []int  // of the lines of source
	first  int    // the number of the source's first line in the file, from 0
	shown  []bool
	units  []unit
	lines  []unitLine // of the units so far
}

// visit is an ast.Walker.
func (m *markdownWalk) visit(node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering || node.Type() != ast.TypeBlock {
		return ast.WalkContinue, nil
	}
	switch n := node.(type) {
	case *ast.Paragraph, *ast.TextBlock, *ast.Heading:
		m.add(unit{where: Prose, prose: true, lines: m.linesOf(node)})
		return ast.WalkSkipChildren, nil
	case *ast.FencedCodeBlock:
		m.add(unit{where: Code, language: strings.ToLower(string(n.Language(m.source))), lines: m.linesOf(node)})
	case *ast.CodeBlock:
		m.add(unit{where: Code, lines: m.linesOf(node)})
	case *ast.HTMLBlock:
		lines := m.linesOf(node)
		if n.HasClosure() {
			at := lineAt(m.starts, n.ClosureLine.Start)
			lines = append(lines, unitLine{m.first + at, string(n.ClosureLine.Value(m.source))})
		}
		for _, u := range htmlUnits(lines) {
			m.add(u)
		}
	}
	return ast.WalkContinue, nil
}

func (m *markdownWalk) linesOf(node ast.Node) []unitLine {
	segments := node.Lines()
	begin := len(m.lines)
	for i := range segments.Len() {
		s := segments.At(i)
		m.lines = append(m.lines, unitLine{m.first + lineAt(m.starts, s.Start), m.lineText(s)})
	}
	return m.lines[begin:len(m.lines):len(m.lines)]
}

// lineText gives a line of a block, without its end.
func (m *markdownWalk) lineText(s text.Segment) string {
	if s.Padding > 0 {
		return strings.TrimRight(string(s.Value(m.source)), "\r\n")
	}
	return strings.TrimRight(m.text[s.Start:s.Stop], "\r\n")
}

func (m *markdownWalk) add(u unit) {
	if len(u.lines) == 0 {
		return
	}
	for _, line := range u.lines {
		m.shown[line.number] = true
	}
	m.units = append(m.units, u)
}

// hidden gives the lines that no block shows, as comments: definitions of links, which may hold any text.
func (m *markdownWalk) hidden(lines []string) []unit {
	var units []unit
	for i := m.first; i < len(lines); i++ {
		if text := strings.TrimLeft(lines[i], " \t>"); !m.shown[i] && strings.HasPrefix(text, "[") {
			units = append(units, unit{where: Comment, prose: true, lines: []unitLine{{i, text}}})
		}
	}
	return units
}

// htmlUnits parts a block of HTML into comments and what is shown.
func htmlUnits(lines []unitLine) []unit {
	var units []unit
	comment := false
	add := func(number int, text string) {
		if strings.TrimSpace(text) == "" {
			return
		}
		where := Prose
		if comment {
			where = Comment
		}
		line := unitLine{number, text}
		if last := len(units) - 1; last >= 0 && units[last].where == where {
			units[last].lines = append(units[last].lines, line)
			return
		}
		units = append(units, unit{where: where, prose: true, lines: []unitLine{line}})
	}
	for _, line := range lines {
		for rest := line.text; rest != ""; {
			mark := "<!--"
			if comment {
				mark = "-->"
			}
			before, after, found := strings.Cut(rest, mark)
			add(line.number, before)
			if found {
				comment = !comment
			}
			rest = after
		}
	}
	return units
}
