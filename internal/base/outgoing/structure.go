package outgoing

import (
	"net/url"
	"regexp"
	"sort"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"
)

// structure returns the edits for what a grammar makes of a body beside its text: HTML, images, links, definitions,
// notes, code blocks, and whatever else is not shown.
func (r pageRules) structure(p *page) []edit {
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
func (r pageRules) html(p *page) []edit {
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
func (r pageRules) misleads(p *page, l linkNode) string {
	shown := strings.TrimSpace(string(p.view.text[l.view.from:l.view.to]))
	switch {
	case len(l.node.Title) > 0:
		return "it has a title, which a page shows to the mouse only"
	case shown == "" || shown == "\n":
		return "it has no text"
	case !plainTarget(target(l.node)):
		return "its address is none of a page"
	case otherHost(shown, target(l.node)):
		return "its text names another address"
	case l.node.Reference != nil && !r.forms.label.MatchString(string(l.node.Reference.Value)) &&
		l.node.Reference.Type == ast.ReferenceLinkFull:
		return "the label of its definition may hide text"
	}
	return ""
}

// asWritten returns the edits that make text of a link. Brackets before it could make a link of what is around it then,
// so they become text as well.
func asWritten(p *page, l linkNode) []edit {
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
func (r pageRules) definitions(p *page) []edit {
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
func (r pageRules) embedded(p *page) []edit {
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
func (r pageRules) unseen(p *page) []edit {
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
				out = append(out, r.show(p.text, from, to))
			}
		}
		from = to - 1
	}
	return out
}

// show returns the edit that makes text of what begins at an offset.
func (r pageRules) show(text string, from, to int) edit {
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
