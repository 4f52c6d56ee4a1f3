package markdown

import (
	"fmt"
	"strings"
)

// Bounds of a text that is parsed, by its lines. The parser's time or memory grows with the square of any of these.
const (
	maxContainers = 40      // quotes and lists that one line opens
	maxDelimiters = 4000    // brackets, and signs of emphasis, in one paragraph
	maxOpen       = 20_000  // quotes and lists that may be open, counted anew in each empty line
	maxNotes      = 1000    // footnotes and references to them
	maxAttributes = 1 << 22 // attributes that begin in a line, times its bytes, for all lines
)

// excess says which bound a text exceeds, "" if none.
func excess(text string) string {
	brackets, emphasis, attributes, open := 0, 0, 0, 0
	depth, afterEmpty := 0, true
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			brackets, emphasis, afterEmpty = 0, 0, true
			if open += depth; open > maxOpen {
				return fmt.Sprintf("more than %d quotes and lists that go on over empty lines", maxOpen)
			}
			continue
		}
		opened := containers(line)
		if opened > maxContainers {
			return fmt.Sprintf("a line with %d quotes and lists in each other; at most %d are read", opened, maxContainers)
		}
		if inner := opened + indentation(line)/2; afterEmpty || inner > depth { // else it may belong to the lines before
			depth, afterEmpty = inner, false
		}
		brackets += strings.Count(line, "[") + strings.Count(line, "<") + strings.Count(line, "(")
		emphasis += strings.Count(line, "*") + strings.Count(line, "_") + strings.Count(line, "~")
		if brackets > maxDelimiters || emphasis > maxDelimiters {
			return fmt.Sprintf("a paragraph with more than %d brackets or signs of emphasis", maxDelimiters)
		}
		if attributes += attributesIn(line) * len(line); attributes > maxAttributes {
			return "too many attributes of headings"
		}
	}
	if strings.Count(text, "[^") > maxNotes {
		return fmt.Sprintf("more than %d footnotes", maxNotes)
	}
	return ""
}

// indentation returns the indentation of a line, in columns; a tab is four.
func indentation(line string) int {
	space := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	return len(space) + 3*strings.Count(space, "\t")
}

// attributesIn counts what may be classes of a heading: each is added to a copy of those before it.
func attributesIn(line string) int {
	_, rest, has := strings.Cut(line, "{")
	if !has {
		return 0
	}
	n := strings.Count(rest, "class")
	for i := range len(rest) {
		if rest[i] == '.' && (i == 0 || strings.IndexByte(" \t,\"'", rest[i-1]) >= 0) {
			n++
		}
	}
	return n
}

// containers counts the signs at a line's start that may each open a quote or a list.
func containers(line string) int {
	n := 0
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '>':
			n++
		case c == ' ' || c == '\t' || c >= '0' && c <= '9':
		case strings.IndexByte("-+*.):", c) >= 0:
			if i+1 == len(line) || line[i+1] == ' ' || line[i+1] == '\t' {
				n++
			}
		default:
			return n
		}
	}
	return n
}
