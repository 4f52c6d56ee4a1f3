package agentdocs

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

// Bounds of what people read.
const (
	maxSentence  = 25     // words
	maxLineRunes = 120    // characters
	maxPageWords = 1500   // of a page beside reference and decisions
	maxAllWords  = 34_000 // of all of docs
)

// Pages are short, and written in short sentences and lines. Tables and code may have long lines; decisions (adr) and
// the changelog are history, and what is written by make golden is not counted.
func TestPagesAreShortAndWrittenInShortSentences(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	all := 0
	for _, page := range pagesOf(t, root) {
		text := readPage(t, filepath.Join(root, page))
		for _, number := range longLines(text) {
			if !strings.HasPrefix(page, "docs/reference/") {
				t.Errorf("%s: line %d has more than %d characters", page, number, maxLineRunes)
			}
		}
		if page == "CHANGELOG.md" || strings.HasPrefix(page, "docs/reference/") || strings.HasPrefix(page, "docs/adr/") {
			continue
		}
		words := wordsIn(text)
		if strings.HasPrefix(page, "docs/") {
			all += words
		}
		if words > maxPageWords {
			t.Errorf("%s has %d words, more than %d", page, words, maxPageWords)
		}
		for _, sentence := range sentencesOf(text) {
			if n := wordsIn(sentence); n > maxSentence {
				t.Errorf("%s: a sentence of %d words: %s", page, n, sentence)
			}
		}
	}
	t.Logf("%d words", all)
	if all > maxAllWords {
		t.Errorf("the pages have %d words, more than %d", all, maxAllWords)
	}
}

func TestLongSentencesAndLinesAreFound(t *testing.T) {
	t.Parallel()
	text := "# A heading\n\nShort one. " + strings.Repeat("word ", 26) +
		"\nin two lines.\n\n- An item\n  goes on.\n\n| a cell | " +
		strings.Repeat("cell ", 30) + "|\n\n```sh\n" + strings.Repeat("code ", 40) +
		"\n```\n\nA `code of many words is one` word: yes.\n"
	var counts []int
	for _, s := range sentencesOf(text) {
		counts = append(counts, wordsIn(s))
	}
	if want := []int{2, 29, 4, 2, 30, 3, 1}; !slices.Equal(counts, want) {
		t.Errorf("sentences of %v words, want %v: %q", counts, want, sentencesOf(text))
	}
	if lines := longLines(text); !slices.Equal(lines, []int{3}) {
		t.Errorf("long lines %v", lines)
	}
}

// longLines are the numbers of lines that are too long, without those of tables, of code, and those that one link
// fills.
func longLines(text string) (numbers []int) {
	code := false
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "```") {
			code = !code
		}
		if !code && !strings.HasPrefix(trimmed, "|") && len([]rune(line)) > maxLineRunes && strings.Count(trimmed, " ") > 1 {
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

// sentencesOf are the sentences of a page's paragraphs, items of lists and cells of tables. A colon or semicolon ends
// one, too.
func sentencesOf(text string) (out []string) {
	var block []string
	end := func() {
		joined := strings.Join(block, " ")
		block = nil
		joined = regexp.MustCompile("`[^`]*`").ReplaceAllString(joined, "CODE")
		joined = regexp.MustCompile(`\]\([^)]*\)`).ReplaceAllString(joined, "]")
		joined = regexp.MustCompile(`([.!?:;]["*)]*)\s+`).ReplaceAllString(joined, "$1\n")
		for sentence := range strings.SplitSeq(joined, "\n") {
			if sentence = strings.TrimSpace(sentence); sentence != "" {
				out = append(out, sentence)
			}
		}
	}
	item := regexp.MustCompile(`^([-*]|\d+\.) `)
	for line := range strings.SplitSeq(withoutCode(text, false), "\n") {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "|"):
			end()
			for cell := range strings.SplitSeq(strings.ReplaceAll(line, `\|`, ""), "|") {
				if strings.Trim(cell, " -") != "" {
					block = append(block, strings.TrimSpace(cell))
					end()
				}
			}
		case line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "<"):
			end()
		default:
			if item.MatchString(line) {
				end()
				line = item.ReplaceAllString(line, "")
			}
			block = append(block, line)
		}
	}
	end()
	return out
}

