package mcphttp

import (
	"bytes"
	"slices"
	"testing"
	"time"
)

// Of answers that were written whole, a session keeps a few KiB, and the newest whatever its size: an answer that was
// lost on its way can be asked for again.
func TestASessionKeepsFewAnswersThatWereWritten(t *testing.T) {
	const half, large = maxWrittenSize / 2, 4 * maxWrittenSize
	for name, row := range map[string]struct {
		sizes   []int // of the streams, the oldest first
		written bool
		kept    []int // their numbers
	}{
		"small ones":               {[]int{10, 10, 10}, true, []int{1, 2, 3}},
		"more than the bound":      {[]int{half, half, half}, true, []int{2, 3}},
		"a large one that is new":  {[]int{10, large}, true, []int{2}},
		"a large one that is old":  {[]int{large, 10}, true, []int{2}},
		"what was not written yet": {[]int{large, half, half}, false, []int{1, 2, 3}},
	} {
		n := &session{id: "s", limits: Limits{Kept: time.Hour}, now: time.Now}
		for _, size := range row.sizes {
			s := n.newStream()
			s.appendLine(bytes.Repeat([]byte("x"), size))
			s.ended, s.written = n.now(), row.written
			n.rememberStream(s)
		}
		var kept []int
		for _, s := range n.streams {
			kept = append(kept, s.id)
		}
		if !slices.Equal(kept, row.kept) {
			t.Errorf("%s: %v are kept, want %v", name, kept, row.kept)
		}
	}
}
