package content

import "strings"

// layer is a text with percent-encoding taken off, and where its bytes come from.
type layer struct {
	text    string
	origins []int // offset in the original of each byte of text and of its end; nil means that text is the original
}

// origin is the offset in the original of the byte at offset at, or of the end.
func (l layer) origin(at int) int {
	if l.origins == nil {
		return at
	}
	return l.origins[at]
}

// find gives the spans of the original that hold one of own, which is sorted by fold. Overlaps are possible.
func (l layer) find(own []needle) []span {
	var found []span
	for len(own) > 0 {
		fold := own[0].fold
		folded := fold.of(l.text)
		var kept []int // made when something is found, which is rare
		for len(own) > 0 && own[0].fold == fold {
			size := len(own[0].text)
			for _, at := range occurrences(folded, own[0].text) {
				if kept == nil {
					kept = fold.kept(l.text)
				}
				found = append(found, span{l.origin(kept[at]), l.origin(kept[at+size-1] + 1)})
			}
			own = own[1:]
		}
	}
	return found
}

// occurrences gives the offsets of part in text, overlapping ones left out.
func occurrences(text, part string) []int {
	var offsets []int
	for at := 0; ; {
		i := strings.Index(text[at:], part)
		if i < 0 {
			return offsets
		}
		offsets = append(offsets, at+i)
		at += i + len(part)
	}
}

// percentDecoded replaces each well-formed percent escape with its byte, and says whether there was one.
func (l layer) percentDecoded() (layer, bool) {
	if !strings.Contains(l.text, "%") {
		return l, false
	}
	decoded := make([]byte, 0, len(l.text))
	origins := make([]int, 0, len(l.text)+1)
	changed := false
	for at := 0; at < len(l.text); {
		origins = append(origins, l.origin(at))
		if b, ok := escapedByte(l.text[at:]); ok {
			decoded = append(decoded, b)
			changed = true
			at += 3
			continue
		}
		decoded = append(decoded, l.text[at])
		at++
	}
	origins = append(origins, l.origin(len(l.text)))
	return layer{string(decoded), origins}, changed
}

// escapedByte is the byte that text begins with if that is a percent escape.
func escapedByte(text string) (byte, bool) {
	if len(text) < 3 || text[0] != '%' {
		return 0, false
	}
	high, ok1 := hexDigit(text[1])
	low, ok2 := hexDigit(text[2])
	return high<<4 | low, ok1 && ok2
}

// hexDigit is the value of c as a hexadecimal digit.
func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
