package textscan

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"io"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/claudeops/claudeops/internal/base/textscan/secretrules"
)

// layer is a text with some of its encoding taken off, and where its bytes come from.
type layer struct {
	text    string
	origins []int       // offset in the original of each byte of text and of its end; nil means that text is the original
	changed []byteRange // the parts of text that the last step decoded
}

// originalOffset returns the offset in the original of the byte at offset at, or of the end.
func (l layer) originalOffset(at int) int {
	if l.origins == nil {
		return at
	}
	return l.origins[at]
}

// lastOrigin returns the offset in the original of the last byte of what ends, at the offset end, in the layer: of an
// encoded text, its last one.
func (l layer) lastOrigin(end int) int {
	if l.origins == nil {
		return max(0, end-1)
	}
	from := l.origins[max(0, end-1)]
	if end < 2 || l.origins[end-2] != from {
		return from // it is copied
	}
	next, _ := slices.BinarySearch(l.origins, from+1)
	if next == len(l.origins) {
		return from
	}
	return l.origins[next] - 1
}

// layerBuilder makes the next layer of a text. Bytes that are copied keep their origin; decoded ones have that of the
// place where the encoded text begins.
type layerBuilder struct {
	from    layer
	text    []byte
	origins []int
	changed []byteRange
}

func (b *layerBuilder) copyTo(end, at int) {
	for ; at < end; at++ {
		b.text = append(b.text, b.from.text[at])
		b.origins = append(b.origins, b.from.originalOffset(at))
	}
}

func (b *layerBuilder) appendDecoded(decoded string, at int) {
	start := len(b.text)
	b.text = append(b.text, decoded...)
	for range len(decoded) {
		b.origins = append(b.origins, b.from.originalOffset(at))
	}
	if n := len(b.changed); n > 0 && b.changed[n-1].end == start {
		b.changed[n-1].end = len(b.text)
		return
	}
	b.changed = append(b.changed, byteRange{start, len(b.text)})
}

func (b *layerBuilder) layer() layer {
	origins := append(b.origins, b.from.originalOffset(len(b.from.text)))
	return layer{text: string(b.text), origins: origins, changed: b.changed}
}

const (
	// layerCost is the cost per byte of making a layer and searching it for own credentials.
	layerCost = 25
	// maxDepth limits the layers of encoding that are decoded, such as base64 of base64.
	maxDepth = 5
	// maxUnescapes limits the layers of escapes that are decoded in a row, such as \\u0041 in a string in a string.
	maxUnescapes = 16
)

// layersOf gives the text, and the text with one, two and more layers of encoding taken off, as far as there are any:
// see unescaped, decoded and fromQuotedPrintable. limit, if not negative, is the offset in text of encoded text that is
// not in the layers, because there are more than maxDepth, or because they would have more than three times the bytes
// of text and a MiB. Without enough work left, some layers are missing.
func layersOf(w *secretrules.Work, text string) (all []layer, limit int) {
	all = unescapedLayers(w, layer{text: text})
	if plain, ok := all[0].fromQuotedPrintable(); ok {
		defer func() { all = append(all, plain) }()
	}
	for range maxDepth {
		next, beyond := all[len(all)-1].decoded(w, 3*len(text)+maxInflated)
		if beyond >= 0 {
			return all, beyond
		}
		if next.changed == nil {
			return all, -1
		}
		all = append(all, unescapedLayers(w, next)...)
	}
	last := all[len(all)-1]
	next, beyond := last.decoded(w, 3*len(text)+maxInflated)
	if beyond < 0 && next.changed != nil {
		beyond = next.originalOffset(next.changed[0].start)
	}
	return all, beyond
}

