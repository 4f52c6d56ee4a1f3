//go:build lint

package architecture

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Sizes say where to look, and rule nothing: what a type or a file is for decides whether it is one thing. Length of
// functions is the linter's (.golangci.yml).
const (
	largeFile   = 350 // lines
	manyMethods = 30  // of one type
	manyFields  = 12  // of one struct
)

// A struct all of whose fields name their place in a text (JSON, YAML, a query) mirrors a format that others decide.
func mirrorsFormat(s *ast.StructType) bool {
	for _, field := range s.Fields.List {
		if field.Tag == nil && len(field.Names) > 0 {
			return false
		}
	}
	return true
}

// TestReportSizes lists what is large; go test -v shows it.
func TestReportSizes(t *testing.T) {
	root := moduleRoot(t)
	methods := map[string]int{}
	var lengths []int
	for file := range sources(t, root) {
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, filepath.Join(root, file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		lines := files.File(parsed.Pos()).LineCount() - 1
		lengths = append(lengths, lines)
		if lines > largeFile {
			t.Logf("%s has %d lines", file, lines)
		}
		in := path.Dir(filepath.ToSlash(file))
		for _, decl := range parsed.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
				methods[in+"."+receiver(f)]++
			}
			for name, s := range structs(decl) {
				if fields := s.Fields.NumFields(); fields > manyFields && !mirrorsFormat(s) {
					t.Logf("%s: %s has %d fields", file, name, fields)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		if methods[name] >= manyMethods {
			t.Logf("%s has %d methods", name, methods[name])
		}
	}
	slices.Sort(lengths)
	t.Logf("%d files; half of them have at most %d lines", len(lengths), lengths[len(lengths)/2])
}

// receiver is the name of a method's type.
func receiver(f *ast.FuncDecl) string {
	of := f.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	switch generic := of.(type) {
	case *ast.IndexExpr:
		of = generic.X
	case *ast.IndexListExpr:
		of = generic.X
	}
	return strings.TrimSpace(of.(*ast.Ident).Name)
}

// structs are the struct types that a declaration names.
func structs(decl ast.Decl) map[string]*ast.StructType {
	out := map[string]*ast.StructType{}
	if d, ok := decl.(*ast.GenDecl); ok {
		for _, spec := range d.Specs {
			if named, ok := spec.(*ast.TypeSpec); ok {
				if s, ok := named.Type.(*ast.StructType); ok {
					out[named.Name.Name] = s
				}
			}
		}
	}
	return out
}

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
