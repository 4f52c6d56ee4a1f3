package pages_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"

	"github.com/andybalholm/brotli"

	"github.com/claudeops/claudeops/internal/web/pages"
)

func TestTheCompressedFormsOfFilesReadAsTheFiles(t *testing.T) {
	t.Parallel()
	assets, err := pages.LoadAssets()
	if err != nil {
		t.Fatal(err)
	}
	packed := 0
	for _, a := range assets.All() {
		forms := a.Packed()
		if a.ContentType == "font/woff2" || len(a.Content) < pages.MinPacked {
			if forms != nil {
				t.Errorf("%s is compressed, which saves nothing", a.Name)
			}
			continue
		}
		packed++
		zipped, err := gzip.NewReader(bytes.NewReader(forms["gzip"]))
		if err != nil {
			t.Fatal(err)
		}
		for name, reader := range map[string]io.Reader{"gzip": zipped, "br": brotli.NewReader(bytes.NewReader(forms["br"]))} {
			if text, err := io.ReadAll(reader); err != nil || !bytes.Equal(text, a.Content) {
				t.Errorf("%s by %s is another text: %v", a.Name, name, err)
			}
			if len(forms[name]) > len(a.Content)/2 {
				t.Errorf("%s by %s takes %d of %d bytes", a.Name, name, len(forms[name]), len(a.Content))
			}
		}
	}
	if packed < 3 {
		t.Errorf("only %d files are compressed", packed)
	}
}
