package architecture

import (
	"cmp"
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

// The largest sizes that a reader is asked to hold in his head. Length of functions is the linter's (.golangci.yml).
const (
	maxFileLines  = 350
	maxMethods    = 30 // of one type
	maxFields     = 12 // of one struct
	maxMedianFile = 110
)

// wide lists the structs that may have more fields than maxFields: rows of the records, what forges say of a pull request or a
// repository, and a filter with a field for each column.
func wide() []string {
	return []string{
		"internal/gitprovider.Access", "internal/gitprovider.PullRequest", "internal/gitprovider.Snapshot",
		"internal/gitprovider/github.pullNode", "internal/gitprovider/github.repositoryNode",
		"internal/records/record.Attempt", "internal/records/record.AttemptQuery", "internal/records/record.Proposal", "internal/records/record.PullRecord",
	}
}

// A struct all of whose fields name their place in a text (JSON, YAML, a query) mirrors a format that others decide.
func mirrorsFormat(s *ast.StructType) bool {
	for _, field := range s.Fields.List {
		if field.Tag == nil && len(field.Names) > 0 {
			return false
		}
	}
	return true
}

func TestTypesAndFilesAreOfReadableSize(t *testing.T) {
	root := moduleRoot(t)
	methods := map[string]int{}
	allowed := map[string]bool{}
	for _, name := range wide() {
		allowed[name] = false
	}
	var lengths []int
	for file := range sources(t, root) {
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, filepath.Join(root, file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		lines := files.File(parsed.Pos()).LineCount() - 1
		lengths = append(lengths, lines)
		if lines > maxFileLines {
			t.Errorf("%s has %d lines; at most %d", file, lines, maxFileLines)
		}
		in := path.Dir(filepath.ToSlash(file))
		for _, decl := range parsed.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
				methods[in+"."+receiver(f)]++
			}
			for name, s := range structs(decl) {
				name = in + "." + name
				if fields := s.Fields.NumFields(); fields > maxFields && !mirrorsFormat(s) {
					if _, listed := allowed[name]; !listed {
						t.Errorf("%s: %s has %d fields; at most %d, or it is in wide()", file, name, fields, maxFields)
					}
					allowed[name] = true
				}
			}
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(methods), cmp.Compare[string]) {
		if methods[name] > maxMethods {
			t.Errorf("%s has %d methods; at most %d", name, methods[name], maxMethods)
		}
	}
	for name, used := range allowed {
		if !used {
			t.Errorf("%s is listed in wide(), and is not wide", name)
		}
	}
	slices.Sort(lengths)
	if median := lengths[len(lengths)/2]; median > maxMedianFile {
		t.Errorf("half of the files have more than %d lines; at most %d", median, maxMedianFile)
	}
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
