package content

import (
	"strings"

	"github.com/claudeops/claudeops/internal/base/content/secretrules"
)

// run writes the decoded form of the encoded text from start to end, or the text itself. Lines before and behind that
// do not belong to the encoded text would garble it, so the decoded forms of parts of the run follow, a line each. next
// is the offset where the text continues; whole is false if packed data has more than maxInflated bytes.
func (b *layerBuilder) run(w *secretrules.Work, start, end int) (next int, whole bool) {
	text := b.from.text
	next, whole = end, true
	at, read := start, false
	put := func(part span) bool {
		from, decoded := firstDecoded(w, text, part)
		if decoded == "" {
			return false
		}
		if read {
			b.put("\n", at)
		} else {
			b.copyTo(from, start)
		}
		at, read = max(at, from), true
		b.put(decoded, at)
		whole = whole && len(decoded) <= maxInflated
		return true
	}
	all := put(span{start, end})
	if tail := shortTail(text, end); tail > end && put(span{start, tail}) {
		next = tail
	}
	lines := encodedLines(text, start, end)
	if len(lines) > 1 {
		for _, block := range readings(lines, all) {
			if block.lines > 1 && block.lines < len(lines) && put(block.span) {
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
func firstDecoded(w *secretrules.Work, text string, part span) (at int, decoded string) {
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

// block is some lines of encoded text.
type block struct {
	span
	first, lines int
}

// readings gives the parts of a run of encoded lines that may stand for something alone: the lines of one length, with
// and without a shorter one behind them, and the last lines but one. If the run stands for something as a whole, and is
// itself of one length, they are only the latter.
func readings(lines []span, whole bool) []block {
	const last = 8 // lines
	n := len(lines)
	var all []block
	add := func(first, end int) {
		all = append(all, block{span{lines[first].start, lines[end-1].end}, first, end - first})
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

func (s span) length() int { return s.end - s.start }

// encodedLines gives the lines of encoded text of a run, without what stands between them.
func encodedLines(text string, start, end int) []span {
	var lines []span
	for at := start; at < end; {
		from := at
		for at < end && (isEncoding(text[at]) || text[at] == '=') {
			at++
		}
		lines = append(lines, span{from, at})
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
