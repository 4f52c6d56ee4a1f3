//go:build lint

package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
