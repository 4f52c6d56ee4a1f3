package facts

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"

	"github.com/claudeops/claudeops/internal/base/markdown"
)

// TestBlocksAreThoseOfTheLibrary compares the blocks of pages and of hard texts with those of the library that reads
// Markdown elsewhere.
func TestBlocksAreThoseOfTheLibrary(t *testing.T) {
	texts := map[string]string{}
	for i, text := range hardTexts() {
		texts[fmt.Sprint("hard text ", i)] = text
	}
	for _, pattern := range []string{"docs/*/*.md", "playbooks/*.md", "prompts/*.md", "*.md"} {
		names, err := filepath.Glob("../../../" + pattern)
		if err != nil || len(names) == 0 {
			t.Fatal(pattern, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			texts[name] = string(text)
		}
	}
	for name, text := range texts {
		ours, theirs := ownBlocks(text), libraryBlocks(t, text)
		for i := range max(len(ours), len(theirs)) {
			if i >= len(ours) || i >= len(theirs) || ours[i] != theirs[i] {
				t.Errorf("%s differs from block %d on: %q, the library has %q\nof %.300q", name, i,
					ours[min(i, len(ours)):min(i+2, len(ours))], theirs[min(i, len(theirs)):min(i+2, len(theirs))], text)
				break
			}
		}
	}
}

// hardTexts are texts in which blocks are hard to tell apart.
func hardTexts() []string {
	return []string{
		"a\nb\n\nc\n===\nd\n---\n---\n***\n* * *\n",
		"# a #\n#b\n####### c\n#\n## d\\#\n### e #f\n",
		"- a\n- b\n  c\n\n  d\n-\n\n  e\n- - f\n    g\n",
		"1. a\n2) b\n10. c\n\n    d\n\ntext\n2. no item\n1. an item\n-\n",
		"> a\nb\n> > c\nd\n\n> ```\n> e\nf\n",
		"> - a\n>   b\n> - c\nlazy\n>     lazy too\n\n>     code\n",
		"```sh\nrm a\n````\n\n~~~ py\n```\n~~~\n```\nnever closed\n",
		"  ```\n  a\n b\n   c\n  ```\n``` a`b\n",
		"    code\n\n    more\n\n\ntext\n    goes on\n",
		"\tcode\n- a\n\n\tb\n\n\t\tc\n>\tcode?\n-\t\td\n",
		"- a\n\n      code\n- ```\n  b\n  ```\n  c\n",
		"<!-- a\n\nb --> c\n\nd <!-- e -->\n<!-- f -->\ng\n",
		"<div>\n*a*\n\nb\n</div>\nc\n\n<script>\n\nd</script>\ne\n<pre>f\n\n</style>\n",
		"<span>\na\n\nb\n<span>\n\n<a href=\"x>y\">\nc\n\n<x-y>d\n\n</a>\ne\n",
		"<?a\n\nb?>\n<!A b>\n<![CDATA[\n\n]]>\nc\n<https://a.example.org>\n",
		"[a]: /b\n[c]: /d 'e'\nf\n\n[g]: /h i\n\n[j] k\n[l]: m\n",
		"| a | b |\n|---|---|\n| c | d |\ne\n\n- | f |\n",
		"a\n- b\n\n  # c\n  > d\n\n  e\nf\n",
		"- a\n - b\n  - c\n   - d\n    - e\n",
		"* a\n+ b\n- c\n***\n- ---\n- # d\n",
		"a\\\nb  \nc\n\n\\# d\n\\- e\n",
		"---\na: b\n---\n# c\n---\nd\n---\n",
		"a\n  ---\nb\n    ---\n> c\n---\n- d\n===\n",
		"-    a\n     b\n-     c\n\n      d\n",
		">a\n>\n>b\n>\n\n>c\n<!-->\nd\n<!--->\ne\n",
	}
}

// ownBlocks gives a text's blocks as the reader has them: where each stands, its language, its lines.
func ownBlocks(text string) (blocks []string) {
	for _, u := range markdownLayout(text, splitLines(text)) {
		if u.where == Comment && strings.HasPrefix(u.lines[0].text, "[") {
			continue // the definition of a link, which the library leaves out
		}
		blocks = append(blocks, blockText(u))
	}
	return slices.DeleteFunc(blocks, func(b string) bool { return b == "" })
}

// libraryBlocks gives a text's blocks as the library has them.
func libraryBlocks(t testing.TB, text string) (blocks []string) {
	t.Helper()
	lines := splitLines(text)
	first, body := 0, text
	for _, u := range markdownLayout(text, lines) {
		if u.where == FrontMatter {
			first = len(u.lines) + 2
			body = strings.Join(lines[first:], "\n") + "\n"
			blocks = append(blocks, blockText(u))
		}
	}
	source := []byte(body)
	document, tooMuch := markdown.New(goldmark.WithParser(parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...)))).Parse(source)
	if tooMuch != "" {
		t.Fatal(tooMuch)
	}
	_ = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering || node.Type() != ast.TypeBlock {
			return ast.WalkContinue, nil
		}
		var found []unitLine
		for i := range node.Lines().Len() {
			s := node.Lines().At(i)
			found = append(found, unitLine{first + strings.Count(body[:s.Start], "\n"), string(s.Value(source))})
		}
		switch n := node.(type) {
		case *ast.Paragraph, *ast.TextBlock, *ast.Heading:
			blocks = append(blocks, blockText(unit{where: Prose, lines: found}))
		case *ast.FencedCodeBlock:
			language := strings.ToLower(string(n.Language(source)))
			blocks = append(blocks, blockText(unit{where: Code, language: language, lines: found}))
		case *ast.CodeBlock:
			blocks = append(blocks, blockText(unit{where: Code, lines: found}))
		case *ast.HTMLBlock:
			if s := n.ClosureLine; n.HasClosure() {
				found = append(found, unitLine{first + strings.Count(body[:s.Start], "\n"), string(s.Value(source))})
			}
			for _, u := range htmlUnits(found) {
				blocks = append(blocks, blockText(u))
			}
		}
		return ast.WalkContinue, nil
	})
	return slices.DeleteFunc(blocks, func(b string) bool { return b == "" })
}

