// Package markdown parses Markdown that others wrote, within bounds. All parsing goes through it: a parser has products
// of two counts (the columns of a table and its rows, lists that are open and empty lines), so that a few kilobytes
// would take gigabytes. Memory and time are linear in the length of a text that is parsed.
package markdown

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Grammar is a dialect of Markdown. It is not safe for concurrent use.
type Grammar struct {
	goldmark goldmark.Markdown
	meter    *meter
}

// New makes a grammar with goldmark's options.
func New(options ...goldmark.Option) Grammar {
	const afterDefinitions = 150 // and before the tables, at 200
	m := &meter{}
	return Grammar{meter: m, goldmark: goldmark.New(append(options, goldmark.WithParserOptions(
		parser.WithInlineParsers(util.Prioritized(labelMeter{m}, 0)),
		parser.WithParagraphTransformers(util.Prioritized(tableMeter{m}, afterDefinitions))))...)}
}

// Parse gives the document, or nil and what the source has that is too much to parse, in words that follow "it has".
func (g Grammar) Parse(source []byte) (document ast.Node, tooMuch string) {
	if tooMuch := excess(string(source)); tooMuch != "" {
		return nil, tooMuch
	}
	*g.meter = meter{}
	document = g.goldmark.Parser().Parse(text.NewReader(source))
	if g.meter.tooMuch != "" {
		return nil, g.meter.tooMuch
	}
	return document, ""
}

// Render writes the HTML of a document.
func (g Grammar) Render(w io.Writer, source []byte, document ast.Node) error {
	return g.goldmark.Renderer().Render(w, source, document)
}

const (
	// maxCells bounds the cells of all tables, those included that a row lacks.
	maxCells = 10_000
	// maxBars bounds the escaped bars of all tables: the parser compares each with each.
	maxBars = 1000
	// maxLabels bounds the texts between brackets, in bytes: the parser copies each, as it may be the label of a link.
	maxLabels = 1 << 20
)

// meter counts what a parse costs, where the parser is about to do it. Once a bound is exceeded, the parser is kept
// from all more of the kind.
type meter struct {
	tooMuch     string
	cells, bars int
	labels      int
	block       ast.Node // whose brackets are in open
	open        []int    // offsets of brackets that are not closed
}

// tableMeter counts cells and escaped bars.
type tableMeter struct{ *meter }

// Transform implements parser.ParagraphTransformer: it takes all lines but the first from what would be too large a
// table, so that it is none.
func (m tableMeter) Transform(paragraph *ast.Paragraph, reader text.Reader, _ parser.Context) {
	lines := paragraph.Lines()
	cells, bars := 0, 0
	for i := 1; i < lines.Len(); i++ {
		line := lines.At(i)
		value := line.Value(reader.Source())
		if len(bytes.Trim(value, "|:- \t\r\n\v\f")) == 0 {
			cells = max(cells, (bytes.Count(value, []byte("|"))+1)*(lines.Len()-i))
		}
		bars += bytes.Count(value, []byte(`\|`))
	}
	if cells == 0 {
		return
	}
	m.cells, m.bars = m.cells+cells, m.bars+bars
	switch {
	case m.cells > maxCells:
		m.tooMuch = fmt.Sprintf("tables of more than %d cells", maxCells)
	case m.bars > maxBars:
		m.tooMuch = fmt.Sprintf("tables with more than %d escaped bars", maxBars)
	}
	if m.tooMuch != "" {
		lines.SetSliced(0, 1)
	}
}

// labelMeter counts the texts between brackets.
type labelMeter struct{ *meter }

// Trigger implements parser.InlineParser.
func (labelMeter) Trigger() []byte { return []byte("[]") }

// Parse implements parser.InlineParser. It leaves what it sees to the parser of links; beyond the bound it takes the
// rest of the block.
func (m labelMeter) Parse(parent ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, segment := block.PeekLine()
	if parent != m.block {
		m.block, m.open = parent, m.open[:0]
	}
	if last := len(m.open) - 1; line[0] == '[' {
		m.open = append(m.open, segment.Start)
	} else if last >= 0 {
		m.labels += segment.Start - m.open[last]
		m.open = m.open[:last]
	}
	if m.labels > maxLabels {
		m.tooMuch = fmt.Sprintf("more than %d bytes between brackets in brackets", maxLabels)
	}
	if m.tooMuch == "" {
		return nil
	}
	for line, _ := block.PeekLine(); line != nil; line, _ = block.PeekLine() {
		block.AdvanceLine()
	}
	return ast.NewTextSegment(segment.WithStop(segment.Start))
}

// Bounds of a text that is parsed, by its lines. The parser's time or memory grows with the square of any of these.
const (
	maxContainers = 40      // quotes and lists that one line opens
	maxDelimiters = 4000    // brackets, and signs of emphasis, in one paragraph
	maxOpen       = 20_000  // quotes and lists that may be open, counted anew in each empty line
	maxNotes      = 1000    // footnotes and references to them
	maxAttributes = 1 << 22 // attributes that begin in a line, times its bytes, for all lines
)

// excess says which bound a text exceeds, "" if none.
func excess(text string) string {
	brackets, emphasis, attributes, open := 0, 0, 0, 0
	depth, afterEmpty := 0, true
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			brackets, emphasis, afterEmpty = 0, 0, true
			if open += depth; open > maxOpen {
				return fmt.Sprintf("more than %d quotes and lists that go on over empty lines", maxOpen)
			}
			continue
		}
		opened := containers(line)
		if opened > maxContainers {
			return fmt.Sprintf("a line with %d quotes and lists in each other; at most %d are read", opened, maxContainers)
		}
		if inner := opened + indentation(line)/2; afterEmpty || inner > depth { // else it may belong to the lines before
			depth, afterEmpty = inner, false
		}
		brackets += strings.Count(line, "[") + strings.Count(line, "<") + strings.Count(line, "(")
		emphasis += strings.Count(line, "*") + strings.Count(line, "_") + strings.Count(line, "~")
		if brackets > maxDelimiters || emphasis > maxDelimiters {
			return fmt.Sprintf("a paragraph with more than %d brackets or signs of emphasis", maxDelimiters)
		}
		if attributes += attributesIn(line) * len(line); attributes > maxAttributes {
			return "too many attributes of headings"
		}
	}
	if strings.Count(text, "[^") > maxNotes {
		return fmt.Sprintf("more than %d footnotes", maxNotes)
	}
	return ""
}

// indentation returns the indentation of a line, in columns; a tab is four.
func indentation(line string) int {
	space := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	return len(space) + 3*strings.Count(space, "\t")
}

// attributesIn counts what may be classes of a heading: each is added to a copy of those before it.
func attributesIn(line string) int {
	_, rest, has := strings.Cut(line, "{")
	if !has {
		return 0
	}
	n := strings.Count(rest, "class")
	for i := range len(rest) {
		if rest[i] == '.' && (i == 0 || strings.IndexByte(" \t,\"'", rest[i-1]) >= 0) {
			n++
		}
	}
	return n
}

// containers counts the signs at a line's start that may each open a quote or a list.
func containers(line string) int {
	n := 0
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '>':
			n++
		case c == ' ' || c == '\t' || c >= '0' && c <= '9':
		case strings.IndexByte("-+*.):", c) >= 0:
			if i+1 == len(line) || line[i+1] == ' ' || line[i+1] == '\t' {
				n++
			}
		default:
			return n
		}
	}
	return n
}
