package prflow

import (
	"regexp"
	"slices"
	"strings"
)

// outsideCode applies change to a markdown text outside of fenced code blocks and code spans. It knows only code that
// every reading of the text agrees on (CommonMark 0.31, "Fenced code blocks" and "Code spans"): where a list, a quote, an
// HTML tag, an escape or a run of backticks without its partner could make it something else, it counts as prose.
func outsideCode(text string, change func(string) string) string {
	if regexp.MustCompile(`<[A-Za-z/!?]`).MatchString(text) {
		return change(text)
	}
	var b strings.Builder
	lines := strings.SplitAfter(text, "\n")
	for at := 0; at < len(lines); {
		if end := fenceEnd(lines[at:]); end > 0 {
			b.WriteString(strings.Join(lines[at:at+end], ""))
			at += end
			continue
		}
		end := at + 1
		for end < len(lines) && strings.TrimSpace(lines[end]) != "" && fenceEnd(lines[end:]) == 0 {
			end++
		}
		b.WriteString(paragraph(lines[at:end], change))
		at = end
	}
	return b.String()
}

// fenceEnd is how many lines a fenced code block takes that begins with the first line, at its very start, and is
// closed; 0 if there is none.
func fenceEnd(lines []string) int {
	open := strings.TrimRight(lines[0], " \t\r\n")
	for _, c := range []string{"`", "~"} {
		info := strings.TrimLeft(open, c)
		run := open[:len(open)-len(info)]
		if len(run) < 3 || strings.Contains(info, "`") {
			continue
		}
		closes := func(line string) bool {
			line = strings.TrimRight(line, " \t\r\n")
			return len(line) >= len(run) && strings.Trim(line, c) == ""
		}
		if at := slices.IndexFunc(lines[1:], closes); at >= 0 {
			return at + 2
		}
	}
	return 0
}

// paragraph applies change outside of code spans, if in each line every run of backticks has its partner.
func paragraph(lines []string, change func(string) string) string {
	var b strings.Builder
	for _, line := range lines {
		changed, certain := outsideSpans(line, change)
		if !certain {
			return change(strings.Join(lines, ""))
		}
		b.WriteString(changed)
	}
	return b.String()
}

// outsideSpans applies change to the parts of a line that are no code span. certain is false if a run of backticks has no
// partner in the line, or is escaped.
func outsideSpans(line string, change func(string) string) (changed string, certain bool) {
	var b strings.Builder
	for {
		begin := strings.IndexByte(line, '`')
		if begin < 0 {
			return b.String() + change(line), true
		}
		rest := strings.TrimLeft(line[begin:], "`")
		run := line[begin : len(line)-len(rest)]
		end := spanEnd(rest, run)
		if end < 0 || begin > 0 && line[begin-1] == '\\' {
			return "", false
		}
		stop := begin + len(run) + end + len(run)
		b.WriteString(change(line[:begin]) + line[begin:stop])
		line = line[stop:]
	}
}

// spanEnd is where a run of exactly as many backticks stands, or -1.
func spanEnd(text, run string) int {
	for at := 0; at < len(text); {
		if text[at] != '`' {
			at++
			continue
		}
		length := len(text[at:]) - len(strings.TrimLeft(text[at:], "`"))
		if length == len(run) {
			return at
		}
		at += length
	}
	return -1
}
