// Package textedit changes a text by replacing parts of it, each of which must be there exactly once, and says how two
// texts differ.
package textedit

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
	"golang.org/x/text/unicode/norm"
)

// Edit replaces one part of a text.
type Edit struct {
	Old string `json:"old" required:"true" minLength:"1" doc:"Text that the file has exactly once" fix:"give the text that is to be replaced"`
	New string `json:"new" required:"true" doc:"New text"`
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

// Apply makes the edits one after the other. *Mismatch if one does not fit; then nothing was changed. What is put into
// a text whose lines all end with CR and LF gets these ends.
//
// show is for a caller who was shown a text without some of its characters: a part that is there once in what show
// leaves of the text fits, too, and what was taken out within it goes. show may only take characters out; nil for a
// text that was shown as it is.
func Apply(text string, edits []Edit, show func(string) string) (string, error) {
	for i, e := range edits {
		if OnlyCRLF(text) && !strings.Contains(e.New, "\r\n") {
			e.New = strings.ReplaceAll(e.New, "\n", "\r\n")
		}
		switch n := countOverlapping(text, e.Old); {
		case e.Old == "":
			return "", &Mismatch{Index: i, Why: "`old` is empty; give the text that is to be replaced"}
		case n == 1:
			text = strings.Replace(text, e.Old, e.New, 1)
		case n > 1:
			lines := occurrences(text, e.Old)
			return "", &Mismatch{Index: i, Lines: lines, Why: fmt.Sprintf(
				"`old` is there %d times, in %s; give more of the text around it, so that it is there once", n, inLines(lines))}
		default:
			from, to, found := shownPlace(text, e.Old, show)
			if !found {
				return "", missingText(text, e.Old, i)
			}
			text = text[:from] + e.New + text[to:]
		}
	}
	return text, nil
}

// OnlyCRLF reports whether a text has lines, and all of them end with CR and LF.
func OnlyCRLF(text string) bool {
	n := strings.Count(text, "\r\n")
	return n > 0 && n == strings.Count(text, "\n")
}

// shownPlace is where a part stands in a text that is there once in what show leaves of the text.
func shownPlace(text, part string, show func(string) string) (from, to int, found bool) {
	if show == nil {
		return 0, 0, false
	}
	shown := show(text)
	if shown == text || countOverlapping(shown, part) != 1 {
		return 0, 0, false
	}
	begin := strings.Index(shown, part)
	end, at := begin+len(part), 0 // at is the place in shown
	from, to = -1, -1
	for i, r := range text {
		if at == end {
			to = i
			break
		}
		size := utf8.RuneLen(r)
		if at < len(shown) && size > 0 && strings.HasPrefix(shown[at:], text[i:i+size]) {
			if at == begin {
				from = i
			}
			at += size
		}
	}
	if to < 0 && at == end {
		to = len(text)
	}
	return from, to, from >= 0 && to >= from
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
		case e.New != "" && (len(strings.TrimSpace(e.New)) < leastMade || countOverlapping(text, e.New) != 1):
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

// countOverlapping returns how often a part occurs, overlapping places included; at most maxCount.
func countOverlapping(text, part string) int {
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

func missingText(text, old string, index int) *Mismatch {
	m := &Mismatch{Index: index}
	if strings.Contains(text, "\r\n") && strings.Contains(strings.ReplaceAll(text, "\r\n", "\n"), old) {
		m.Lines = occurrences(strings.ReplaceAll(text, "\r\n", "\n"), old)
		m.Why = fmt.Sprintf("`old` is in %s but for the ends of lines: the file has \\r\\n", inLines(m.Lines))
		return m
	}
	if lines, why := differing(text, old); len(lines) > 0 {
		m.Lines, m.Why = lines, "`old` is in "+inLines(lines)+" but for "+why
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
	for _, e := range LineEdits(before, after) {
		c.Removed += countLines(before[e.Start:e.End])
		c.Added += countLines(e.New)
	}
	return c
}

func countLines(text string) int {
	lines := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		lines++
	}
	return lines
}

// Unified gives the difference between two texts for people, with lines around each change.
func Unified(oldName, newName, before, after string) string {
	diff, err := udiff.ToUnified(oldName, newName, before, LineEdits(before, after), udiff.DefaultContextLines)
	if err != nil { // the edits are those of this very text
		return ""
	}
	return diff
}

// Merge makes the changes that lead from base to ours and those that lead from base to theirs in one text, line by
// line. ok is false if both change the same lines, or lines that touch, in different ways.
func Merge(base, ours, theirs string) (merged string, ok bool) {
	left, right := LineEdits(base, ours), LineEdits(base, theirs)
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

// LineEdits returns the changes between two texts as whole lines, in their order. Those that touch are one.
//
// The library stops looking at 100 changed lines, and then calls all lines between changed. So lines that stand once in
// both texts, in the same order, part them first, and it compares what is between.
func LineEdits(before, after string) (out []udiff.Edit) {
	olds, news := splitLines(before), splitLines(after)
	at, i, j := 0, 0, 0 // at is the offset of line i
	for _, anchor := range append(anchors(olds, news), [2]int{len(olds), len(news)}) {
		was, is := strings.Join(olds[i:anchor[0]], ""), strings.Join(news[j:anchor[1]], "")
		for _, e := range udiff.Lines(was, is) {
			e.Start, e.End = e.Start+at, e.End+at
			if n := len(out); n > 0 && out[n-1].End == e.Start {
				out[n-1].End, out[n-1].New = e.End, out[n-1].New+e.New
				continue
			}
			out = append(out, e)
		}
		i, j = anchor[0], anchor[1]
		at += len(was)
	}
	return out
}

// splitLines gives the lines of a text with their ends.
func splitLines(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	}
	return lines
}

// anchors gives the longest row of lines that stand once in each of two texts, and in both in the same order, as their
// indexes.
func anchors(olds, news []string) (row [][2]int) {
	pairs := onceInBoth(olds, news)
	var ends []int                      // the index of the pair that ends the best row of each length
	previous := make([]int, len(pairs)) // the pair before each in its best row; -1 for none
	for i, pair := range pairs {
		length, _ := slices.BinarySearchFunc(ends, pair[1], func(end, j int) int { return pairs[end][1] - j })
		previous[i] = -1
		if length > 0 {
			previous[i] = ends[length-1]
		}
		if length == len(ends) {
			ends = append(ends, i)
		}
		ends[length] = i
	}
	if len(ends) == 0 {
		return nil
	}
	for at := ends[len(ends)-1]; at >= 0; at = previous[at] {
		row = append(row, pairs[at])
	}
	slices.Reverse(row)
	return row
}

// onceInBoth gives the indexes of the lines that stand once in each of two texts, in the order of the first.
func onceInBoth(olds, news []string) (pairs [][2]int) {
	oldPlaces, newPlaces := onlyPlaces(olds), onlyPlaces(news)
	for i, line := range olds {
		if oldPlaces[line] != i {
			continue
		}
		if j, found := newPlaces[line]; found && j >= 0 {
			pairs = append(pairs, [2]int{i, j})
		}
	}
	return pairs
}

// onlyPlaces gives the index of each line; -1 of one that is there more than once.
func onlyPlaces(lines []string) map[string]int {
	places := make(map[string]int, len(lines))
	for i, line := range lines {
		if _, found := places[line]; found {
			i = -1
		}
		places[line] = i
	}
	return places
}

// folding makes texts alike that differ in one kind of characters.
type folding struct {
	what string // for messages
	is   func(r rune) bool
	fold func(text string) string
}

// mapped is the folding of characters that look like one of ASCII.
func mapped(what, like string, to rune) folding {
	is := func(r rune) bool { return r == to || strings.ContainsRune(like, r) }
	return folding{what, is, func(text string) string {
		return strings.Map(func(r rune) rune {
			if is(r) {
				return to
			}
			return r
		}, text)
	}}
}

// foldings are the kinds of characters in which what a model writes differs from what a file has.
func foldings() []folding {
	ends := regexp.MustCompile(`[ \t\x{00a0}]+(\r?\n|$)`)
	gaps := regexp.MustCompile(`[ \t]+`)
	return []folding{
		{"the way in which accents are written (NFC or NFD)", func(r rune) bool { return unicode.Is(unicode.Mn, r) },
			norm.NFC.String},
		mapped("the kind of space", "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"+
			"\u202f\u205f\u3000", ' '),
		mapped("the kind of dash", "\u00ad\u2010\u2011\u2012\u2013\u2014\u2015\u2212", '-'),
		mapped("the kind of quotation mark", "\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033", '"'),
		mapped("the kind of apostrophe", "\u2018\u2019\u201a\u201b\u2032\u00b4`", '\''),
		{"spaces at the ends of lines", nil, func(text string) string { return ends.ReplaceAllString(text, "$1") }},
		{"tabs and the number of spaces", func(r rune) bool { return r == '\t' },
			func(text string) string { return gaps.ReplaceAllString(text, " ") }},
	}
}

// differing are the lines in which a part stands but for some characters, and which those are.
func differing(text, old string) (lines []int, why string) {
	all := foldings()
	everything := func(text string, but int) string {
		for i, f := range all {
			if i != but {
				text = f.fold(text)
			}
		}
		return text
	}
	folded, part := everything(text, -1), everything(old, -1)
	if strings.TrimSpace(part) == "" || !strings.Contains(folded, part) {
		return nil, ""
	}
	lines = occurrences(folded, part)
	var whys []string
	for i, f := range all {
		if strings.Contains(everything(text, i), everything(old, i)) {
			continue // it is there without this one
		}
		what := f.what
		if f.is != nil {
			what += describeRunes(f.is, linesFrom(text, lines[0], 1+strings.Count(part, "\n")), old)
		}
		whys = append(whys, what)
	}
	return lines, strings.Join(whys, ", and ")
}

// linesFrom are n lines of a text, from a first one that is counted from 1.
func linesFrom(text string, first, n int) string {
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(lines[min(first-1, len(lines)):min(first-1+n, len(lines))], "")
}

// describeRunes names the characters of a kind in the file and in the part.
func describeRunes(is func(rune) bool, file, old string) string {
	in := func(text string) string {
		var out []string
		for _, r := range text {
			if name := fmt.Sprintf("%U", r); is(r) && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
		if len(out) == 0 {
			return "none"
		}
		return strings.Join(out[:min(len(out), maxLines)], " ")
	}
	return fmt.Sprintf(" (the file has %s, `old` %s)", in(file), in(old))
}
