package textscan

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// maxHidden is the most findings that Hidden returns.
const maxHidden = 20

// HiddenChar is one character that a reviewer cannot see, or that changes the order in which text is shown.
type HiddenChar struct {
	Line   int // 1-based
	Column int // 1-based, in runes
	Rune   rune
	Name   string // such as "RIGHT-TO-LEFT OVERRIDE (U+202E)"
}

// Hidden lists the first maxHidden characters of text that a reviewer cannot see or that reorder it. Empty means that a
// person sees the text as it is. Refused are:
//
//   - control characters (NUL included) but tab, newline, and a carriage return right before a newline;
//   - format characters (category Cf): bidi controls, zero-width characters, a byte order mark anywhere, tags. The
//     number and citation marks of Arabic, Syriac and Kaithi are in that category too but are seen, so they pass;
//   - what fonts must not draw (Default_Ignorable_Code_Point): fillers, joiners, variation selectors;
//   - U+2800 (blank braille), and the line and paragraph separators, which end a line for some programs only;
//   - private use: no reviewer can know what such a character shows on another machine;
//   - noncharacters and unassigned code points, but for the planes' pictograph blocks (U+1F000 to U+1FAFF), where new
//     emoji appear every year and are drawn as a box until then.
//
// Exceptions: U+FE0F after an emoji and in keycaps such as 1️⃣; U+200D between two emoji; the tags of the flags of
// England, Scotland and Wales, and of no other. U+200C and U+200D stay refused in scripts that spell with them.
//
// Sources: Unicode Standard Annexes 9 (bidirectional algorithm) and 44 (character database), Unicode Technical Standard
// 51 (emoji), and "Trojan Source: Invisible Vulnerabilities" by Boucher and Anderson (CVE-2021-42574). Invalid UTF-8 is
// not reported: callers refuse it earlier. Time is linear in the length of text.
func Hidden(text string) []HiddenChar {
	var found []HiddenChar
	line, column := 1, 0
	walk(text, func(r rune, hidden bool) bool {
		column++
		if hidden {
			found = append(found, HiddenChar{Line: line, Column: column, Rune: r, Name: runeName(r)})
		}
		if r == '\n' {
			line, column = line+1, 0
		}
		return len(found) < maxHidden
	})
	return found
}

const (
	zeroWidthJoiner = '\u200d'
	emojiSelector   = '\ufe0f' // asks for the coloured form of the emoji before it
	keycap          = "\u20e3" // draws a key around the character before it
)

// left is the kind of the preceding character, as far as the emoji rules of walk need it.
type left int

const (
	leftOther     left = iota
	leftKeycapKey      // a digit, # or *
	leftEmoji
	leftSelected // an emoji with its selector
)

// walk calls visit with each character of text, in order, and whether it is hidden, until visit returns false.
// A byte that is not valid UTF-8 is visited as utf8.RuneError.
// A verdict depends only on characters that are visible or allowed, so that removing the hidden ones changes no other.
func walk(text string, visit func(r rune, hidden bool) bool) {
	before := leftOther
	tagsEnd := 0 // tags up to this offset belong to a flag
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		rest := text[at+size:]
		hidden := false
		now := leftOther
		switch {
		case r >= ' ' && r < 0x7f:
			if r == '#' || r == '*' || r >= '0' && r <= '9' {
				now = leftKeycapKey
			}
		case r == '\r':
			hidden = !strings.HasPrefix(rest, "\n")
		case r == emojiSelector && before == leftEmoji:
			now = leftSelected
		case r == emojiSelector:
			hidden = before != leftKeycapKey || !strings.HasPrefix(rest, keycap)
		case r == zeroWidthJoiner:
			next, _ := utf8.DecodeRuneInString(rest)
			hidden = (before != leftEmoji && before != leftSelected) || !isEmoji(next)
		case isEmoji(r):
			now = leftEmoji
			if r == blackFlag {
				tagsEnd = at + size + flagTags(rest)
			}
		default:
			hidden = at >= tagsEnd && invisible(r)
		}
		if !visit(r, hidden) {
			return
		}
		before = now
		at += size
	}
}

// invisible says whether r is refused wherever it stands; see Hidden.
func invisible(r rune) bool {
	switch {
	case r == '\t' || r == '\n':
		return false
	case r < ' ' || r >= 0x7f && r < 0xa0:
		return true
	case r < 0xad:
		return false
	case unicode.Is(unicode.Cf, r):
		return !unicode.Is(unicode.Prepended_Concatenation_Mark, r) && r != syriacAbbreviation
	case r == 0x2800:
		return true
	case r >= 0x1f000 && r <= 0x1faff:
		return false
	}
	return unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point,
		unicode.Zl, unicode.Zp, unicode.Co, unicode.Cn)
}

