package content

import (
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/content/secretrules"
)

// layer is a text with some of its encoding taken off, and where its bytes come from.
type layer struct {
	text    string
	origins []int  // offset in the original of each byte of text and of its end; nil means that text is the original
	changed []span // the parts of text that the last step decoded
}

// origin returns the offset in the original of the byte at offset at, or of the end.
func (l layer) origin(at int) int {
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
	changed []span
}

func (b *layerBuilder) copyTo(end, at int) {
	for ; at < end; at++ {
		b.text = append(b.text, b.from.text[at])
		b.origins = append(b.origins, b.from.origin(at))
	}
}

func (b *layerBuilder) put(decoded string, at int) {
	start := len(b.text)
	b.text = append(b.text, decoded...)
	for range len(decoded) {
		b.origins = append(b.origins, b.from.origin(at))
	}
	if n := len(b.changed); n > 0 && b.changed[n-1].end == start {
		b.changed[n-1].end = len(b.text)
		return
	}
	b.changed = append(b.changed, span{start, len(b.text)})
}

func (b *layerBuilder) layer() layer {
	origins := append(b.origins, b.from.origin(len(b.from.text)))
	return layer{text: string(b.text), origins: origins, changed: b.changed}
}

const (
	// layerCost is the cost per byte of making a layer and searching it for own credentials.
	layerCost = 40
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
		beyond = next.origin(next.changed[0].start)
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
