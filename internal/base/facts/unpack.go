package facts

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"io"
	"strconv"
	"strings"
)

// mostUnpacked bounds the decoded text of a file that is read, in bytes.
const mostUnpacked = 16 << 10

// unpacker decodes what a file has encoded, as long as all of it is within mostUnpacked.
type unpacker struct{ used int }

// decode gives the text that a word of hexadecimal, base32 or base64 digits stands for, unpacked if it is compressed;
// "" if it stands for none, or no more is read.
func (p *unpacker) decode(word string) string {
	if len(word) < minEncoded || p.used >= mostUnpacked {
		return ""
	}
	digits := strings.TrimRight(word[:min(len(word), mostEncoded)], "=")
	for _, decode := range []func(string) []byte{hexData, base32Data, base64Data} {
		data := p.unpacked(decode(digits))
		if isText(data) {
			p.used += len(data)
			return string(data)
		}
	}
	return ""
}

func hexData(digits string) []byte {
	for i := range len(digits) {
		if c := digits[i] | 0x20; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return nil // before memory is taken
		}
	}
	data, err := hex.DecodeString(digits)
	if err != nil {
		return nil
	}
	return data
}

// base32Data decodes digits of base32. Those of small letters are none, as many words would be.
func base32Data(digits string) []byte {
	for i := range len(digits) {
		if c := digits[i]; (c < 'A' || c > 'Z') && (c < '2' || c > '7') {
			return nil
		}
	}
	data, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(digits)
	if err != nil {
		return nil
	}
	return data
}

func base64Data(digits string) []byte {
	if !hasMixedCase(digits) {
		return nil
	}
	standard := strings.ReplaceAll(strings.ReplaceAll(digits, "-", "+"), "_", "/")
	if len(standard)%4 == 1 {
		standard = standard[:len(standard)-1]
	}
	data, err := base64.RawStdEncoding.DecodeString(standard)
	if err != nil {
		return nil
	}
	return data
}

// unpacked gives data as they are, or what they hold if gzip or zlib has compressed them.
func (p *unpacker) unpacked(data []byte) []byte {
	var from io.Reader
	var err error
	switch {
	case bytes.HasPrefix(data, []byte{0x1f, 0x8b}):
		from, err = gzip.NewReader(bytes.NewReader(data))
	case len(data) > 2 && data[0] == 0x78 && (int(data[0])<<8+int(data[1]))%31 == 0:
		from, err = zlib.NewReader(bytes.NewReader(data))
	default:
		return data
	}
	if err != nil {
		return data
	}
	// Of data that are cut short, what comes before the cut is read.
	inner, _ := io.ReadAll(io.LimitReader(from, int64(max(0, mostUnpacked-p.used))))
	p.used += len(inner)
	return inner
}

// escapes gives a text with the letters that \x41 and \u0041 stand for in it; "" if the result cannot be read.
func (p *unpacker) escapes(text string) string {
	var out strings.Builder
	for at := 0; at < len(text); {
		digits := 0
		if text[at] == '\\' && at+1 < len(text) {
			digits = map[byte]int{'x': 2, 'u': 4}[text[at+1]]
		}
		if end := at + 2 + digits; digits > 0 && end <= len(text) {
			if value, err := strconv.ParseUint(text[at+2:end], 16, 32); err == nil {
				out.WriteRune(rune(value)) //nolint:gosec // of at most four digits
				at = end
				continue
			}
		}
		out.WriteByte(text[at])
		at++
	}
	if p.used += out.Len(); p.used > mostUnpacked || !isText([]byte(out.String())) {
		return ""
	}
	return out.String()
}
