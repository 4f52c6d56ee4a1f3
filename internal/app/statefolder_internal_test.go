package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/settings/config"
)

// With PostgreSQL nothing else makes the folder of the key and of sessions.
func TestTheStateFolderOfAServerWithADatabase(t *testing.T) {
	for name, c := range map[string]struct {
		path    string
		parents bool
		problem string // of what it says; "" if it can be written afterwards
	}{
		"it is there":                     {".", false, ""},
		"it is not there yet":             {"state", false, ""},
		"nor are the folders above it":    {"home/local/state", true, ""},
		"a folder above it was mistyped":  {"missing/state", false, "the folder above it does not exist"},
		"a file has its name":             {"file", false, "cannot be written"},
		"a file has the name above it":    {"file/state", true, "cannot be written"},
		"the server needs none (no path)": {"", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			s := stateFolderOf(config.Config{Records: config.Records{DatabaseURL: "postgres://db.example.org/ops",
				Dir: filepath.Join(dir, c.path), DirDefault: c.parents}})
			if c.path == "" {
				s.path = ""
			}
			for range 2 {
				err := s.writable()
				if (err == nil) != (c.problem == "") {
					t.Fatalf("got %v", err)
				}
				if err != nil && (fault.CodeOf(err) != fault.Misconfigured || !strings.Contains(err.Error(), c.problem) ||
					!strings.Contains(err.Error(), s.path) || strings.Contains(err.Error(), "room")) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}
