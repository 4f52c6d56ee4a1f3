package agentdocs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The messages that docs/guides/troubleshooting.md quotes are messages of the program: the parts between "..." stand in
// its source.
func TestQuotedMessagesAreThoseOfTheProgram(t *testing.T) {
	t.Parallel()
	source, quotes := messagesOfTheSource(t), 0
	text := readPage(t, filepath.Join("..", "..", "..", "docs", "guides", "troubleshooting.md"))
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		first := cells(strings.TrimSpace(line))[0]
		for _, quote := range quoted(first) {
			if !strings.Contains(quote, " ") {
				continue // a code, which codes_test.go knows
			}
			quotes++
			for part := range strings.SplitSeq(quote, "...") {
				if part = strings.TrimSpace(part); !strings.Contains(source, part) {
					t.Errorf("no message of the program has %q", part)
				}
			}
		}
	}
	if quotes < 20 {
		t.Errorf("only %d messages are quoted", quotes)
	}
}

// messagesOfTheSource are the texts of the source, each in a line of its own; texts that are added up are one. Verbs of
// formats become "...".
func messagesOfTheSource(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(filepath.Join("..", ".."), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch e := n.(type) {
			case *ast.BinaryExpr:
				all.WriteString(textOf(e) + "\n")
				return false
			case *ast.BasicLit:
				all.WriteString(textOf(e) + "\n")
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`%(\[\d\])?[-+#.0-9]*[a-z]`).ReplaceAllString(all.String(), "...")
}

// textOf returns the value of an expression of texts; "..." stands for parts that are not constant.
func textOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return textOf(e.X) + textOf(e.Y)
		}
	}
	return "..."
}
