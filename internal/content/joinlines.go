package content

import "strings"

// joinedLines gives the places of a layer where a line break, or the sum of two strings, may part a credential: each as a line
// of its own, put together. It says whether there are any. Ordinary prose has few, since there must be a digit in what is put
// together.
func (l layer) joinedLines() (layer, bool) {
	const (
		minSide = 4  // characters on each side of a break
		minBoth = 12 // characters put together
	)
	b := layerBuilder{from: l}
	last := -1 // where the run begins that was appended last
	for at := range len(l.text) {
		if l.text[at] != '\n' {
			continue
		}
		left, right := runBefore(l.text, at), runAfter(l.text, at)
		both := l.text[left.start:left.end] + l.text[right.start:right.end]
		switch {
		case left.end-left.start < minSide, right.end-right.start < minSide, strings.HasPrefix(l.text[right.end:], ":"):
			continue // nothing is parted there, or a name begins
		case left.start == last:
			b.copyTo(right.end, right.start)
		case len(both) < minBoth || !strings.ContainsAny(both, "0123456789"):
			continue
		default:
			b.put("\n", left.start)
			b.copyTo(left.end, strings.LastIndexByte(l.text[:left.start], '\n')+1)
			b.copyTo(right.end, right.start)
		}
		last = right.start
	}
	if len(b.text) == 0 {
		return l, false
	}
	return b.layer(), true
}

// runBefore is the run of characters of credentials that stands before a line break, quotes and operators of strings aside.
func runBefore(text string, at int) span {
	end := len(strings.TrimRight(text[:at], " \t\r\"'`+\\.,;()"))
	start := end
	for start > 0 && isCredential(text[start-1]) {
		start--
	}
	return span{start, end}
}

// runAfter is the one behind it, marks of lists, quotations and comments aside.
func runAfter(text string, at int) span {
	start := len(text) - len(strings.TrimLeft(text[at:], " \t\r\n\"'`+.>#*|()"))
	end := start
	for end < len(text) && isCredential(text[end]) {
		end++
	}
	return span{start, end}
}

// isCredential says whether c is a character that credentials are made of.
func isCredential(c byte) bool { return isAlphanumeric(c) || c == '_' || c == '-' || c == '=' }
