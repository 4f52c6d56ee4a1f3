package deploy

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// onePatch is a unified diff of one file, taken apart.
type onePatch struct {
	from, to []string // what follows --- and +++ outside of hunks
	hunks    []string // lines, each with its end
}

// takeApart separates a patch's hunks from what says which file it is for, by the lines that each hunk says it has:
// within a hunk, a line may look like a header. why says why it is none that may be applied; "" if it may.
func takeApart(text string) (p onePatch, why string) {
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return p, "It is no text."
	}
	before, after := 0, 0 // lines that the hunk still has
	for line := range strings.Lines(text) {
		bare := strings.TrimRight(line, "\r\n")
		mark := " "
		if bare != "" {
			mark = bare[:1]
		}
		switch {
		case before+after > 0 && strings.Contains(" -+", mark):
			if mark != "+" {
				before--
			}
			if mark != "-" {
				after--
			}
			if before < 0 || after < 0 {
				return p, "A hunk has more lines than it says."
			}
			p.hunks = append(p.hunks, line)
		case mark == `\` && len(p.hunks) > 0: // no newline at the end of the file
			p.hunks = append(p.hunks, line)
		case before+after > 0:
			return p, "A hunk has fewer lines than it says."
		case strings.HasPrefix(line, "@@"):
			var ok bool
			if before, after, ok = hunkLines(bare); !ok {
				return p, "A hunk does not say which lines it is for."
			}
			p.hunks = append(p.hunks, line)
		default:
			if why := p.header(bare); why != "" {
				return p, why
			}
		}
	}
	if before+after > 0 {
		return p, "A hunk has fewer lines than it says."
	}
	return p, ""
}

// header reads a line outside of hunks.
func (p *onePatch) header(line string) (why string) {
	has := func(beginnings ...string) bool {
		for _, b := range beginnings {
			if strings.HasPrefix(line, b) {
				return true
			}
		}
		return false
	}
	switch {
	case has("GIT binary patch", "Binary files"):
		return "It is for a binary file."
	case has("rename ", "copy ", "new file", "deleted file"):
		return "It adds, removes, renames or copies a file."
	case has("--- "):
		p.from = append(p.from, line[4:])
	case has("+++ "):
		p.to = append(p.to, line[4:])
	}
	return ""
}

// hunkLines returns how many lines of the file a hunk has before and after it.
func hunkLines(line string) (before, after int, ok bool) {
	m := regexp.MustCompile(`^@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@`).FindStringSubmatch(line)
	if m == nil {
		return 0, 0, false
	}
	count := func(text string) int {
		if n, err := strconv.Atoi(text); err == nil {
			return n
		}
		return 1
	}
	return count(m[1]), count(m[2]), true
}

// isFor reports whether the patch is for one file, and for this one.
func (p onePatch) isFor(rel string) (why string) {
	bare := func(name, prefix string) string { return strings.TrimPrefix(headerName(name), prefix) }
	switch {
	case len(p.from) != 1 || len(p.to) != 1:
		return "It must have exactly one line of --- and one of +++."
	case bare(p.from[0], "a/") != rel || bare(p.to[0], "b/") != rel:
		return "Its --- and +++ must both name " + rel + "."
	}
	return ""
}

// headerName returns the file name of a --- or +++ line. git puts one with other letters than ASCII's in quotes, its
// bytes as in a string of C (git-config(1), core.quotePath), all of which Go's strings know too.
func headerName(text string) string {
	if quoted, err := strconv.QuotedPrefix(text); err == nil && quoted[0] == '"' {
		if name, err := strconv.Unquote(quoted); err == nil {
			return name
		}
	}
	name, _, _ := strings.Cut(text, "\t") // a time may follow
	return name
}

// alone returns the patch for a file of another name, with nothing but its hunks.
func (p onePatch) alone(name string) string {
	return "--- a/" + name + "\n+++ b/" + name + "\n" + strings.Join(p.hunks, "")
}
