package pages

import (
	"bytes"
	"compress/gzip"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
)

// MinPacked is the size in bytes below which nothing is compressed: it fits into one packet.
const MinPacked = 1400

// brotliLevel costs some ten milliseconds for the largest file, once a process.
const brotliLevel = 9

// packedAssets keeps the compressed forms by the name of the asset, which holds the hash of its content.
//
//nolint:gochecknoglobals // what is made of embedded files, once for all servers of the process
var packedAssets sync.Map

// Packed returns the content compressed, by the names of the encodings (br, gzip); nil where that would save nothing.
// It is made when it is first asked for.
func (a Asset) Packed() map[string][]byte {
	if a.ContentType == fontType || len(a.Content) < MinPacked {
		return nil
	}
	made, _ := packedAssets.LoadOrStore(a.Name, sync.OnceValue(func() map[string][]byte { return pack(a.Content) }))
	forms, _ := made.(func() map[string][]byte)
	return forms()
}

func pack(content []byte) map[string][]byte {
	forms := map[string][]byte{}
	var br, zipped bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression) // a level that exists
	for name, form := range map[string]struct {
		to   io.WriteCloser
		text *bytes.Buffer
	}{"br": {brotli.NewWriterLevel(&br, brotliLevel), &br}, "gzip": {zip, &zipped}} {
		_, failed := form.to.Write(content) // a buffer takes everything
		if err := form.to.Close(); err == nil && failed == nil {
			forms[name] = form.text.Bytes()
		}
	}
	return forms
}
