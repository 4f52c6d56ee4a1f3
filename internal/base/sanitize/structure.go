package sanitize

import (
	"bytes"
	"net/url"
	"regexp"
	"sort"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"
)

// structure returns the edits for what a grammar makes of a body beside its text: HTML, images, links, definitions,
// notes, code blocks, and whatever else is not shown.
func (r pageRules) structure(p *parsedBody) []edit {
	var out []edit
	out = append(out, r.html(p)...)
	for _, n := range p.nodes.images {
		r.warn("an image in the body is a link now, so that reading it loads nothing")
		out = append(out, insertion(n.Pos(), `\`))
	}
	for _, l := range p.nodes.links {
		if reason := r.misleads(p, l); reason != "" {
			r.warn("a link in the body is shown as it is written, since %s", reason)
			out = append(out, asWritten(p, l)...)
		}
	}
	out = append(out, r.definitions(p)...)
	out = append(out, r.embedded(p)...)
	for _, at := range p.nodes.notes {
		r.warn("a footnote in the body is shown where it is written")
		out = append(out, entity(p.text, at))
	}
	for _, n := range p.nodes.fences {
		out = append(out, r.fence(p, n)...)
	}
	for _, at := range p.view.veiled {
		r.warn("an entity in the body stands for a character that nobody sees, and is shown as it is written")
		out = append(out, entity(p.text, at))
	}
	if len(out) > 0 {
		return out // what is not shown may be due to these
	}
	return r.unseen(p)
}

// html shows HTML as text: the first bracket of each tag is written as an entity.
func (r pageRules) html(p *parsedBody) []edit {
	var out []edit
	for _, n := range p.nodes.html {
		r.warn("HTML in the body is shown as text")
		switch n := n.(type) {
		case *ast.RawHTML:
			out = append(out, entity(p.text, n.Segments.At(0).Start))
		case *ast.HTMLBlock:
			out = append(out, htmlLines(p.text, n)...)
		}
	}
	return out
}

// htmlLines returns the edits for a block of HTML. Up to a line that may begin a code block each line's first bracket
// is written as an entity; what is left is found again when the block has become text.
func htmlLines(text string, n *ast.HTMLBlock) []edit {
	var out []edit
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		at := line.Start
		for at < min(line.Stop, len(text)) && (text[at] == ' ' || text[at] == '\t') {
			at++
		}
		rest := text[min(at, len(text)):]
		if strings.HasPrefix(rest, "```") || strings.HasPrefix(rest, "~~~") {
			break
		}
		if strings.HasPrefix(rest, "<") {
			out = append(out, entity(text, at))
		}
	}
	return out
}

// misleads says why a link hides something, "" if it does not.
func (r pageRules) misleads(p *parsedBody, l linkNode) string {
	shown := strings.TrimSpace(string(p.view.text[l.view.from:l.view.to]))
	switch {
	case len(l.node.Title) > 0:
		return "it has a title, which a page shows to the mouse only"
	case shown == "" || shown == "\n":
		return "it has no text"
	case !plainTarget(linkTarget(l.node)):
		return "its address is none of a page"
	case otherHost(shown, linkTarget(l.node)):
		return "its text names another address"
	case l.node.Reference != nil && !r.forms.label.MatchString(string(l.node.Reference.Value)) &&
		l.node.Reference.Type == ast.ReferenceLinkFull:
		return "the label of its definition may hide text"
	}
	return ""
}

// asWritten returns the edits that make text of a link. Brackets before it could make a link of what is around it then,
// so they become text as well.
func asWritten(p *parsedBody, l linkNode) []edit {
	out := []edit{entity(p.text, l.node.Pos())}
	of := sort.Search(len(p.nodes.blocks), func(i int) bool { return p.nodes.blocks[i].to >= l.view.from })
	if of < len(p.nodes.blocks) {
		for i := p.nodes.blocks[of].from; i < l.view.from; i++ {
			if p.view.is(i, '[') {
				out = append(out, entity(p.text, int(p.view.from[i])))
			}
		}
	}
	return out
}

// plainTarget reports whether an address is that of a page, a mail box or a place in the repository.
func plainTarget(target string) bool {
	if len(target) > maxTarget || strings.ContainsAny(target, " \t\n\r\"'`<>{}|\\^") {
		return false
	}
	u, err := url.Parse(target)
	if err != nil {
		return false
	}
	switch strings.ToLower(u.Scheme) {
	case "", "http", "https", "mailto":
		return u.User == nil
	}
	return false
}

// otherHost reports whether a link's text is an address of another host than the link's.
func otherHost(shown, target string) bool {
	if strings.HasPrefix(strings.ToLower(shown), "www.") {
		shown = "https://" + shown
	}
	if scheme, _, _ := strings.Cut(strings.ToLower(shown), "://"); scheme != "http" && scheme != "https" {
		return false
	}
	named, err1 := url.Parse(strings.Fields(shown)[0])
	leads, err2 := url.Parse(target)
	return err1 != nil || err2 != nil || !strings.EqualFold(named.Host, leads.Host)
}

// definitions shows those definitions of links that no link uses, or that hide something.
func (r pageRules) definitions(p *parsedBody) []edit {
	used := map[string]bool{}
	for _, l := range p.nodes.links {
		if l.node.Reference != nil {
			used[util.ToLinkReference(l.node.Reference.Value)] = true
		}
	}
	for _, n := range p.nodes.images {
		if n.Reference != nil {
			used[util.ToLinkReference(n.Reference.Value)] = true
		}
	}
	var out []edit
	for _, d := range p.nodes.definitions {
		label := util.ToLinkReference(d.Label)
		if used[label] && len(d.Title) == 0 && plainTarget(string(d.Destination)) {
			delete(used, label) // a second one of the same label is not used
			continue
		}
		from := min(max(d.Pos(), 0), len(p.text))
		if at := strings.IndexByte(p.text[from:], '['); at >= 0 {
			r.warn("a definition of a link, which a page does not show, is shown as text")
			out = append(out, entity(p.text, from+at))
		}
	}
	return out
}

// embedded writes addresses of pictures and films as code: GitHub shows what they lead to in place of the address.
func (r pageRules) embedded(p *parsedBody) []edit {
	var out []edit
	for _, a := range p.nodes.addresses {
		if !r.forms.media.MatchString(a.label) {
			continue
		}
		from, to := a.from, a.from+len(a.label)
		if from > 0 && p.text[from-1] == '<' {
			from, to = from-1, to+1
		}
		r.warn("the address %s in the body is shown as code, so that reading it loads nothing", quote(a.label))
		out = append(out, insertion(from, "`"), insertion(to, "`"))
	}
	return out
}

// unseen returns the edits for text that is in the source and not on the page, for whatever reason: cells beyond a
// table's last column, attributes of a heading, a footnote that nothing refers to. The sign that begins it is written
// as an entity; of lines that are not shown as a whole only the first is changed, since the others may be shown when it
// is.
func (r pageRules) unseen(p *parsedBody) []edit {
	var out []edit
	lineBefore := -1 // end of the last line that is not shown from its start
	for from := 0; from < len(p.text); from++ {
		if p.shown[from] || isSpace(p.text[from]) {
			continue
		}
		to := from
		for to < len(p.text) && !p.shown[to] && p.text[to] != '\n' {
			to++
		}
		if strings.ContainsFunc(p.text[from:to], isWord) {
			line := strings.LastIndexByte(p.text[:from], '\n')
			follows := line >= 0 && line == lineBefore
			if startsLine(p.text, from) {
				lineBefore = to
			}
			if !follows {
				out = append(out, r.escapeEdit(p.text, from, to))
			}
		}
		from = to - 1
	}
	return out
}

// escapeEdit returns the edit that makes text of what begins at an offset.
func (r pageRules) escapeEdit(text string, from, to int) edit {
	r.warn("%s, which a page does not show, is shown as text", quote(strings.TrimSpace(text[from:to])))
	if isPunctuation(text[from]) {
		return entity(text, from)
	}
	return insertion(from, "&#32;")
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// isWord reports whether a character says something by itself, unlike the signs of Markdown.
func isWord(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r >= 0x80
}

// mediaForm matches addresses whose content forges show in place.
func mediaForm() *regexp.Regexp {
	return regexp.MustCompile(`(?i)/user-attachments/|user-images\.|\.(?:apng|avif|bmp|gif|ico|jpe?g|png|svg|webp|` +
		`m4v|mov|mp4|ogv|webm|mp3|ogg|wav)(?:[?#].*)?$`)
}

// drawnForm returns the languages of code blocks that GitHub or Gitea draw instead of showing, and of those that a
// click commits.
func drawnForm() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(?:mermaid|math|geojson|topojson|stl|plantuml|suggestion)$`)
}

// fence returns the edits for a fenced code block: it ends before the footer, is not drawn as a picture, and has no
// text in the line that opens it, where no reader sees it.
func (r pageRules) fence(p *parsedBody, n *ast.FencedCodeBlock) []edit {
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
		p.markVisible(from, to)
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
	const least = 3
	longest, run := least-1, 0
	for i := range len(text) {
		if run++; text[i] != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	return fence + "\n" + text + "\n" + fence
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

// math writes the signs of formulas as entities where a formula could hide text or reach over the end of code: GitHub
// and Gitea render what stands between dollars, older versions of Gitea also between \( and \), and \[ and \].
func (r pageRules) math(p *parsedBody) []edit {
	var out []edit
	for _, b := range p.nodes.blocks {
		out = append(out, r.formulas(p, b)...)
	}
	return out
}

// formulas returns the edits of math for one block.
func (r pageRules) formulas(p *parsedBody, b byteRange) []edit {
	var dollars, escaped []int
	for i := b.from; i < b.to; i++ {
		switch {
		case p.view.is(i, '$'):
			dollars = append(dollars, int(p.view.from[i]))
		case (p.view.text[i] == '(' || p.view.text[i] == '[') && p.text[p.view.from[i]] == '\\':
			escaped = append(escaped, int(p.view.from[i]))
		}
	}
	var out []edit
	end := 0
	if b.to > b.from {
		end = min(int(p.view.to[b.to-1]), len(p.text))
	}
	if len(dollars) > 0 && mayBeFormula(p.text[dollars[0]:end]) {
		r.warn("dollars in the body are written so that they begin no formula")
		for _, at := range dollars {
			out = append(out, entity(p.text, at))
		}
	}
	for _, at := range escaped {
		rest := p.text[at:end]
		if closing := map[byte]string{'(': `\)`, '[': `\]`}[rest[1]]; strings.Contains(rest, closing) ||
			startsLine(p.text, at) {
			r.warn(`\%c in the body is written so that it begins no formula`, rest[1])
			out = append(out, edit{at, 2, entity(rest, 1).put})
		}
	}
	return out
}

// mayBeFormula reports whether text, which begins with a dollar, may be read as a formula with a command, a comment or
// code in it.
func mayBeFormula(text string) bool {
	return strings.HasPrefix(text, "$$") || strings.Contains(text[1:], "$$") ||
		strings.Contains(text[1:], "$") && strings.ContainsAny(text, "\\%{`")
}