// syriacAbbreviation draws a line over a word.
const syriacAbbreviation = '\u070f'

// blackFlag begins the flags that are spelled with tag characters.
const blackFlag = '\U0001f3f4'

// flagTags returns the length in bytes of the tags that make a flag of the black flag before rest, or 0. Unicode
// Technical Standard 51, annex C, allows tags for any subdivision; only the three flags that fonts draw are accepted,
// since tags that draw nothing are a hidden channel.
func flagTags(rest string) int {
	const (
		england  = "\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
		scotland = "\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"
		wales    = "\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f"
	)
	for _, tags := range []string{england, scotland, wales} {
		if strings.HasPrefix(rest, tags) {
			return len(tags)
		}
	}
	return 0
}

// isEmoji says whether r has the property Emoji of Unicode 16.0 (emoji-data.txt of Unicode Technical Standard 51),
// without the keycap keys (digits, # and *) and the regional indicators, which take neither selector nor joiner.
func isEmoji(r rune) bool {
	if r < 0xa9 || r > 0x1faf8 || r > 0x3299 && r < 0x1f004 {
		return false
	}
	ranges := [...][2]rune{
		{0xa9, 0xa9}, {0xae, 0xae}, {0x203c, 0x203c}, {0x2049, 0x2049}, {0x2122, 0x2122}, {0x2139, 0x2139},
		{0x2194, 0x2199}, {0x21a9, 0x21aa}, {0x231a, 0x231b}, {0x2328, 0x2328}, {0x23cf, 0x23cf}, {0x23e9, 0x23f3},
		{0x23f8, 0x23fa}, {0x24c2, 0x24c2}, {0x25aa, 0x25ab}, {0x25b6, 0x25b6}, {0x25c0, 0x25c0}, {0x25fb, 0x25fe},
		{0x2600, 0x2604}, {0x260e, 0x260e}, {0x2611, 0x2611}, {0x2614, 0x2615}, {0x2618, 0x2618}, {0x261d, 0x261d},
		{0x2620, 0x2620}, {0x2622, 0x2623}, {0x2626, 0x2626}, {0x262a, 0x262a}, {0x262e, 0x262f}, {0x2638, 0x263a},
		{0x2640, 0x2640}, {0x2642, 0x2642}, {0x2648, 0x2653}, {0x265f, 0x2660}, {0x2663, 0x2663}, {0x2665, 0x2666},
		{0x2668, 0x2668}, {0x267b, 0x267b}, {0x267e, 0x267f}, {0x2692, 0x2697}, {0x2699, 0x2699}, {0x269b, 0x269c},
		{0x26a0, 0x26a1}, {0x26a7, 0x26a7}, {0x26aa, 0x26ab}, {0x26b0, 0x26b1}, {0x26bd, 0x26be}, {0x26c4, 0x26c5},
		{0x26c8, 0x26c8}, {0x26ce, 0x26cf}, {0x26d1, 0x26d1}, {0x26d3, 0x26d4}, {0x26e9, 0x26ea}, {0x26f0, 0x26f5},
		{0x26f7, 0x26fa}, {0x26fd, 0x26fd}, {0x2702, 0x2702}, {0x2705, 0x2705}, {0x2708, 0x270d}, {0x270f, 0x270f},
		{0x2712, 0x2712}, {0x2714, 0x2714}, {0x2716, 0x2716}, {0x271d, 0x271d}, {0x2721, 0x2721}, {0x2728, 0x2728},
		{0x2733, 0x2734}, {0x2744, 0x2744}, {0x2747, 0x2747}, {0x274c, 0x274c}, {0x274e, 0x274e}, {0x2753, 0x2755},
		{0x2757, 0x2757}, {0x2763, 0x2764}, {0x2795, 0x2797}, {0x27a1, 0x27a1}, {0x27b0, 0x27b0}, {0x27bf, 0x27bf},
		{0x2934, 0x2935}, {0x2b05, 0x2b07}, {0x2b1b, 0x2b1c}, {0x2b50, 0x2b50}, {0x2b55, 0x2b55}, {0x3030, 0x3030},
		{0x303d, 0x303d}, {0x3297, 0x3297}, {0x3299, 0x3299}, {0x1f004, 0x1f004}, {0x1f0cf, 0x1f0cf},
		{0x1f170, 0x1f171}, {0x1f17e, 0x1f17f}, {0x1f18e, 0x1f18e}, {0x1f191, 0x1f19a}, {0x1f201, 0x1f202},
		{0x1f21a, 0x1f21a}, {0x1f22f, 0x1f22f}, {0x1f232, 0x1f23a}, {0x1f250, 0x1f251}, {0x1f300, 0x1f321},
		{0x1f324, 0x1f393}, {0x1f396, 0x1f397}, {0x1f399, 0x1f39b}, {0x1f39e, 0x1f3f0}, {0x1f3f3, 0x1f3f5},
		{0x1f3f7, 0x1f4fd}, {0x1f4ff, 0x1f53d}, {0x1f549, 0x1f54e}, {0x1f550, 0x1f567}, {0x1f56f, 0x1f570},
		{0x1f573, 0x1f57a}, {0x1f587, 0x1f587}, {0x1f58a, 0x1f58d}, {0x1f590, 0x1f590}, {0x1f595, 0x1f596},
		{0x1f5a4, 0x1f5a5}, {0x1f5a8, 0x1f5a8}, {0x1f5b1, 0x1f5b2}, {0x1f5bc, 0x1f5bc}, {0x1f5c2, 0x1f5c4},
		{0x1f5d1, 0x1f5d3}, {0x1f5dc, 0x1f5de}, {0x1f5e1, 0x1f5e1}, {0x1f5e3, 0x1f5e3}, {0x1f5e8, 0x1f5e8},
		{0x1f5ef, 0x1f5ef}, {0x1f5f3, 0x1f5f3}, {0x1f5fa, 0x1f64f}, {0x1f680, 0x1f6c5}, {0x1f6cb, 0x1f6d2},
		{0x1f6d5, 0x1f6d7}, {0x1f6dc, 0x1f6e5}, {0x1f6e9, 0x1f6e9}, {0x1f6eb, 0x1f6ec}, {0x1f6f0, 0x1f6f0},
		{0x1f6f3, 0x1f6fc}, {0x1f7e0, 0x1f7eb}, {0x1f7f0, 0x1f7f0}, {0x1f90c, 0x1f93a}, {0x1f93c, 0x1f945},
		{0x1f947, 0x1f9ff}, {0x1fa70, 0x1fa7c}, {0x1fa80, 0x1fa89}, {0x1fa8f, 0x1fac6}, {0x1face, 0x1fadc},
		{0x1fadf, 0x1fae9}, {0x1faf0, 0x1faf8},
	}
	i := sort.Search(len(ranges), func(i int) bool { return ranges[i][1] >= r })
	return i < len(ranges) && ranges[i][0] <= r
}

