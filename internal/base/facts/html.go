package facts

import "strings"

// beginsHTML says whether a line begins a block of HTML, and what ends that: "" for an empty line. Of what may stand in
// a sentence, only a tag that is alone on its line begins one, and it does not interrupt a paragraph.
func beginsHTML(line string, interrupts bool) (end string, ok bool) {
	switch {
	case strings.HasPrefix(line, "<!--"):
		return "-->", true
	case strings.HasPrefix(line, "<?"):
		return "?>", true
	case strings.HasPrefix(line, "<![CDATA["):
		return "]]>", true
	case len(line) > 2 && line[1] == '!' && isLetter(line[2]) && line[2] < 0x80:
		return ">", true
	}
	closing := strings.HasPrefix(line, "</")
	from := 1
	if closing {
		from++
	}
	to := from
	for to < len(line) && (isAlphanumeric(line[to]) || line[to] == '-' && to > from) {
		to++
	}
	name := strings.ToLower(line[from:min(to, from+maxTagName)])
	behind := line[to:]
	if name == "" || behind != "" && strings.IndexByte(" \t/>", behind[0]) < 0 {
		return "", false
	}
	switch {
	case !closing && isRawTag(name):
		return rawEnd, behind == "" || behind[0] != '/'
	case isBlockTag(name):
		return "", behind == "" || behind[0] != '/' || strings.HasPrefix(behind, "/>")
	}
	return "", !interrupts && !isRawTag(name) && name[0] > '9' && isWholeTag(behind)
}

const (
	maxTagName = 20
	rawEnd     = "</" // and the name of a raw tag
)

// isRawTag says whether an element holds text that is not Markdown, empty lines included.
func isRawTag(name string) bool {
	switch name {
	case "script", "pre", "style", "textarea":
		return true
	}
	return false
}

// endsHTML says whether a line holds what ends a block of HTML.
func endsHTML(line, end string) bool {
	if end != rawEnd {
		if end == "-->" {
			line = strings.TrimPrefix(strings.TrimLeft(line, " \t"), "<!--")
			return strings.Contains(line, end) || strings.HasPrefix(line, ">") || strings.HasPrefix(line, "->")
		}
		return strings.Contains(line, end)
	}
	for rest := line; ; {
		_, after, ok := strings.Cut(rest, rawEnd)
		if !ok {
			return false
		}
		if name, _, closed := strings.Cut(after[:min(len(after), maxTagName)], ">"); closed &&
			isRawTag(strings.ToLower(name)) {
			return true
		}
		rest = after
	}
}

// isWholeTag says whether the text behind a tag's name ends the tag, and nothing else.
func isWholeTag(text string) bool {
	quote := byte(0)
	for i := range len(text) {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '<':
			return false
		case c == '>':
			return strings.Trim(text[i+1:], " \t") == ""
		}
	}
	return false
}

// isBlockTag says whether an element stands outside of paragraphs.
func isBlockTag(name string) bool {
	switch name {
	case "address", "article", "aside", "base", "basefont", "blockquote", "body", "caption", "center", "col", "colgroup",
		"dd", "details", "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "frame",
		"frameset", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hr", "html", "iframe", "legend", "li", "link",
		"main", "menu", "menuitem", "nav", "noframes", "ol", "optgroup", "option", "p", "param", "search", "section",
		"summary", "table", "tbody", "td", "tfoot", "th", "thead", "title", "tr", "track", "ul":
		return true
	}
	return false
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
