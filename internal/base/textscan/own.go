package textscan

import (
	"cmp"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
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

// byteRange is a range of bytes, end excluded.
type byteRange struct{ start, end int }

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
		if len(spaceless.foldText(value)) < minOwn {
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
	if bare := skeleton.foldText(form); len(bare) >= minSkeleton {
		return needle{bare, skeleton}
	}
	return needle{spaceless.foldText(form), spaceless}
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

// foldText returns text folded.
func (f fold) foldText(text string) string {
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

// offsets returns what gives, for a byte of the folded text, its offset in text. It costs little for bytes in order.
func (f fold) offsets(text string) func(n int) int {
	at, before := 0, 0 // how many bytes the fold leaves in before text[at]
	return func(n int) int {
		if n < before {
			at, before = 0, 0
		}
		for ; before < n || !f.keeps(text[at]); at++ {
			if f.keeps(text[at]) {
				before++
			}
		}
		return at
	}
}

// foldedSpans returns what gives, for n bytes of the folded text of a layer, their span in the original.
func (l layer) foldedSpans(f fold) func(at, n int) byteRange {
	first, last := f.offsets(l.text), f.offsets(l.text)
	return func(at, n int) byteRange {
		return byteRange{l.originalOffset(first(at)), l.originalOffset(last(at+n-1) + 1)}
	}
}

// findNeedles gives the spans of the layer's text that hold one of needles, which is sorted by fold. Overlaps are
// possible.
func (l layer) findNeedles(needles []needle) []byteRange {
	var found []byteRange
	for len(needles) > 0 {
		fold := needles[0].fold
		folded := fold.foldText(l.text)
		span := l.foldedSpans(fold)
		for len(needles) > 0 && needles[0].fold == fold {
			size := len(needles[0].text)
			for _, at := range occurrences(folded, needles[0].text) {
				found = append(found, span(at, size))
			}
			needles = needles[1:]
		}
	}
	return found
}

// mergeSpans sorts spans and joins those that overlap.
func mergeSpans(spans []byteRange) []byteRange {
	slices.SortFunc(spans, func(a, b byteRange) int { return cmp.Or(a.start-b.start, a.end-b.end) })
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

const (
	// windowSize is the number of consecutive letters and digits of a credential, letter case aside, that count as the
	// credential: the rest could be guessed, or passed on by other means.
	windowSize = 20
	// minPart is the number of them in a part of a credential that is scattered over a proposal; see spread.
	minPart = 6
	// minHexPart is minPart for credentials of hexadecimal digits, which files full of digests repeat by chance.
	minHexPart = 8
)

// ownSet is the own credentials, prepared for search.
type ownSet struct {
	needles []needle
	windows windowSet
	parts   []partSet
}

func newOwnSet(own []string) *ownSet {
	set := &ownSet{needles: needles(own), windows: windowSet{size: windowSize, at: map[uint64][]int{}}}
	for _, value := range own {
		value = strings.TrimSpace(value)
		if len(lowerCase.foldText(value)) < windowSize {
			continue // found whole, by its needles
		}
		value = withoutHeaders(value)
		for _, form := range forms(value) {
			set.windows.add(lowerCase.foldText(form))
		}
		for _, form := range []string{value, reversed(value), base64.StdEncoding.EncodeToString([]byte(value))} {
			set.parts = append(set.parts, newPartSet(lowerCase.foldText(form)))
		}
	}
	return set
}

// forms returns the ways to write a credential that its windows are taken from.
func forms(value string) []string {
	out := []string{value, reversed(value), hex.EncodeToString([]byte(value))}
	for shift := range 3 {
		out = append(out, base64At(base64.RawStdEncoding, value, shift))
		out = append(out, reversed(base64At(base64.RawStdEncoding, value, shift)))
	}
	for shift := range 5 {
		encoded := base32.StdEncoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + value))
		first := (8*shift + 4) / 5
		out = append(out, strings.TrimRight(encoded[first:], "="))
	}
	return out
}

func reversed(text string) string {
	b := []byte(text)
	slices.Reverse(b)
	return string(b)
}

// withoutHeaders leaves out of a key in PEM form what is the same in all keys: the lines that begin and end it, and the
// first 24 characters of its data, which say what kind of key it is.
func withoutHeaders(value string) string {
	if !strings.Contains(value, "-----BEGIN ") {
		return value
	}
	var data strings.Builder
	for line := range strings.Lines(value) {
		if !strings.HasPrefix(line, "-----") {
			data.WriteString(strings.TrimSpace(line))
		}
	}
	const kind = 24
	return data.String()[min(kind, data.Len()):]
}

// windowSet finds parts of texts by a rolling hash: every run of size bytes of the texts that were added.
type windowSet struct {
	size  int
	texts []string
	at    map[uint64][]int // positions of windows by their hash: text number and offset, alternating
	some  []uint64         // has a bit for each hash in at, which few others share: most windows are in no text
}

// bit returns the bit of a hash.
func (w *windowSet) bit(hash uint64) (word *uint64, mask uint64) {
	n := hash * 0x9e3779b97f4a7c15 >> 49
	return &w.some[n/64], 1 << (n % 64)
}

func (w *windowSet) add(text string) {
	const words = 1 << 9
	if w.some == nil {
		w.some = make([]uint64, words)
	}
	number := len(w.texts)
	w.texts = append(w.texts, text)
	roll(text, w.size, func(hash uint64, at int) {
		w.at[hash] = append(w.at[hash], number, at)
		word, mask := w.bit(hash)
		*word |= mask
	})
}

// matchWindows calls found with the offset of each window that folded holds, and where it is in which of the texts that
// were added.
func (w *windowSet) matchWindows(folded string, found func(at, text, offset int)) {
	if len(w.at) == 0 {
		return
	}
	roll(folded, w.size, func(hash uint64, at int) {
		if word, mask := w.bit(hash); *word&mask == 0 {
			return
		}
		for hits := w.at[hash]; len(hits) > 0; hits = hits[2:] {
			text, offset := hits[0], hits[1]
			if w.texts[text][offset:offset+w.size] == folded[at:at+w.size] {
				found(at, text, offset)
			}
		}
	})
}

// roll calls visit with the hash of each run of size bytes of text (Rabin and Karp's polynomial hash).
func roll(text string, size int, visit func(hash uint64, at int)) {
	const base = 1099511628211
	if len(text) < size {
		return
	}
	var hash uint64
	highest := uint64(1)
	for i := range size {
		hash = hash*base + uint64(text[i])
		if i > 0 {
			highest *= base
		}
	}
	visit(hash, 0)
	for at := size; at < len(text); at++ {
		hash = (hash-uint64(text[at-size])*highest)*base + uint64(text[at])
		visit(hash, at-size+1)
	}
}

// spans gives where own credentials, or windowSize characters of one, stand in the layers of a text: spans of the
// original, in order and without overlaps.
func (o *ownSet) spans(layers []layer) []byteRange {
	if len(o.needles) == 0 {
		return nil
	}
	var found []byteRange
	for _, l := range layers {
		found = append(found, l.findNeedles(o.needles)...)
		folded := lowerCase.foldText(l.text)
		span := l.foldedSpans(lowerCase)
		o.windows.matchWindows(folded, func(at, _, _ int) { found = append(found, span(at, windowSize)) })
	}
	return mergeSpans(found)
}

// ownCredentials are the credentials that a Scanner knows; they can become more and fewer while it is used.
type ownCredentials struct {
	mu     sync.RWMutex
	groups []*[]string // one for each call of add
	all    *ownSet     // of all groups; replaced, never changed
	number int64       // how often it was replaced
}

// add returns what removes the values again; it may be called more than once.
func (o *ownCredentials) add(values []string) (remove func()) {
	group := new([]string)
	*group = slices.Clone(values)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.groups = append(o.groups, group)
	o.prepare()
	return sync.OnceFunc(func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.groups = slices.DeleteFunc(o.groups, func(other *[]string) bool { return other == group })
		o.prepare()
	})
}

func (o *ownCredentials) prepare() {
	var values []string
	for _, group := range o.groups {
		values = append(values, *group...)
	}
	slices.Sort(values)
	o.all = newOwnSet(slices.Compact(values))
	o.number++
}

func (o *ownCredentials) set() *ownSet {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.all
}

// Learn adds credentials that the process came by while it runs, such as a token that a forge made for it. They are
// found and redacted from now on, until forget is called: when they are worth nothing any more.
func (s *Scanner) Learn(own ...string) (forget func()) { return s.own.add(own) }

// Redaction returns a number that grows whenever Redact begins to keep out something else.
func (s *Scanner) Redaction() int64 {
	s.own.mu.RLock()
	defer s.own.mu.RUnlock()
	return s.own.number
}
