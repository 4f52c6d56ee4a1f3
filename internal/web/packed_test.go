package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/web/httpx"
)

func TestAReaderGetsTheFormThatItTakes(t *testing.T) {
	t.Parallel()
	page := httpx.Response{ContentType: "text/html; charset=utf-8", Bytes: bytes.Repeat([]byte("<p>page</p>"), 500)}
	file := httpx.Response{ContentType: "text/css", Bytes: []byte("file"),
		Packed: map[string][]byte{"br": []byte("by brotli"), "gzip": []byte("by gzip")}}
	for _, c := range []struct {
		accept string
		answer httpx.Response
		coding string
		want   string // "" for the page as it is
		vary   string
	}{
		{"gzip, deflate, br", file, "br", "by brotli", "Accept-Encoding"},
		{"gzip;q=0.5, BR;q=0", file, "gzip", "by gzip", "Accept-Encoding"},
		{"", file, "", "file", "Accept-Encoding"}, {"deflate, gzip;q=x", file, "", "file", "Accept-Encoding"},
		{"br, gzip", page, "gzip", "", "Accept-Encoding"}, {"br", page, "", "", "Accept-Encoding"},
		{"gzip", httpx.Response{ContentType: "text/html", Bytes: []byte("short")}, "", "short", "Accept-Encoding"},
		{"gzip", httpx.Response{ContentType: "application/json", Bytes: []byte("{}")}, "", "{}", ""},
	} {
		r := &http.Request{Header: http.Header{"Accept-Encoding": {c.accept}}}
		h := http.Header{"Etag": {`"tag"`}}
		got := packed(h, r, c.answer)
		if c.want == "" {
			c.want = string(page.Bytes)
		}
		if c.coding == "gzip" && c.answer.Packed == nil {
			got = unzip(t, got)
		}
		if tag := h.Get("ETag"); string(got) != c.want || h.Get("Content-Encoding") != c.coding || h.Get("Vary") != c.vary ||
			strings.HasPrefix(tag, "W/") != (c.coding != "") {
			t.Errorf("%s for %q: %v, %.50q", c.answer.ContentType, c.accept, h, got)
		}
	}
}

func unzip(t *testing.T, text []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
