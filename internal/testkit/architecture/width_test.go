//go:build lint

package architecture

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	maxColumns  = 120 // of a line of Go; a tab is one
	longLiteral = 40  // columns of a text that may make a line longer, since breaking it would hide what it says
)

// TestLinesEndAt120Columns lets a line be longer for a text that does not break well: a struct tag, a raw string, one
// long literal; and for a directive, which has to stand on its line.
func TestLinesEndAt120Columns(t *testing.T) {
	root := moduleRoot(t)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, _ := filepath.Rel(root, path)
		literals := longestLiterals(text)
		for i, line := range strings.Split(string(text), "\n") {
			if utf8.RuneCountInString(line) > maxColumns && literals[i+1] < longLiteral && !strings.Contains(line, "//nolint:") {
				t.Errorf("%s:%d has more than %d columns", file, i+1, maxColumns)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// longestLiterals has for each line the columns of its longest literal; a raw string of several lines counts whole on
// each of them.
func longestLiterals(text []byte) map[int]int {
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	longest := map[int]int{}
	for {
		pos, kind, literal := s.Scan()
		if kind == token.EOF {
			return longest
		}
		if kind != token.STRING {
			continue
		}
		first := file.Line(pos)
		for line := first; line <= first+strings.Count(literal, "\n"); line++ {
			longest[line] = max(longest[line], utf8.RuneCountInString(literal))
		}
	}
}
