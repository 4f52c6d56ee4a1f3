package change

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

func TestAHashIsNotRememberedOfAFileThatWasJustChanged(t *testing.T) {
	dir := operationtest.WriteFiles(t, t.TempDir(), map[string]string{"a.md": "one"})
	name := filepath.Join(dir, "a.md")
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	h := NewHashes(dir, time.Now)
	hash := strings.Repeat("0", 64)
	h.note(name, info, info.ModTime().Add(time.Second), hash)
	if _, known := h.of(name, info); known {
		t.Error("remembered one second after the change")
	}
	h.note(name, info, info.ModTime().Add(3*time.Second), hash)
	if got, known := h.of(name, info); !known || got != hash {
		t.Errorf("%s, %t", got, known)
	}
	var none *Hashes
	none.note(name, info, none.time(), hash)
	none.keep()
	if _, known := none.of(name, info); known {
		t.Error("known by none")
	}
}

func FuzzHashes(f *testing.F) {
	f.Add([]byte{})
	f.Add(hashesMark())
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := operationtest.WriteFiles(t, t.TempDir(), map[string]string{"cache/hashes": string(text)})
		h := NewHashes(dir, time.Now)
		h.load()
		if len(h.known) > 0 && len(text) < len(hashesMark())+32 {
			t.Errorf("%d entries of nothing", len(h.known))
		}
	})
}
