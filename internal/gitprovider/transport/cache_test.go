package transport_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider/transport"
)

// tagged answers each path with an ETag, and 304 to whoever has it. version changes all tags.
func tagged(version *atomic.Int32, size int) http.HandlerFunc {
	var asked atomic.Int32
	return func(w http.ResponseWriter, r *http.Request) {
		tag := fmt.Sprintf(`W/"%d"`, version.Load())
		w.Header().Set("Etag", tag)
		w.Header().Set("X-RateLimit-Remaining", fmt.Sprint(100-asked.Add(1)))
		if r.URL.Query().Has("private") {
			w.Header().Set("Cache-Control", "private, no-store")
		}
		if r.Header.Get("If-None-Match") == tag {
			w.Header().Set("Content-Encoding", "gzip") // of the answer that it does not send
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Link", "<next>")
		_, _ = fmt.Fprintf(w, "%d %s %s", version.Load(), r.URL.Path, strings.Repeat("x", size))
	}
}

func TestAnAnswerIsConfirmedInsteadOfSentAgain(t *testing.T) {
	var version atomic.Int32
	b := newBed(t, tagged(&version, 0))
	for i, want := range []string{"0 /a ", "0 /a ", "1 /a ", "1 /a "} {
		if i == 2 {
			version.Add(1)
		}
		got := b.do(t.Context(), "GET", "/a")
		if got.status != 200 || got.body != want || got.header.Get("Link") != "<next>" ||
			got.header.Get("Content-Encoding") != "" {
			t.Errorf("answer %d: %d %q %q", i, got.status, got.body, got.header)
		}
		if left := got.header.Get("X-RateLimit-Remaining"); left != fmt.Sprint(99-i) {
			t.Errorf("answer %d shows the limit %s of an earlier one", i, left)
		}
	}
	var statuses []int
	for _, r := range b.Requests() {
		statuses = append(statuses, r.Status)
	}
	if fmt.Sprint(statuses) != "[200 304 200 304]" {
		t.Errorf("the server answered %v", statuses)
	}
}

func TestOnlyAnswersThatMayBeKeptAreKept(t *testing.T) {
	tests := []struct {
		name   string
		method string
		path   string
		header [2]string // of the second request
		asked  bool      // whether the server is asked to confirm
		status int
	}{
		{"the same request", "GET", "/a", [2]string{}, true, 200},
		{"a head", "HEAD", "/a", [2]string{}, false, 200},
		{"a post", "POST", "/a", [2]string{}, false, 200},
		{"another query", "GET", "/a?page=2", [2]string{}, false, 200},
		{"another representation", "GET", "/a", [2]string{"Accept", "application/other"}, false, 200},
		{"a part", "GET", "/a", [2]string{"Range", "bytes=0-1"}, false, 200},
		{"a condition of the caller", "GET", "/a", [2]string{"If-None-Match", `W/"0"`}, true, 304},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBed(t, tagged(&atomic.Int32{}, 0))
			b.do(t.Context(), "GET", "/a")
			req, _ := http.NewRequestWithContext(t.Context(), tt.method, b.srv.URL+tt.path, nil)
			if tt.header[0] != "" {
				req.Header.Set(tt.header[0], tt.header[1])
			}
			got := b.send(req)
			if asked := b.Requests()[1].Header.Get("If-None-Match") != ""; asked != tt.asked || got.status != tt.status {
				t.Errorf("got %d, asked to confirm: %v", got.status, asked)
			}
		})
	}
	b := newBed(t, tagged(&atomic.Int32{}, 0))
	for range 2 {
		b.do(t.Context(), "GET", "/a?private")
	}
	if b.Requests()[1].Header.Get("If-None-Match") != "" {
		t.Error("an answer that must not be stored was stored")
	}
	b.Forget()
	b.connect(t, "https://forge.test") // the server is a foreign one now
	for range 2 {
		b.do(t.Context(), "GET", "/a")
	}
	if b.Requests()[1].Header.Get("If-None-Match") != "" {
		t.Error("an answer of another origin was stored")
	}
}

func TestTheCacheForgetsTheLeastRecentlyUsed(t *testing.T) {
	tests := []struct {
		name   string
		size   int
		others int
		kept   bool
	}{
		{"few answers", 0, 254, true},
		{"more answers than there are places", 0, 256, false},
		{"few bytes", 1 << 20, 6, true},
		{"more bytes than there is room", 1 << 20, 8, false},
		{"an answer too large to be kept", 3 << 20, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBed(t, tagged(&atomic.Int32{}, tt.size), func(o *transport.Options) { o.Log = nil })
			b.do(t.Context(), "GET", "/first")
			for i := range tt.others {
				b.do(t.Context(), "GET", fmt.Sprintf("/%d", i))
			}
			b.Forget()
			b.do(t.Context(), "GET", "/first")
			if kept := b.Requests()[0].Status == http.StatusNotModified; kept != tt.kept {
				t.Errorf("kept: %v", kept)
			}
		})
	}
}
