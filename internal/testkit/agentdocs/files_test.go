package agentdocs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// repoRoot is the folder of go.mod, found by walking up.
func repoRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod in this folder or above it")
		}
		dir = up
	}
}

// eachSource hands the Go files below a folder of the repository, but for tests, to do.
func eachSource(t *testing.T, folder string, mode parser.Mode, do func(name string, file *ast.File)) {
	t.Helper()
	root := repoRoot(t)
	err := fs.WalkDir(os.DirFS(root), folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, mode)
		if err == nil {
			do(name, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// read returns a file of the repository, by slash-separated path.
func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(repoRoot(t), filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// markdownIn lists the Markdown files below a folder, by path from the repository's root. There must be some.
func markdownIn(t *testing.T, folder string) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(os.DirFS(repoRoot(t)), folder, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && path.Ext(name) == ".md" {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		t.Fatalf("no Markdown file below %s", folder)
	}
	return names
}

// procedures are the files that the demo repository consists of.
func procedures(t *testing.T) []string {
	t.Helper()
	return append(append(markdownIn(t, "checks"), markdownIn(t, "playbooks")...), gitprovider.ManifestFile)
}

// agentFiles are all files that this package answers for.
func agentFiles(t *testing.T) []string {
	t.Helper()
	names := append(procedures(t), markdownIn(t, "prompts")...)
	names = append(names, markdownIn(t, ".claude")...)
	return append(names, ".claude/mcp.json", ".claude/settings.json", "docs/reference/codes.md")
}

func TestFilesHoldOnlyWhatAReviewerSees(t *testing.T) {
	t.Parallel()
	for _, name := range agentFiles(t) {
		text := read(t, name)
		if !utf8.ValidString(text) {
			t.Errorf("%s: not valid UTF-8", name)
		}
		for _, c := range textscan.Hidden(text) {
			t.Errorf("%s:%d:%d: %s", name, c.Line, c.Column, c.Name)
		}
		if strings.Contains(text, "\r") || !strings.HasSuffix(text, "\n") || strings.HasSuffix(text, "\n\n") {
			t.Errorf("%s: lines must end with a newline only, and the file with exactly one", name)
		}
	}
}

func TestFilesHoldNoSecret(t *testing.T) {
	t.Parallel()
	scanner := textscan.NewScanner(nil)
	for _, name := range agentFiles(t) {
		secrets, err := scanner.Secrets(t.Context(), name, read(t, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range secrets {
			t.Errorf("%s: looks like a secret: %+v", name, s)
		}
	}
}

func TestProceduresAreInScope(t *testing.T) {
	t.Parallel()
	for _, name := range procedures(t) {
		if verdict := gitprovider.DefaultScope().Check(name); !verdict.Allowed {
			t.Errorf("%s could not be proposed: %s", name, verdict.Reason.Message)
		}
	}
	for _, name := range prompts() {
		if _, err := gitprovider.ParsePath(name); err != nil {
			t.Errorf("%s: the name %v", name, err)
		}
	}
}

func TestRelativeLinksResolve(t *testing.T) {
	t.Parallel()
	isProcedure := map[string]bool{}
	for _, name := range procedures(t) {
		isProcedure[name] = true
	}
	root := os.DirFS(repoRoot(t))
	for _, name := range agentFiles(t) {
		for _, target := range relativeLinks(name, read(t, name)) {
			if _, err := fs.Stat(root, target); err != nil {
				t.Errorf("%s: the link to %s leads nowhere: %v", name, target, err)
			}
			if isProcedure[name] && !isProcedure[target] {
				t.Errorf("%s: the link to %s leads out of what the demo repository has", name, target)
			}
		}
	}
}

// relativeLinks returns the targets of a Markdown file's relative links, as paths from the repository's root.
func relativeLinks(name, text string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(text, -1) {
		target, _, _ := strings.Cut(m[1], "#")
		if target != "" && !strings.Contains(target, "://") {
			out = append(out, path.Join(path.Dir(name), target))
		}
	}
	return out
}

func TestRelativeLinksAreFound(t *testing.T) {
	t.Parallel()
	text := "[a](../b/c.md#part) and [web](https://example.org/x) and [here](#part)"
	if got := relativeLinks("checks/x.md", text); len(got) != 1 || got[0] != "b/c.md" {
		t.Errorf("got %q, want only b/c.md", got)
	}
}

// tableWith returns the rows of the one table of a Markdown text whose first header cell is first; the header row
// comes first, the line of dashes is left out.
func tableWith(t *testing.T, text, first string) [][]string {
	t.Helper()
	var found [][][]string
	var rows [][]string
	for _, line := range append(strings.Split(text, "\n"), "") {
		if strings.HasPrefix(line, "|") {
			rows = append(rows, cells(line))
			continue
		}
		if len(rows) > 2 && rows[0][0] == first {
			found = append(found, slices.Delete(rows, 1, 2))
		}
		rows = nil
	}
	if len(found) != 1 {
		t.Fatalf("%d tables begin with the header %q, want one", len(found), first)
	}
	return found[0]
}

func cells(row string) []string {
	parts := strings.Split(strings.Trim(row, "| "), "|")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// quoted returns what stands in backticks in a table cell.
func quoted(cell string) []string {
	var out []string
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
		out = append(out, m[1])
	}
	return out
}

// headings returns the texts of a Markdown text's headings of one level ("## "), without those in fenced blocks.
func headings(text, level string) []string {
	var out []string
	inFence := false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			inFence = !inFence
		case !inFence && strings.HasPrefix(line, level):
			out = append(out, strings.TrimSpace(strings.TrimPrefix(line, level)))
		}
	}
	return out
}

// fenced returns the fenced blocks of one language, without the indentation of their fence.
func fenced(text, language string) []string {
	var out []string
	for _, m := range regexp.MustCompile("(?ms)^( *)```"+language+"\n(.*?)^ *```$").FindAllStringSubmatch(text, -1) {
		out = append(out, strings.ReplaceAll(strings.TrimPrefix(m[2], m[1]), "\n"+m[1], "\n"))
	}
	return out
}

func TestMarkdownIsRead(t *testing.T) {
	t.Parallel()
	text := "# T\n\n## One\n\n| code | do |\n|---|---|\n| `a`, `b` | x |\n\n  ```sh\n  ## no\n    y\n  ```\n\n## Two\n"
	rows := tableWith(t, text, "code")
	if len(rows) != 2 || !slices.Equal(rows[1], []string{"`a`, `b`", "x"}) {
		t.Errorf("table: got %q", rows)
	}
	if got := quoted(rows[1][0]); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("quoted: got %q", got)
	}
	if got := headings(text, "## "); !slices.Equal(got, []string{"One", "Two"}) {
		t.Errorf("headings: got %q", got)
	}
	if got := fenced(text, "sh"); !slices.Equal(got, []string{"## no\n  y\n"}) {
		t.Errorf("fenced: got %q", got)
	}
}
