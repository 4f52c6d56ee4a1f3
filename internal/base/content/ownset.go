package content

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
)

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
		if len(lowerCase.of(value)) < windowSize {
			continue // found whole, by its needles
		}
		value = withoutHeaders(value)
		for _, form := range forms(value) {
			set.windows.add(lowerCase.of(form))
		}
		for _, form := range []string{value, reversed(value), base64.StdEncoding.EncodeToString([]byte(value))} {
			set.parts = append(set.parts, newPartSet(lowerCase.of(form)))
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
}

func (w *windowSet) add(text string) {
	number := len(w.texts)
	w.texts = append(w.texts, text)
	roll(text, w.size, func(hash uint64, at int) {
		w.at[hash] = append(w.at[hash], number, at)
	})
}

// find calls found with the offset of each window that folded holds, and where it is in which of the texts that were
// added.
func (w *windowSet) find(folded string, found func(at, text, offset int)) {
	if len(w.at) == 0 {
		return
	}
	roll(folded, w.size, func(hash uint64, at int) {
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
func (o *ownSet) spans(layers []layer) []span {
	if len(o.needles) == 0 {
		return nil
	}
	var found []span
	for _, l := range layers {
		found = append(found, l.find(o.needles)...)
		folded := lowerCase.of(l.text)
		var kept []int
		o.windows.find(folded, func(at, _, _ int) {
			if kept == nil {
				kept = lowerCase.kept(l.text)
			}
			found = append(found, span{l.origin(kept[at]), l.origin(kept[at+windowSize-1] + 1)})
		})
	}
	return merge(found)
}
