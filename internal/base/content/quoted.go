package content

import "strings"

// fromQuotedPrintable takes quoted-printable off a layer, as in mails: "=41", and lines that end in "=". It says
// whether there was any. Other layers do not build on this one, since "=" and two digits may also begin a value.
func (l layer) fromQuotedPrintable() (layer, bool) {
	if !strings.Contains(l.text, "=") {
		return l, false
	}
	b := layerBuilder{from: l}
	from := 0
	for at := 0; at < len(l.text); {
		decoded, size := quoted(l.text[at:])
		if size == 0 {
			at++
			continue
		}
		b.copyTo(at, from)
		b.put(decoded, at)
		at += size
		from = at
	}
	if b.changed == nil {
		return l, false
	}
	b.copyTo(len(l.text), from)
	return b.layer(), true
}

// quoted decodes the quoted-printable escape at the start of text, and returns the escape's length in bytes; 0 if text
// begins with none.
func quoted(text string) (decoded string, size int) {
	if text[0] != '=' {
		return "", 0
	}
	rest := strings.TrimLeft(text[1:], " \t\r")
	if strings.HasPrefix(rest, "\n") {
		return "", len(text) - len(rest) + 1
	}
	if value, ok := hexNumber(text[1:], 2); ok {
		return string([]byte{byte(value)}), 3
	}
	return "", 0
}
