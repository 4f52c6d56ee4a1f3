package facts

import (
	"slices"
	"strings"
)

// blockScanner parts the body of a Markdown file into its blocks: paragraphs, headings, code, HTML. It follows
// CommonMark, and tests compare it with the library that reads Markdown elsewhere. It is code of our own since that
// library took up to half of the time that the reader of facts may take: it builds a tree, which is walked once.
// Each line is looked at once, against at most maxContainers quotes and lists. What parses otherwise than on a forge's
// page is read all the same: no text is left out but the marks themselves.
type blockScanner struct {
	open  []container // quotes and items of lists that the line before was in
	leaf  leaf        // the block that the next line may go on with
	begin int         // of the leaf's lines
	items int         // that were opened
	lines []unitLine  // of all units so far
	units []unit
}

// container is a quote, or an item of a list.
type container struct {
	quote bool
	width int  // of an item: the columns by which its lines are indented
	item  int  // its number among all of the file, from 1; 0 for a quote
	steps bool // the items of its list are numbered
	empty bool // it has no block yet
}

// maxContainers bounds the quotes and items that may be open. What is in more of them is read as prose and as code.
const maxContainers = 40

// leafKind is the kind of a block that has lines.
type leafKind int

const (
	noLeaf leafKind = iota
	headingLeaf
	paragraphLeaf
	fencedLeaf
	indentedLeaf
	htmlLeaf
)

// leaf is a block that is open.
type leaf struct {
	kind     leafKind
	language string // of fenced code
	fence    string // the signs that ended the line before fenced code
	indent   int    // columns before the fence
	end      string // what ends HTML; "" for an empty line
}

// scanBlocks gives the units of lines, of which the first has a number.
func scanBlocks(lines []string, first int) []unit {
	s := blockScanner{lines: make([]unitLine, 0, len(lines)+1), units: make([]unit, 0, len(lines)/2+1)}
	for i, line := range lines {
		s.read(first+i, line)
	}
	s.endLeaf()
	return s.units
}

// read reads a line.
func (s *blockScanner) read(number int, text string) {
	c := cursor{text: text}
	c.look()
	matched := s.match(&c)
	if matched == len(s.open) && s.goesOn(number, &c) {
		return
	}
	if c.blank() {
		s.readBlank(number, matched)
		return
	}
	for {
		whole := matched == len(s.open)
		switch rest := c.rest(); {
		case c.indent() >= codeIndent:
			s.readIndented(number, &c, matched)
			return
		case rest[0] == '>':
			c.pass(1)
			c.skip(1)
			s.push(container{quote: true, empty: true}, &matched)
		case s.readLeaf(number, &c, matched, whole):
			return
		default:
			width, ok := listMarker(rest, whole && s.leaf.kind == paragraphLeaf)
			if !ok {
				s.readText(number, rest, matched)
				return
			}
			s.items++
			steps := rest[0] >= '0' && rest[0] <= '9'
			s.push(container{width: c.passMarker(width), item: s.items, steps: steps, empty: true}, &matched)
		}
		if c.blank() {
			return
		}
		if matched > maxContainers {
			s.addBoth(number, c.rest())
			return
		}
	}
}

// codeIndent is the number of columns from which on a line is code.
const codeIndent = 4

// match returns how many of the open containers a line is in, and passes their marks.
func (s *blockScanner) match(c *cursor) int {
	for i, in := range s.open {
		switch {
		case in.quote:
			if c.blank() || c.indent() >= codeIndent || c.text[c.next] != '>' {
				return i
			}
			c.pass(1)
			c.skip(1)
		case c.blank():
			if in.empty {
				return i
			}
		case c.indent() < in.width:
			return i
		default:
			c.skip(in.width)
		}
	}
	return len(s.open)
}

// goesOn adds a line to the code or HTML that is open, and says whether it belongs there.
func (s *blockScanner) goesOn(number int, c *cursor) bool {
	switch s.leaf.kind {
	case fencedLeaf:
		if !c.blank() && c.indent() < codeIndent && closesFence(c.rest(), s.leaf.fence) {
			s.endLeaf()
			return true
		}
		c.skip(min(s.leaf.indent, c.indent()))
		s.addLine(number, c.text[c.at:])
		return true
	case htmlLeaf:
		if s.leaf.end == "" && c.blank() {
			return false
		}
		s.addLine(number, c.text[c.at:])
		if s.leaf.end != "" && endsHTML(c.text, s.leaf.end) {
			s.endLeaf()
		}
		return true
	}
	return false
}

// closesFence says whether a line ends code that signs have begun.
func closesFence(text, fence string) bool {
	text = trimBlankRight(text)
	return len(text) >= len(fence) && strings.Trim(text, fence[:1]) == ""
}

// readBlank reads a line without text.
func (s *blockScanner) readBlank(number, matched int) {
	if matched < len(s.open) || s.leaf.kind != indentedLeaf {
		s.endLeaf()
	} else {
		s.addLine(number, "")
	}
	s.open = s.open[:matched]
}