func startsLine(text string, at int) bool {
	return strings.TrimLeft(text[strings.LastIndexByte(text[:at], '\n')+1:at], " \t>") == ""
}

// shortLinks splits [[: Gitea makes links and images of what follows it.
func (r textRules) shortLinks(v *view) []edit {
	var out []edit
	for i := 1; i < len(v.text); i++ {
		if v.text[i] == '[' && v.text[i-1] == '[' && bytes.Contains(v.text[i:min(len(v.text), i+1000)], []byte("]]")) {
			r.warn("[[ in the body was split, so that it begins no link of a wiki")
			out = append(out, insertion(int(v.from[i]), " "))
		}
	}
	return out
}

// frontMatter writes a rule in the first line with other signs if it begins data of a page that Gitea would not show as
// they are: comments, and what tells it how to show them.
func (r textRules) frontMatter(text string) []edit {
	found := r.forms.frontMatter.FindStringSubmatchIndex(text)
	if found == nil || plainData(text[found[4]:found[5]]) {
		return nil
	}
	r.warn("the rule in the first line of the body is written as ***")
	return []edit{{found[2], found[3] - found[2], strings.Repeat("*", found[3]-found[2])}}
}

// frontMatterForm is a rule in the first line, and what stands between it and the next one.
const frontMatterForm = `(?s)^[ \t\r\n]*(-{3,})[ \t\r]*\n(.*?\n|)-{3,}[ \t\r]*(?:\n|$)`

// plainData reports whether data of a page are shown as they are written: names with values and lists, without
// comments, signs of YAML that stand for something else, and Gitea's own settings.
func plainData(data string) bool {
	for line := range strings.Lines(data) {
		line = strings.TrimLeft(line, " \t-")
		name, value, named := strings.Cut(line, ":")
		if !named {
			name, value = "", line
		}
		value = strings.TrimSpace(value)
		if strings.HasPrefix(line, "#") || strings.Contains(line, " #") || strings.Contains(line, "\t#") ||
			strings.ContainsAny(name, "\"'{}[]&*!?%") || value != "" && strings.IndexByte("&*!%@`?{", value[0]) >= 0 ||
			strings.EqualFold(strings.TrimSpace(name), "gitea") || strings.HasPrefix(strings.TrimSpace(name), "<<") {
			return false
		}
	}
	return true
}
