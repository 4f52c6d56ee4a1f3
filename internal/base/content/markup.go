package content

import "strings"

// withoutMarkup leaves out what shows nothing, or shows aside: comments of HTML, C and shells, tags of HTML, and the
// lines that begin and end blocks of code. It says whether there was any.
func (l layer) withoutMarkup() (layer, bool) {
	if !strings.ContainsAny(l.text, "<#/`~-") {
		return l, false
	}
	b := layerBuilder{from: l}
	from := 0
	for at := 0; at < len(l.text); {
		size := markup(l.text, at)
		if size == 0 {
			at++
			continue
		}
		b.copyTo(at, from)
		b.put("", at)
		at += size
		from = at
	}
	if b.changed == nil {
		return l, false
	}
	b.copyTo(len(l.text), from)
	return b.layer(), true
}

// changedInWords gives the changes that stand between characters of words.
func (l layer) changedInWords() []span {
	var within []span
	for _, c := range l.changed {
		if c.start > 0 && c.end < len(l.text) && inWord(l.text[c.start-1]) && inWord(l.text[c.end]) {
			within = append(within, c)
		}
	}
	return within
}

// markup returns the length of the markup that begins at an offset of a text, or 0.
func markup(text string, at int) int {
	const longest = 512 // bytes of a comment or tag
	switch text[at] {
	case '<', '/', '#', '`', '~', '-':
	default:
		return 0
	}
	rest := text[at:min(len(text), at+longest)]
	switch text[at] {
	case '<':
		if strings.HasPrefix(rest, "<!--") {
			return lengthTo(rest, "<!--", "-->")
		}
		if len(rest) > 1 && (rest[1] == '/' || isAlphanumeric(rest[1])) {
			return lengthTo(rest, "<", ">")
		}
	case '/':
		if strings.HasPrefix(rest, "/*") {
			return lengthTo(rest, "/*", "*/")
		}
	}
	before := byte('\n')
	if at > 0 {
		before = text[at-1]
	}
	line, _, _ := strings.Cut(rest, "\n")
	switch {
	case before == '\n' && (strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~")):
		return len(line)
	case strings.IndexByte("\n \t", before) >= 0 &&
		(line != "" && line[0] == '#' || strings.HasPrefix(line, "//") || strings.HasPrefix(line, "-- ")):
		return len(line)
	}
	return 0
}

// lengthTo returns the length of a part of text that begins and ends with two marks, or 0. It does not contain another
// beginning.
func lengthTo(text, begin, end string) int {
	at := strings.Index(text, end)
	if at < 0 || strings.Contains(text[len(begin):max(at, len(begin))], begin) {
		return 0
	}
	return at + len(end)
}
