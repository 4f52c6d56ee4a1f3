// Package textedit changes a text by replacing parts of it, each of which must be there exactly once, and says how two
// texts differ.
package textedit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// Edit replaces one part of a text.
type Edit struct {
	Old string `json:"old" required:"true" minLength:"1" doc:"Text that the file has exactly once" fix:"give the text that is to be replaced"`
	New string `json:"new" required:"true" doc:"Text in its place"`
}

// Mismatch says why an edit does not fit the text as the edits before it have left it.
type Mismatch struct {
	Index int   // of the edit, from 0
	Lines []int // where it is, or else where something like it begins; from 1, at most 5
	Why   string
}

// Error implements error.
func (m *Mismatch) Error() string { return fmt.Sprintf("edits[%d]: %s", m.Index, m.Why) }

// maxLines limits the places that a Mismatch names.
const maxLines = 5

// Apply makes the edits one after the other. *Mismatch if one does not fit; then nothing was changed.
func Apply(text string, edits []Edit) (string, error) {
	for i, e := range edits {
		switch n := count(text, e.Old); {
		case e.Old == "":
			return "", &Mismatch{Index: i, Why: "`old` is empty; give the text that is to be replaced"}
		case n == 1:
			text = strings.Replace(text, e.Old, e.New, 1)
		case n > 1:
			lines := occurrences(text, e.Old)
			return "", &Mismatch{Index: i, Lines: lines, Why: fmt.Sprintf(
				"`old` is there %d times, in %s; give more of the text around it, so that it is there once", n, inLines(lines))}
		default:
			return "", missing(text, e.Old, i)
		}
	}
	return text, nil
}

// leastMade is the minimum length in bytes of a new part whose presence in a text is not a coincidence.
const leastMade = 16

// Made reports whether a text has already what the edits make of it: the new part of each once, and none of the old
// ones beside that. Parts that are short may be there by chance, so that they say nothing.
func Made(text string, edits []Edit) bool {
	made := false
	for _, e := range edits {
		rest := text
		switch {
		case e.New != "" && (len(strings.TrimSpace(e.New)) < leastMade || count(text, e.New) != 1):
			return false
		case e.New != "":
			made = true
			if strings.Contains(e.New, e.Old) {
				rest = strings.Replace(text, e.New, "\x00", 1)
			}
		}
		if strings.Contains(rest, e.Old) {
			return false
		}
	}
	return made
}

// maxCount limits the count, so that a crafted text takes no time.
const maxCount = 1000

// count returns how often a part occurs, overlapping places included; at most maxCount.
func count(text, part string) int {
	if part == "" {
		return 0
	}
	n := 0
	for at := 0; n < maxCount; n++ {
		i := strings.Index(text[at:], part)
		if i < 0 {
			break
		}
		at += i + 1
	}
	return n
}

func occurrences(text, part string) (lines []int) {
	for at := 0; len(lines) < maxLines; {
		i := strings.Index(text[at:], part)
		if i < 0 {
			break
		}
		lines = append(lines, 1+strings.Count(text[:at+i], "\n"))
		at += i + 1
	}
	return lines
}

func missing(text, old string, index int) *Mismatch {
	m := &Mismatch{Index: index}
	if strings.Contains(text, "\r\n") && strings.Contains(strings.ReplaceAll(text, "\r\n", "\n"), old) {
		m.Lines = occurrences(strings.ReplaceAll(text, "\r\n", "\n"), old)
		m.Why = fmt.Sprintf("`old` is in %s but for the ends of lines: the file has \\r\\n", inLines(m.Lines))
		return m
	}
	m.Lines = similar(text, old)
	m.Why = "`old` is not there"
	if len(m.Lines) > 0 {
		m.Why += "; something like it begins in " + inLines(m.Lines)
	}
	return m
}

func inLines(lines []int) string {
	texts := make([]string, len(lines))
	for i, n := range lines {
		texts[i] = fmt.Sprint(n)
	}
	if len(texts) == 1 {
		return "line " + texts[0]
	}
	return "lines " + strings.Join(texts, ", ")
}

// maxPlaces bounds how many places of one line are looked at.
const maxPlaces = 200