// unescapedLayers gives the layer, and those with one, two and more layers of escapes taken off.
func unescapedLayers(w *secretrules.Work, current layer) []layer {
	all := []layer{current}
	for range maxUnescapes {
		if !w.Spend(layerCost * len(current.text)) {
			break
		}
		next, ok := current.unescaped()
		if !ok {
			break
		}
		all, current = append(all, next), next
	}
	return all
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

// writeDecoded writes the decoded form of the encoded text from start to end, or the text itself. Lines before and
// behind that do not belong to the encoded text would garble it, so the decoded forms of parts of the run follow, a
// line each: the last ones with and without a short line that may end them. next is the offset where the text
// continues; whole is false if packed data has more than maxInflated bytes.
func (b *layerBuilder) writeDecoded(w *secretrules.Work, start, end int) (next int, whole bool) {
	text := b.from.text
	next, whole = end, true
	at, read := start, false
	put := func(part byteRange) bool {
		from, decoded := firstDecoded(w, text, part)
		if decoded == "" {
			return false
		}
		if read {
			b.appendDecoded("\n", at)
		} else {
			b.copyTo(from, start)
		}
		at, read = max(at, from), true
		b.appendDecoded(decoded, at)
		whole = whole && len(decoded) <= maxInflated
		return true
	}
	all := put(byteRange{start, end})
	tail := shortTail(text, end)
	if tail > end && put(byteRange{start, tail}) {
		next = tail
	}
	lines := encodedLines(text, start, end)
	if len(lines) > 1 {
		for _, block := range readings(lines, all) {
			if tail > end && block.end == end && block.start > start {
				put(byteRange{block.start, tail})
			}
			if block.lines > 1 && block.lines < len(lines) && put(block.byteRange) {
				continue
			}
			for _, line := range lines[block.first : block.first+block.lines] {
				put(line)
			}
		}
	}
	if !read {
		b.copyTo(end, start)
	}
	return next, whole
}

// firstDecoded returns the decoded form of a part of a text, and where the encoded text begins. A word before it may
// end in a character that is also one of base64, such as a slash.
func firstDecoded(w *secretrules.Work, text string, part byteRange) (at int, decoded string) {
	const maxTries, byteCost = 8, 20
	for at, tries := part.start, 0; part.end-at >= minRun && tries < maxTries; tries++ {
		if !w.Spend(byteCost * (part.end - at)) {
			break
		}
		if decoded := decodeRun(text[at:part.end]); decoded != "" {
			return at, decoded
		}
		separator := strings.IndexAny(text[at:part.end], "+/-_\n")
		if separator < 0 {
			break
		}
		at += separator + 1
	}
	return part.start, ""
}

// encodedBlock is some lines of encoded text.
type encodedBlock struct {
	byteRange
	first, lines int
}

// readings gives the parts of a run of encoded lines that may stand for something alone: the lines of one length, with
// and without a shorter one behind them, and the last lines but one. If the run stands for something as a whole, and is
// itself of one length, they are only the latter.
func readings(lines []byteRange, whole bool) []encodedBlock {
	const last = 8 // lines
	n := len(lines)
	var all []encodedBlock
	add := func(first, end int) {
		all = append(all, encodedBlock{byteRange{lines[first].start, lines[end-1].end}, first, end - first})
	}
	for first := 0; first < n; {
		end := first + 1
		for end < n && lines[end].length() == lines[first].length() {
			end++
		}
		next := end
		if end < n && lines[end].length() < lines[first].length() {
			end++
		}
		if end-first == n && whole && n > 2 {
			break
		}
		add(first, end)
		if next < end {
			add(first, next)
		}
		first = next
	}
	if n > 2 {
		add(max(0, n-last), n-1)
	}
	return all
}

func (s byteRange) length() int { return s.end - s.start }

// encodedLines gives the lines of encoded text of a run, without what stands between them.
func encodedLines(text string, start, end int) []byteRange {
	var lines []byteRange
	for at := start; at < end; {
		from := at
		for at < end && (isEncoding(text[at]) || text[at] == '=') {
			at++
		}
		lines = append(lines, byteRange{from, at})
		next := lineStart(text, at)
		if next < 0 {
			break
		}
		at = next
	}
	return lines
}

// shortTail returns the end of a last line that is too short to belong for certain to the run of encoded text that ends
// at end, and may still do so; end if there is none.
func shortTail(text string, end int) int {
	next := lineStart(text, end)
	if next < 0 {
		return end
	}
	tail := next
	for tail < len(text) && tail-next < minRun && isEncoding(text[tail]) {
		tail++
	}
	digits := tail
	for tail < len(text) && text[tail] == '=' {
		tail++
	}
	if digits == next || tail < len(text) && !strings.ContainsRune(" \t\r\n\\\"'`", rune(text[tail])) {
		return end
	}
	return tail
}

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
		next, whole := b.writeDecoded(w, at, end)
		if !whole || len(b.text) > limit {
			return layer{}, l.originalOffset(at)
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
	digits := onlyDigits(run)
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

// onlyDigits returns a run without what stands between the digits of encoded text.
func onlyDigits(run string) string {
	digits := make([]byte, 0, len(run))
	for i := range len(run) {
		if isEncoding(run[i]) {
			digits = append(digits, run[i])
		}
	}
	return string(digits)
}

func decodeHex(digits string) ([]byte, error) { return hex.DecodeString(digits) }

func decodeBase32(digits string) ([]byte, error) {
	if strings.ContainsAny(digits, "0189+/-_=") { // most runs are not base32, which costs less to see than to try
		return nil, base32.CorruptInputError(0)
	}
	return base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(digits))
}

func decodeBase64(digits string) ([]byte, error) {
	standard := digits
	if strings.ContainsAny(digits, "-_") {
		standard = strings.NewReplacer("-", "+", "_", "/").Replace(digits)
	}
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
