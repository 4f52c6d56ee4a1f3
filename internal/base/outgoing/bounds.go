package outgoing

import (
	"fmt"
	"strings"
)

// Bounds of a body that is parsed. The parser's time grows with the square of any of these.
const (
	maxContainers = 40   // quotes and lists that one line opens
	maxDelimiters = 4000 // brackets, and signs of emphasis, in one paragraph
)

// tooComplex says which bound a body exceeds, "" if none.
func tooComplex(text string) string {
	brackets, emphasis := 0, 0
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			brackets, emphasis = 0, 0
		}
		if opened := containers(line); opened > maxContainers {
			return fmt.Sprintf("a line with %d quotes and lists in each other; at most %d are read", opened, maxContainers)
		}
		brackets += strings.Count(line, "[") + strings.Count(line, "<") + strings.Count(line, "(")
		emphasis += strings.Count(line, "*") + strings.Count(line, "_") + strings.Count(line, "~")
		if brackets > maxDelimiters || emphasis > maxDelimiters {
			return fmt.Sprintf("a paragraph with more than %d brackets or signs of emphasis", maxDelimiters)
		}
	}
	return ""
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