// similar returns the lines where something like a part begins, at most 5: where most of its lines stand, spaces aside,
// and at least half, or for want of such a place, the lines that are most like its longest line.
func similar(text, part string) []int {
	lines, wanted := bare(text), bare(part)
	places := map[string][]int{}
	for i, line := range lines {
		if line != "" && len(places[line]) < maxPlaces {
			places[line] = append(places[line], i)
		}
	}
	votes := map[int]int{}
	solid := 0
	for i, line := range wanted {
		if line == "" {
			continue
		}
		solid++
		for _, at := range places[line] {
			votes[max(at-i, 0)]++
		}
	}
	var out []int
	best := 0
	for at, n := range votes {
		if n > best {
			best, out = n, nil
		}
		if n == best {
			out = append(out, at+1)
		}
	}
	if best == 0 || 2*best < solid {
		return likeLongest(lines, wanted)
	}
	slices.Sort(out)
	return out[:min(len(out), maxLines)]
}

// bare returns the lines of a text without the spaces around them, and with single ones within.
func bare(text string) []string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return lines
}

// likeLongest returns the lines that are most like the longest line that is wanted, if they have at least half of what
// either has.
func likeLongest(lines, wanted []string) (out []int) {
	longest := triples(slices.MaxFunc(wanted, func(a, b string) int { return len(a) - len(b) }))
	best := 0.5
	for i, line := range lines {
		if 2*len(line) < len(longest) || len(line) > 4*(len(longest)+2) {
			continue
		}
		has := triples(line)
		both := 0
		for t := range has {
			if longest[t] {
				both++
			}
		}
		switch like := float64(both) / float64(max(len(has), len(longest), 1)); {
		case like > best:
			best, out = like, []int{i + 1}
		case like == best && len(out) < maxLines:
			out = append(out, i+1)
		}
	}
	return out
}

// maxTriples bounds how much of a line is compared.
const maxTriples = 1000

// triples returns the runs of three bytes in a text, by which similarity is judged.
func triples(text string) map[string]bool {
	out := map[string]bool{}
	for i := 0; i+3 <= len(text) && i < maxTriples; i++ {
		out[text[i:i+3]] = true
	}
	return out
}

// Counts are the numbers of lines that a change adds and removes.
type Counts struct {
	Added   int `json:"added"`
	Removed int `json:"removed"`
}

// Compare counts the lines that lead from one text to another.
func Compare(before, after string) Counts {
	var c Counts
	unified, err := udiff.ToUnifiedDiff("a", "b", before, udiff.Strings(before, after), 0)
	if err != nil { // the edits are those of this very text
		return c
	}
	for _, hunk := range unified.Hunks {
		for _, line := range hunk.Lines {
			switch line.Kind {
			case udiff.Insert:
				c.Added++
			case udiff.Delete:
				c.Removed++
			}
		}
	}
	return c
}

// Merge makes the changes that lead from base to ours and those that lead from base to theirs in one text, line by
// line. ok is false if both change the same lines, or lines that touch, in different ways.
func Merge(base, ours, theirs string) (merged string, ok bool) {
	left, right := lineEdits(base, ours), lineEdits(base, theirs)
	var b strings.Builder
	at := 0
	for len(left)+len(right) > 0 {
		var next udiff.Edit
		switch {
		case len(left) > 0 && len(right) > 0 && left[0] == right[0]:
			next, left, right = left[0], left[1:], right[1:]
		case len(right) == 0 || len(left) > 0 && left[0].Start <= right[0].Start && left[0].End < right[0].Start:
			next, left = left[0], left[1:]
		case len(left) == 0 || right[0].Start <= left[0].Start && right[0].End < left[0].Start:
			next, right = right[0], right[1:]
		default:
			return "", false
		}
		b.WriteString(base[at:next.Start] + next.New)
		at = next.End
	}
	return b.String() + base[at:], true
}

// lineEdits returns the changes between two texts as whole lines, in their order. Those that touch are one.
func lineEdits(before, after string) (out []udiff.Edit) {
	for _, e := range udiff.Lines(before, after) {
		if n := len(out); n > 0 && out[n-1].End == e.Start {
			out[n-1].End, out[n-1].New = e.End, out[n-1].New+e.New
			continue
		}
		out = append(out, e)
	}
	return out
}
