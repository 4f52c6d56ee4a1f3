package content

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
)

const (
	// minOwn is the length in bytes below which a value is too short to be searched for as a credential.
	minOwn = 8
	// minSkeleton is the number of letters and digits that a form needs to be searched for with everything else left out.
	minSkeleton = 16
)

// needle is one form of an own credential, folded.
type needle struct {
	text string
	fold fold
}

// fold says which characters are removed from a text before a needle is searched in it.
type fold int

const (
	spaceless fold = iota // without white space
	skeleton              // letters and digits only
	lowerCase             // letters and digits only, letters in lower case
)

// span is a range of bytes, end excluded.
type span struct{ start, end int }

// needles gives the forms of each own credential that are looked for: itself, base64 (at each of the three offsets that
// it can have within a longer text, "user:token" for one; without the characters at the ends that depend on
// neighbours), and hex.
//
// A form of at least 16 letters and digits is looked for by these alone, so that spaces, line breaks, quotes, plus
// signs or zero-width characters between its parts do not hide it, and both base64 alphabets are one. A shorter one
// must be there as it is but for white space.
func needles(own []string) []needle {
	var all []needle
	for _, value := range own {
		value = strings.TrimSpace(value)
		if len(spaceless.of(value)) < minOwn {
			continue
		}
		all = append(all, loose(value))
		for shift := range 3 {
			all = append(all, loose(base64At(base64.RawStdEncoding, value, shift)))
			all = append(all, loose(base64At(base64.RawURLEncoding, value, shift)))
		}
		all = append(all, needle{hex.EncodeToString([]byte(value)), lowerCase})
	}
	slices.SortFunc(all, func(a, b needle) int {
		return cmp.Or(cmp.Compare(a.fold, b.fold), strings.Compare(a.text, b.text))
	})
	return slices.Compact(all)
}

// loose folds form as far as its length permits.
func loose(form string) needle {
	if bare := skeleton.of(form); len(bare) >= minSkeleton {
		return needle{bare, skeleton}
	}
	return needle{spaceless.of(form), spaceless}
}

// base64At encodes value as it looks shift bytes after a multiple of three, without the characters that also hold bits
// of other bytes.
func base64At(encoding *base64.Encoding, value string, shift int) string {
	padded := strings.Repeat("\x00", shift) + value
	encoded := encoding.EncodeToString([]byte(padded))
	first := (8*shift + 5) / 6
	last := 8 * len(padded) / 6
	return encoded[first:last]
}

// keeps says whether the fold leaves c in.
func (f fold) keeps(c byte) bool {
	if f == spaceless {
		return c != ' ' && (c < '\t' || c > '\r')
	}
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// of returns text folded.
func (f fold) of(text string) string {
	folded := make([]byte, 0, len(text))
	for i := range len(text) {
		c := text[i]
		if !f.keeps(c) {
			continue
		}
		if f == lowerCase && c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		folded = append(folded, c)
	}
	return string(folded)
}

// kept gives, for each byte of the folded text, its offset in text.
func (f fold) kept(text string) []int {
	var offsets []int
	for i := range len(text) {
		if f.keeps(text[i]) {
			offsets = append(offsets, i)
		}
	}
	return offsets
}

// find gives the spans of the layer's text that hold one of needles, which is sorted by fold. Overlaps are possible.
func (l layer) find(needles []needle) []span {
	var found []span
	for len(needles) > 0 {
		fold := needles[0].fold
		folded := fold.of(l.text)
		var kept []int // made when something is found, which is rare
		for len(needles) > 0 && needles[0].fold == fold {
			size := len(needles[0].text)
			for _, at := range occurrences(folded, needles[0].text) {
				if kept == nil {
					kept = fold.kept(l.text)
				}
				found = append(found, span{l.origin(kept[at]), l.origin(kept[at+size-1] + 1)})
			}
			needles = needles[1:]
		}
	}
	return found
}

// merge sorts spans and joins those that overlap.
func merge(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(a.start-b.start, a.end-b.end) })
	merged := spans[:0]
	for _, s := range spans {
		if n := len(merged); n > 0 && s.start < merged[n-1].end {
			merged[n-1].end = max(merged[n-1].end, s.end)
			continue
		}
		merged = append(merged, s)
	}
	return merged
}
