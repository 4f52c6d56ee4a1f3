package operationtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// ReadFiles is the reverse of WriteFiles: it returns the files below a folder. In place of its content, a link has its
// target.
func ReadFiles(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if e.Type()&fs.ModeSymlink != 0 {
			out[rel], err = os.Readlink(name)
			return err
		}
		text, err := os.ReadFile(name) // #nosec G304 G122: of a test
		out[rel] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ReadFile returns the content of a file.
func ReadFile(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name) // #nosec G304: of a test
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// InTime makes a call that should wait for nothing. It fails the test if the call is still waiting when the time is
// over.
func InTime(t testing.TB, limit time.Duration, what string, call func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatalf("%s: the call waits", what)
	}
}
