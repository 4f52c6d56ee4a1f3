package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/cli"
)

func TestEveryCommandHasAPage(t *testing.T) {
	folder := t.TempDir()
	if err := write(cli.Command(), folder); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"claudeops", "claudeops init", "claudeops audit list",
		"claudeops packages registry add"} {
		text, err := os.ReadFile(filepath.Join(folder, strings.ReplaceAll(words, " ", "-")+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, part := range []string{".SH NAME", ".SH SYNOPSIS", ".SH OPTIONS"} {
			if !strings.Contains(string(text), part) {
				t.Errorf("the page of %s has no %s", words, part)
			}
		}
	}
}
