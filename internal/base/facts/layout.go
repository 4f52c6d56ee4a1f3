package facts

import (
	"path"
	"strings"

	"github.com/claudeops/claudeops/internal/base/strictyaml"
)

// unit is a part of a file that is read as one: a paragraph, a heading, a block of code, a header.
type unit struct {
	where    Where
	prose    bool   // sentences, not code
	language string // of code, in lower case; "" if it is not said
	heading  bool   // a title of a section
	listed   bool   // in an item of a list
	step     bool   // in an item of a list with numbers; behind forbidLists, only if it is all that the item has
	item     int    // the innermost item of a list that it is in, by its number in the file
	depth    int    // in how many items and quotes it stands
	// forbidden says that it stands in a list under a title that forbids, such as "Never:".
	forbidden bool
	lines     []unitLine
	words     *wordCache // of the file that the unit is in; nil for none
}

// unitLine is a line of a unit, without the marks of lists and quotations before it.
type unitLine struct {
	number int // in the file, from 0
	text   string
}

// layoutOf parts a file into units, in the order of its lines.
func layoutOf(name, text string, lines []string) []unit {
	switch kind := fileKind(name, lines); kind {
	case "markdown":
		return markdownLayout(text, lines)
	default:
		return []unit{{where: Code, language: kind, lines: numbered(lines, 0)}}
	}
}

// fileKind says how a file is read: "markdown" for text, or the language of its code.
func fileKind(name string, lines []string) string {
	switch extension := strings.TrimPrefix(strings.ToLower(path.Ext(name)), "."); extension {
	case "":
		if len(lines) > 0 && strings.HasPrefix(lines[0], "#!") {
			return shebang(lines[0])
		}
		switch strings.ToLower(path.Base(name)) {
		case "makefile", "dockerfile", "justfile":
			return "sh"
		}
		return "markdown"
	case "md", "markdown", "mdx", "mdc", "txt", "rst", "adoc", "j2", "tmpl":
		return "markdown"
	default:
		return extension
	}
}

// shebang gives the language of a script that begins with #!.
func shebang(line string) string {
	for _, language := range []string{"python", "node", "ruby", "perl", "php"} {
		if strings.Contains(line, language) {
			return language
		}
	}
	return "sh"
}

func numbered(lines []string, first int) []unitLine {
	out := make([]unitLine, len(lines))
	for i, line := range lines {
		out[i] = unitLine{first + i, line}
	}
	return out
}

// markdownLayout parts a Markdown file.
func markdownLayout(content string, lines []string) []unit {
	header, ok := strictyaml.CutFrontMatter(content)
	if !ok {
		return forbidLists(scanBlocks(lines, 0))
	}
	first := header.BodyLine - 1
	units := []unit{{where: FrontMatter, language: "yaml", lines: numbered(lines[1:first-1], 1)}}
	return append(units, forbidLists(scanBlocks(lines[min(first, len(lines)):], first))...)
}
