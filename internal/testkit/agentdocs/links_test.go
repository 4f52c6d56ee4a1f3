package agentdocs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

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
