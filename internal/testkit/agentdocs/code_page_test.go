package agentdocs

import (
	"fmt"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

// docs/reference/code.md is made from the comments of the packages: `make golden` writes it.
func TestThePageOfPackagesIsMadeFromTheirComments(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	var b strings.Builder
	b.WriteString(
		"# Packages of the code\n\n<!-- Written by `make golden` from the packages' comments; edit those. -->\n\n" +
			"Where things are. A package imports those of its own folder of `internal/` and of the folders below it; " +
			"[ADR 19](../adr/0019-districts.md)\nsays what each folder is for.\n\n| package | what it is |\n|---|---|\n")
	rows := 0
	for _, top := range []string{"cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return err
			}
			if entry.Name() == "testdata" {
				return fs.SkipDir
			}
			if synopsis := synopsisOf(t, name); synopsis != "" {
				rel, err := filepath.Rel(root, name)
				if err != nil {
					return err
				}
				rows++
				fmt.Fprintf(&b, "| `%s` | %s |\n", filepath.ToSlash(rel), strings.ReplaceAll(synopsis, "|", `\|`))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if rows < 60 {
		t.Fatalf("only %d packages were found", rows)
	}
	operationtest.Golden(t, filepath.Join(root, "docs", "reference", "code.md"), []byte(b.String()))
}

// synopsisOf is the first sentence of the comment of the package in a folder, "" where no package is. A package without
// one fails the test.
func synopsisOf(t *testing.T, folder string) string {
	t.Helper()
	sources, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found, synopsis := false, ""
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), source, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		found = true
		if text := new(doc.Package).Synopsis(parsed.Doc.Text()); text != "" && synopsis == "" {
			synopsis = text
		}
	}
	if found && synopsis == "" {
		t.Errorf("the package in %s has no comment", folder)
	}
	return strings.TrimSuffix(strings.TrimPrefix(synopsis, "Package "), ".")
}
