package content

import (
	"fmt"
	"unicode"
)

// runeName names a hidden character for people: its Unicode name where that is well known, else its kind, and always
// the code point.
func runeName(r rune) string {
	name := wellKnown(r)
	if name == "" {
		name = kind(r)
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

// kind says what sort of hidden character r is.
func kind(r rune) string {
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