// runeName names a hidden character for people: its Unicode name where that is well known, else its kind, and always
// the code point.
func runeName(r rune) string {
	name := wellKnown(r)
	if name == "" {
		name = hiddenKind(r)
	}
	return fmt.Sprintf("%s (U+%04X)", name, r)
}

// wellKnown returns the Unicode name of the characters that turn up in practice, or empty.
func wellKnown(r rune) string {
	return map[rune]string{
		0x00: "NUL", 0x07: "BELL", 0x08: "BACKSPACE", 0x0b: "LINE TABULATION", 0x0c: "FORM FEED",
		'\r': "CARRIAGE RETURN WITHOUT NEWLINE", 0x1b: "ESCAPE", 0x7f: "DELETE", 0x85: "NEXT LINE",
		0xad: "SOFT HYPHEN", 0x34f: "COMBINING GRAPHEME JOINER", 0x61c: "ARABIC LETTER MARK",
		0x115f: "HANGUL CHOSEONG FILLER", 0x1160: "HANGUL JUNGSEONG FILLER",
		0x17b4: "KHMER VOWEL INHERENT AQ", 0x17b5: "KHMER VOWEL INHERENT AA",
		0x180e: "MONGOLIAN VOWEL SEPARATOR", 0x200b: "ZERO WIDTH SPACE", 0x200c: "ZERO WIDTH NON-JOINER",
		0x200d: "ZERO WIDTH JOINER", 0x200e: "LEFT-TO-RIGHT MARK", 0x200f: "RIGHT-TO-LEFT MARK",
		0x2028: "LINE SEPARATOR", 0x2029: "PARAGRAPH SEPARATOR", 0x202a: "LEFT-TO-RIGHT EMBEDDING",
		0x202b: "RIGHT-TO-LEFT EMBEDDING", 0x202c: "POP DIRECTIONAL FORMATTING", 0x202d: "LEFT-TO-RIGHT OVERRIDE",
		0x202e: "RIGHT-TO-LEFT OVERRIDE", 0x2060: "WORD JOINER", 0x2061: "FUNCTION APPLICATION",
		0x2062: "INVISIBLE TIMES", 0x2063: "INVISIBLE SEPARATOR", 0x2064: "INVISIBLE PLUS",
		0x2066: "LEFT-TO-RIGHT ISOLATE", 0x2067: "RIGHT-TO-LEFT ISOLATE", 0x2068: "FIRST STRONG ISOLATE",
		0x2069: "POP DIRECTIONAL ISOLATE", 0x2800: "BRAILLE PATTERN BLANK", 0x3164: "HANGUL FILLER",
		0xfeff: "BYTE ORDER MARK", 0xffa0: "HALFWIDTH HANGUL FILLER", 0xfff9: "INTERLINEAR ANNOTATION ANCHOR",
		0xfffa: "INTERLINEAR ANNOTATION SEPARATOR", 0xfffb: "INTERLINEAR ANNOTATION TERMINATOR",
	}[r]
}