func wordsIn(sentence string) (n int) {
	for word := range strings.FieldsSeq(sentence) {
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			n++
		}
	}
	return n
}

// Every relative link of a page leads to a file that git has, and to a heading that is there.
func TestLinksOfPagesLeadSomewhere(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	pages := pagesOf(t, root)
	if len(pages) < 30 {
		t.Fatalf("only %d pages were found: %v", len(pages), pages)
	}
	checked := 0
	for _, page := range pages {
		for _, target := range linksOf(readPage(t, filepath.Join(root, page))) {
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			checked++
			file, anchor, _ := strings.Cut(target, "#")
			to := page
			if file != "" {
				to = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, target)
				continue
			}
			if anchor != "" && !anchorsOf(readPage(t, filepath.Join(root, to)))[anchor] {
				t.Errorf("%s links to %s, and no heading of %s has that anchor", page, target, to)
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d links were found", checked)
	}
}

// Every page of docs is in their list.
func TestEveryPageIsInTheListOfPages(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	list := readPage(t, filepath.Join(root, "docs", "README.md"))
	for _, page := range pagesOf(t, root) {
		name, isDoc := strings.CutPrefix(page, "docs/")
		if isDoc && name != "README.md" && !strings.HasPrefix(name, "adr/") && !strings.Contains(list, "("+name+")") {
			t.Errorf("docs/README.md does not list %s", name)
		}
	}
}

func TestLinksAndAnchorsAreRead(t *testing.T) {
	t.Parallel()
	text := "# A `b`: c's\n\n[x](y.md#z) `[no](code.md)` ![p](i.png)\n\n```sh\n[no](fence.md)\n# no\n```\n\n## A_b & " +
		"c\n\n## A_b & c\n"
	if got := strings.Join(linksOf(text), " "); got != "y.md#z i.png" {
		t.Errorf("links: %q", got)
	}
	anchors := anchorsOf(text)
	for _, want := range []string{"a-b-cs", "a_b--c", "a_b--c-1"} {
		if !anchors[want] {
			t.Errorf("no anchor %s in %v", want, anchors)
		}
	}
	if len(anchors) != 3 {
		t.Errorf("anchors %v", anchors)
	}
}

// pagesOf are the Markdown files for people: those of the root and of docs that git has or would add.
func pagesOf(t *testing.T, root string) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "--", "*.md",
		"docs/**/*.md")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	var pages []string
	for _, name := range strings.Fields(string(out)) {
		if !strings.Contains(name, "/") && name != "CLAUDE-OPS.md" || strings.HasPrefix(name, "docs/") {
			if _, err := os.Stat(filepath.Join(root, name)); err == nil {
				pages = append(pages, name)
			}
		}
	}
	return pages
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// withoutCode is a Markdown text without its fenced blocks and, if inline, without what stands in backticks.
func withoutCode(text string, inline bool) string {
	text = regexp.MustCompile("(?ms)^ *```.*?^ *```$").ReplaceAllString(text, "")
	if inline {
		text = regexp.MustCompile("`[^`\n]*`").ReplaceAllString(text, "")
	}
	return text
}

func linksOf(text string) (out []string) {
	// A label may be code; it is not looked at.
	text = regexp.MustCompile("\\[`([^`\n]*)`\\]").ReplaceAllString(withoutCode(text, false), "[$1]")
	for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(withoutCode(text, true), -1) {
		out = append(out, m[1])
	}
	return out
}

// anchorsOf are the anchors that GitHub and Gitea give to the headings of a text.
func anchorsOf(text string) map[string]bool {
	out := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#{1,6} (.+)$`).FindAllStringSubmatch(withoutCode(text, false), -1) {
		heading := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(m[1], "$1")
		anchor := regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
		anchor = strings.ReplaceAll(anchor, " ", "-")
		free := anchor
		for n := 1; out[free]; n++ {
			free = anchor + "-" + string(rune('0'+n))
		}
		out[free] = true
	}
	return out
}

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
	eachSource(t, "internal", parser.SkipObjectResolution, func(_ string, file *ast.File) {
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
	})
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
