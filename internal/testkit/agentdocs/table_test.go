package agentdocs

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

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
