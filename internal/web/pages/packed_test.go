package pages_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/andybalholm/brotli"

	"github.com/claudeops/claudeops/internal/web/pages"
)

const packedFolder = "static/packed/"

// TestThePageOfPackedFilesIsMadeFromThem holds that each file that browsers are given is kept compressed, and no other.
func TestThePageOfPackedFilesIsMadeFromThem(t *testing.T) {
	assets, err := pages.LoadAssets()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("UPDATE_GOLDEN") != "" {
		packFiles(t, assets)
		return
	}
	kept := map[string]bool{"README.md": true}
	for _, a := range assets.All() {
		if !isPackable(a) {
			continue
		}
		kept[a.Name+".br"], kept[a.Name+".gz"] = true, true
		fromBrotli, err := io.ReadAll(brotli.NewReader(bytes.NewReader(a.Packed["br"])))
		if err != nil || !bytes.Equal(fromBrotli, a.Content) || !bytes.Equal(unzipped(a.Packed["gzip"]), a.Content) {
			t.Errorf("%s is not kept compressed as it is now: run `make golden`", a.Name)
		}
	}
	files, err := os.ReadDir(packedFolder)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !kept[file.Name()] {
			t.Errorf("%s is of a file as it was: run `make golden`", file.Name())
		}
	}
}

// isPackable reports whether compressing a file saves something: fonts are compressed, and others fit into a packet.
func isPackable(a pages.Asset) bool { return a.ContentType != "font/woff2" && len(a.Content) > 1400 }

func unzipped(text []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil
	}
	out, err := io.ReadAll(r)
	if err != nil {
		return nil
	}
	return out
}

func packFiles(t *testing.T, assets pages.Assets) {
	t.Helper()
	old, err := filepath.Glob(packedFolder + "*.[bg][rz]")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range old {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range assets.All() {
		if !isPackable(a) {
			continue
		}
		var br, gz bytes.Buffer
		zip, err := gzip.NewWriterLevel(&gz, gzip.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		for out, to := range map[io.WriteCloser]struct {
			ending string
			text   *bytes.Buffer
		}{brotli.NewWriterLevel(&br, brotli.BestCompression): {".br", &br}, zip: {".gz", &gz}} {
			if _, err := out.Write(a.Content); err != nil {
				t.Fatal(err)
			}
			if err := out.Close(); err != nil {
				t.Fatal(err)
			}
			err := os.WriteFile(packedFolder+a.Name+to.ending, to.text.Bytes(), 0o644) // #nosec G306: part of the sources
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}
