package content

import (
	"strings"
	"unicode"
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