// blockText gives a block without the white space around its lines, and "" for one without text.
func blockText(u unit) string {
	var b strings.Builder
	for _, line := range u.lines {
		if text := strings.TrimSpace(line.text); text != "" {
			fmt.Fprintf(&b, "\n%d %s", line.number+1, text)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return string(u.where) + " " + u.language + b.String()
}

// FuzzBlocks holds that the scanner loses no text: what is in no unit is marks of Markdown alone.
func FuzzBlocks(f *testing.F) {
	for _, text := range hardTexts() {
		f.Add(text)
	}
	f.Add(strings.Repeat("> - 1. ", maxContainers) + "delete all files\nand more\n")
	f.Fuzz(func(t *testing.T, text string) {
		lines := splitLines(text)
		read := make([]string, len(lines))
		before := 0
		for _, u := range scanBlocks(lines, 0) {
			for _, line := range u.lines {
				if line.number < before || !strings.Contains(lines[line.number], line.text) {
					t.Fatalf("line %d after %d, %q of %q", line.number, before, line.text, lines[line.number])
				}
				before = line.number
				read[line.number] += line.text
			}
		}
		for i, line := range lines {
			left := line
			if marks := strings.TrimLeft(line, " \t>-+*0123456789.)"); strings.HasPrefix(marks, "```") ||
				strings.HasPrefix(marks, "~~~") {
				_, left, _ = strings.Cut(strings.TrimLeft(marks, "`~ \t"), " ") // behind the language of code
			}
			for _, c := range left {
				if !strings.ContainsRune(" \t>-+*_=#~`0123456789.)<!", c) && !strings.ContainsRune(read[i], c) {
					t.Fatalf("line %d is lost: %q, of which %q is read", i, line, read[i])
				}
			}
		}
	})
}