// hiddenKind says what sort of hidden character r is.
func hiddenKind(r rune) string {
	switch {
	case unicode.Is(unicode.Cc, r):
		return "CONTROL CHARACTER"
	case unicode.Is(unicode.Variation_Selector, r):
		return "VARIATION SELECTOR"
	case r >= 0xe0000 && r <= 0xe007f:
		return "TAG CHARACTER"
	case unicode.Is(unicode.Co, r):
		return "PRIVATE USE CHARACTER"
	case unicode.Is(unicode.Noncharacter_Code_Point, r):
		return "NONCHARACTER"
	case unicode.Is(unicode.Cn, r):
		return "UNASSIGNED CODE POINT"
	default:
		return "INVISIBLE CHARACTER"
	}
}

// ellipsis marks where Clean cut.
const ellipsis = "…"

// Clean makes text that other people wrote fit to be shown: whatever Hidden would report is removed, each byte that is
// not valid UTF-8 becomes U+FFFD, and text of more than maxRunes runes is cut to at most maxRunes, an ellipsis at its
// end included. A maxRunes below 1 leaves nothing.
//
// The result is valid UTF-8 of which Hidden reports nothing, and cleaning it again changes nothing. Time is linear in
// the length of text. Cleaned text is still untrusted: it may lie or instruct, it just cannot hide.
func Clean(text string, maxRunes int) string {
	cleaned, length := reveal(text)
	if length > maxRunes {
		cleaned = truncateRunes(cleaned, maxRunes)
	}
	return cleaned
}

// reveal returns text without its hidden characters, and the number of runes that are left.
func reveal(text string) (string, int) {
	var b strings.Builder
	b.Grow(len(text))
	length := 0
	walk(text, func(r rune, hidden bool) bool {
		if !hidden {
			b.WriteRune(r)
			length++
		}
		return true
	})
	return b.String(), length
}

// truncateRunes keeps the first runes of text, which is valid UTF-8 of more than limit runes, and ends them with an
// ellipsis.
func truncateRunes(text string, limit int) string {
	if limit < 1 {
		return ""
	}
	end := 0
	for range limit - 1 {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	// A cut through an emoji sequence or a line end leaves a joiner, tag or carriage return that is hidden now.
	kept, _ := reveal(text[:end])
	return kept + ellipsis
}

// EscapeJSON returns JSON with every character that Hidden would report written as an escape (\u202e), so that nothing
// hides in it on a terminal or in a log, and its meaning is unchanged. In a text that is not JSON the escapes are
// literal. Time is linear in the length of text.
func EscapeJSON(text []byte) []byte {
	plain := true
	for _, b := range text {
		plain = plain && (b >= ' ' && b < 0x7f || b == '\n' || b == '\t')
	}
	if plain {
		return text
	}
	var out bytes.Buffer
	out.Grow(len(text))
	walk(string(text), func(r rune, hidden bool) bool {
		switch {
		case !hidden:
			out.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
		return true
	})
	return out.Bytes()
}

// CleanAll is Clean without a limit.
func CleanAll(text string) string { return Clean(text, utf8.RuneCountInString(text)) }