// readIndented reads a line that is indented as code is: it goes on with a paragraph, or is code.
func (s *blockScanner) readIndented(number int, c *cursor, matched int) {
	if s.leaf.kind == paragraphLeaf {
		s.addLine(number, c.rest())
		return
	}
	if s.leaf.kind != indentedLeaf || matched < len(s.open) {
		s.startLeaf(leaf{kind: indentedLeaf}, matched)
	}
	c.skip(codeIndent)
	s.addLine(number, c.text[c.at:])
}

// readText reads a line of a paragraph, which goes on in lines that lack the marks of its quotes and lists.
func (s *blockScanner) readText(number int, text string, matched int) {
	if s.leaf.kind != paragraphLeaf {
		s.startLeaf(leaf{kind: paragraphLeaf}, matched)
	}
	s.addLine(number, text)
}

// readLeaf reads a line that is a block of its own or begins one, and says whether it is such. whole says that the
// line is in all open containers, so that it may underline a paragraph.
func (s *blockScanner) readLeaf(number int, c *cursor, matched int, whole bool) bool {
	rest := c.rest()
	inParagraph := whole && s.leaf.kind == paragraphLeaf
	switch rest[0] {
	case '#':
		text, ok := headingText(rest)
		if ok {
			s.startLeaf(leaf{kind: headingLeaf}, matched)
			s.addLine(number, text)
			s.endLeaf()
		}
		return ok
	case '`', '~':
		return s.readFence(number, c, matched)
	case '<':
		end, ok := beginsHTML(rest, s.leaf.kind == paragraphLeaf)
		if !ok {
			return false
		}
		s.startLeaf(leaf{kind: htmlLeaf, end: end}, matched)
		s.addLine(number, c.text[c.at:])
		if end != "" && endsHTML(rest, end) {
			s.endLeaf()
		}
		return true
	case '=', '-', '*', '_':
		if inParagraph && isUnderline(rest) || isBreak(rest) {
			s.startLeaf(leaf{}, matched)
			return true
		}
	}
	return false
}

// readFence begins fenced code, and says whether the line does. What stands behind the language is shown nowhere.
func (s *blockScanner) readFence(number int, c *cursor, matched int) bool {
	const least = 3
	rest := c.rest()
	sign := rest[:1]
	info := strings.TrimLeft(rest, sign)
	fence := rest[:len(rest)-len(info)]
	if len(fence) < least || sign == "`" && strings.Contains(info, sign) {
		return false
	}
	language, more, _ := strings.Cut(trimBlankRight(trimBlank(info)), " ")
	if more != "" {
		s.startLeaf(leaf{}, matched)
		s.units = append(s.units, unit{where: Comment, prose: true, lines: []unitLine{{number, more}}})
	}
	s.startLeaf(leaf{kind: fencedLeaf, language: strings.ToLower(language), fence: fence, indent: c.indent()}, matched)
	return true
}

// push opens a container behind the first ones that a line is in, and ends what else was open.
func (s *blockScanner) push(in container, matched *int) {
	s.startLeaf(leaf{}, *matched)
	s.open = append(s.open, in)
	*matched++
}

// startLeaf ends what is open beyond the containers that a line is in, and opens a leaf.
func (s *blockScanner) startLeaf(next leaf, matched int) {
	s.endLeaf()
	s.open = s.open[:matched]
	if matched > 0 {
		s.open[matched-1].empty = false
	}
	s.leaf = next
}

func (s *blockScanner) addLine(number int, text string) {
	s.lines = append(s.lines, unitLine{number, text})
}

// endLeaf makes units of the lines of the leaf.
func (s *blockScanner) endLeaf() {
	lines := s.lines[s.begin:len(s.lines):len(s.lines)]
	kind := s.leaf.kind
	language := s.leaf.language
	s.begin, s.leaf = len(s.lines), leaf{}
	switch kind {
	case headingLeaf:
		s.addUnit(unit{where: Prose, prose: true, heading: true, lines: lines})
	case paragraphLeaf:
		for len(lines) > 0 && isDefinition(lines[0].text) {
			s.addUnit(unit{where: Comment, prose: true, lines: lines[:1:1]})
			lines = lines[1:]
		}
		s.addUnit(unit{where: Prose, prose: true, listed: s.inList(), lines: lines})
	case indentedLeaf:
		for lines[len(lines)-1].text == "" {
			lines = lines[:len(lines)-1]
		}
		s.addUnit(unit{where: Code, lines: lines})
	case fencedLeaf:
		s.addUnit(unit{where: Code, language: language, lines: lines})
	case htmlLeaf:
		s.units = append(s.units, htmlUnits(lines)...)
	}
}

// innermost gives the number of the innermost item that is open, how deep it is, and whether it is numbered.
func (s *blockScanner) innermost() (item, depth int, step bool) {
	if len(s.open) == 0 {
		return 0, 0, false
	}
	last := s.open[len(s.open)-1]
	return last.item, len(s.open), last.steps
}

