package content

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/content/secretrules"
)

const (
	// minRun is the length in bytes below which text does not count as encoded: it could hold no secret.
	minRun = 16
	// maxInflated bounds, in bytes, what a compressed part of a text is unpacked to.
	maxInflated = 1 << 20
)

// decoded replaces each run of base64 (both alphabets), base32 and hexadecimal digits that stands for text, or for
// compressed text (gzip, zlib), by that text. Runs may be broken into lines. The layer's changed is nil if there is
// none. If the layer would have more than limit bytes, it is not made, and beyond is the offset in the original of
// where that showed; else it is negative.
func (l layer) decoded(w *secretrules.Work, limit int) (next layer, beyond int) {
	b := layerBuilder{from: l, text: make([]byte, 0, len(l.text)), origins: make([]int, 0, len(l.text)+1)}
	if !w.Spend(layerCost * len(l.text)) {
		return layer{}, -1
	}
	for at := 0; at < len(l.text); {
		end := runEnd(l.text, at)
		if end-at < minRun {
			next := max(end, at+1)
			b.copyTo(next, at)
			at = next
			continue
		}
		next, whole := b.run(w, at, end)
		if !whole || len(b.text) > limit {
			return layer{}, l.origin(at)
		}
		at = next
	}
	return b.layer(), -1
}

// runEnd returns the end of the run of encoded text that begins at start. It goes on behind the end of a line, with the
// marks of a quotation or comment before the next, if both lines hold at least minRun characters of it.
func runEnd(text string, start int) int {
	end := start
	for {
		for end < len(text) && isEncoding(text[end]) {
			end++
		}
		for end > start && end < len(text) && text[end] == '=' {
			end++
		}
		if end-start < minRun { // before what follows is looked at, which may be much white space
			return end
		}
		next := lineStart(text, end)
		if next < 0 {
			return end
		}
		length := 0
		for next+length < len(text) && isEncoding(text[next+length]) && length < minRun {
			length++
		}
		if length < minRun {
			return end
		}
		end = next
	}
}

// lineStart returns the offset of the text of the next line if a line ends at at, or -1.
func lineStart(text string, at int) int {
	rest := strings.TrimLeft(text[at:], " \t\r\\\"'")
	if !strings.HasPrefix(rest, "\n") {
		return -1
	}
	return len(text) - len(strings.TrimLeft(rest, "\n\r \t>#*|\"'"))
}

// isEncoding says whether c is a digit of base64 in one of its alphabets, and so of base32 and hex as well.
func isEncoding(c byte) bool {
	return isAlphanumeric(c) || c == '+' || c == '/' || c == '-' || c == '_'
}

// decodeRun returns the decoded form of a run, or "". Of packed data it returns at most one byte beyond maxInflated.
func decodeRun(run string) string {
	digits := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && isEncoding(byte(r)) {
			return r
		}
		return -1
	}, run)
	for _, decode := range [](func(string) ([]byte, error)){decodeHex, decodeBase32, decodeBase64} {
		data, err := decode(digits)
		if err != nil || len(data) == 0 {
			continue
		}
		if text := withoutUTF16(inflate(data)); readable(text) {
			return string(text)
		}
	}
	return ""
}

func decodeHex(digits string) ([]byte, error) { return hex.DecodeString(digits) }

func decodeBase32(digits string) ([]byte, error) {
	return base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(digits))
}

func decodeBase64(digits string) ([]byte, error) {
	standard := strings.NewReplacer("-", "+", "_", "/").Replace(digits)
	if len(standard)%4 == 1 {
		standard = standard[:len(standard)-1]
	}
	return base64.RawStdEncoding.DecodeString(standard)
}

// inflate unpacks data that gzip or zlib has compressed, up to a byte beyond maxInflated, and gives other data as they
// are.
func inflate(data []byte) []byte {
	var reader io.Reader
	var err error
	switch {
	case bytes.HasPrefix(data, []byte{0x1f, 0x8b}):
		reader, err = gzip.NewReader(bytes.NewReader(data))
	case len(data) > 2 && data[0] == 0x78 && (int(data[0])<<8|int(data[1]))%31 == 0:
		reader, err = zlib.NewReader(bytes.NewReader(data))
	default:
		return data
	}
	if err != nil {
		return data
	}
	out, _ := io.ReadAll(io.LimitReader(reader, maxInflated+1)) // what came before damage counts
	return out
}

// withoutUTF16 converts text in UTF-16, of either order of bytes, to UTF-8, and returns other data unchanged. Data
// counts as text if it has a zero beside three characters in four.
func withoutUTF16(data []byte) []byte {
	zeros := [2]int{}
	for i, c := range data {
		if c == 0 {
			zeros[i%2]++
		}
	}
	pairs := len(data) / 2
	for high := range zeros {
		if zeros[high]*4 < pairs*3 || zeros[1-high]*4 > pairs {
			continue
		}
		units := make([]uint16, pairs)
		for i := range units {
			units[i] = uint16(data[2*i+high])<<8 | uint16(data[2*i+1-high])
		}
		return []byte(string(utf16.Decode(units)))
	}
	return data
}

// readable says whether data look like text: three bytes in four are printable ASCII, which hardly ever holds for a
// digest, a picture or a key. It leaves room for bytes that were strewn in to make it look otherwise.
func readable(data []byte) bool {
	printable := 0
	for _, c := range data {
		if c >= ' ' && c < 0x7f || c == '\n' || c == '\t' || c == '\r' {
			printable++
		}
	}
	return len(data) > 0 && printable*4 >= len(data)*3
}