// inList says whether an item of a list is open.
func (s *blockScanner) inList() bool {
	return slices.ContainsFunc(s.open, func(c container) bool { return !c.quote })
}

func (s *blockScanner) addUnit(u unit) {
	if len(u.lines) > 0 {
		u.item, u.depth, u.step = s.innermost()
		s.units = append(s.units, u)
	}
}

// addBoth adds a line that is in too many containers, as prose and as code.
func (s *blockScanner) addBoth(number int, text string) {
	lines := []unitLine{{number, text}}
	s.units = append(s.units, unit{where: Code, lines: lines}, unit{where: Prose, prose: true, lines: lines})
}

// cursor is a place in a line. A tab goes on to the next column that four divides.
type cursor struct {
	text             string
	at, column       int // before this, marks and white space are passed
	next, nextColumn int // of the first sign from there that is not white space
}

func (c *cursor) blank() bool  { return c.next == len(c.text) }
func (c *cursor) indent() int  { return c.nextColumn - c.column }
func (c *cursor) rest() string { return trimBlankRight(c.text[c.next:]) }

// look finds the next sign that is not white space.
func (c *cursor) look() {
	c.next, c.nextColumn = c.at, c.column
	for ; c.next < len(c.text); c.next++ {
		switch c.text[c.next] {
		case ' ':
			c.nextColumn++
		case '\t':
			c.nextColumn += tabWidth(c.nextColumn)
		default:
			return
		}
	}
}

func tabWidth(column int) int { return codeIndent - column%codeIndent }

// skip passes columns of white space, as far as there are such.
func (c *cursor) skip(columns int) {
	for columns > 0 && c.at < c.next {
		width := 1
		if c.text[c.at] == '\t' {
			width = tabWidth(c.column)
		}
		if width > columns { // the tab is passed in part
			c.column += columns
			return
		}
		c.at, c.column, columns = c.at+1, c.column+width, columns-width
	}
}

// pass passes the white space, and signs behind it.
func (c *cursor) pass(signs int) {
	c.at, c.column = c.next+signs, c.nextColumn+signs
	c.look()
}

// passMarker passes the mark of a list's item, and returns by how many columns the item's lines are indented.
func (c *cursor) passMarker(width int) int {
	before := c.indent()
	c.pass(width)
	space := c.indent()
	if c.blank() || space > codeIndent {
		space = 1
	}
	c.skip(space)
	return before + width + space
}

// listMarker returns the length of the mark of a list's item that a text begins with. A paragraph is interrupted only
// by an item that has a text, and whose number, if any, is 1.
func listMarker(text string, interrupts bool) (width int, ok bool) {
	const digits = 9
	switch c := text[0]; {
	case c == '-' || c == '+' || c == '*':
		width = 1
	case c >= '0' && c <= '9':
		for width < len(text) && width < digits && text[width] >= '0' && text[width] <= '9' {
			width++
		}
		if width == len(text) || text[width] != '.' && text[width] != ')' || interrupts && text[:width] != "1" {
			return 0, false
		}
		width++
	default:
		return 0, false
	}
	if width == len(text) {
		return width, !interrupts
	}
	return width, text[width] == ' ' || text[width] == '\t'
}

// headingText gives the text of a heading, and says whether a line is one.
func headingText(line string) (string, bool) {
	const deepest = 6
	text := strings.TrimLeft(line, "#")
	if len(line)-len(text) > deepest || text != "" && text[0] != ' ' && text[0] != '\t' {
		return "", false
	}
	text = trimBlankRight(trimBlank(text))
	if closed := strings.TrimRight(text, "#"); closed == "" || strings.HasSuffix(closed, " ") ||
		strings.HasSuffix(closed, "\t") {
		text = strings.TrimRight(closed, " \t")
	}
	return text, true
}

// isUnderline says whether a line makes the paragraph above it a heading.
func isUnderline(line string) bool {
	return (line[0] == '=' || line[0] == '-') && strings.Trim(line, line[:1]) == ""
}

// isBreak says whether a line is a rule across the page.
func isBreak(line string) bool {
	const least = 3
	if line[0] == '=' {
		return false
	}
	signs := 0
	for i := range len(line) {
		switch line[i] {
		case line[0]:
			signs++
		case ' ', '\t':
		default:
			return false
		}
	}
	return signs >= least
}

// isDefinition says whether a line of a paragraph's beginning defines the address of a link, which no page shows.
func isDefinition(line string) bool {
	if !strings.HasPrefix(line, "[") {
		return false
	}
	label, rest, ok := strings.Cut(line[1:], "]:")
	if !ok || strings.TrimSpace(label) == "" || strings.ContainsAny(label, "[]") || strings.HasPrefix(label, "^") {
		return false
	}
	_, title, _ := strings.Cut(strings.TrimLeft(rest, " \t"), " ")
	title = strings.Trim(title, " \t")
	return title == "" || strings.IndexByte(`"'(`, title[0]) >= 0
}
