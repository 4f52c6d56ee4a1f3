package facts

import (
	"github.com/claudeops/claudeops/internal/base/textscan"
	"strconv"
	"strings"
	"sync"
)

// guard is a set of kinds of safeguards.
type guard uint8

// The kinds.
const (
	guardAsk     guard = 1 << iota // a person is asked or confirms
	guardBackup                    // a copy is made first
	guardForbid                    // something must not be done
	guardLimit                     // at most so much
	guardWarning                   // a warning
	guardDryRun                    // it is tried first
	guardCheck                     // something is verified
	guardKinds   = 7
)

func (g guard) words() string {
	switch g {
	case guardAsk:
		return "Removes that somebody is asked"
	case guardBackup:
		return "Removes a backup step"
	case guardForbid:
		return "Removes a prohibition"
	case guardLimit:
		return "Removes a limit"
	case guardWarning:
		return "Removes a warning"
	case guardDryRun:
		return "Removes a dry run"
	}
	return "Removes a check"
}

// guardWords are the words by which a safeguard is known.
var guardWords = sync.OnceValue(func() *wordings[guard] { //nolint:gochecknoglobals // made once, never changed
	w := &wordings[guard]{}
	w.add(guardAsk,
		"confirm with|ask the|ask a|ask your|ask someone|is approved|are approved|been approved|"+
			"be approved|approved by|until approved|approvals|ask for|ask first|ask before|approval|"+
			"approve|sign-off|permission from|confirmation|second pair|peer review|reviewed by|wait for")
	w.add(guardBackup, "back up|backup|backups|take a snapshot|snapshot first|make a copy|save a copy")
	w.add(guardForbid, "do not|don't|never|must not")
	w.add(guardLimit, "at most|no more than|limit to|not exceed|only if|unless |maximum of|rate limit|--limit")
	w.add(guardWarning, "warning|warnings|caution|danger|careful|irreversible|data loss|[!important]")
	w.add(guardDryRun, "dry-run|dry run|--dry-run|--check|--diff|simulate")
	w.add(guardCheck, "set -e|verify that|make sure|ensure that|check that|check whether|pipefail|--verify|assert")
	return w
})

// guardsOf gives the kinds of safeguards that a line names.
func guardsOf(line string) guard {
	var found guard
	guardWords().find(textscan.Undisguise(line), func(g guard) { found |= g })
	return found
}

// block is the lines that a change removes and adds at one place.
type block struct{ removed, added []int }

// blocksOf gives the places at which lines were removed or added, by the number of lines before that were kept.
func blocksOf(removed, added []bool) []block {
	var all []block
	for i, j := 0, 0; i < len(removed) || j < len(added); i, j = i+1, j+1 {
		var b block
		for ; i < len(removed) && removed[i]; i++ {
			b.removed = append(b.removed, i)
		}
		for ; j < len(added) && added[j]; j++ {
			b.added = append(b.added, j)
		}
		if len(b.removed)+len(b.added) > 0 {
			all = append(all, b)
		}
	}
	return all
}

// weakened gives the safeguards that a change removes and puts nowhere else, and the bounds that it widens.
func weakened(path string, before, after []string, removed, added []bool) []Fact {
	if firstChanged(removed, 0, len(removed)-1) < 0 {
		return nil
	}
	blocks := blocksOf(removed, added)
	moved := newRunsOfWords(after, added)
	lost := lostGuards(before, after, removed, added)
	var facts []Fact
	for _, b := range blocks {
		facts = append(facts, widenedBounds(path, b, before, after)...)
		var kept guard
		for _, i := range b.added {
			kept |= guardsOf(after[i])
		}
		for _, i := range b.removed {
			gone := guardsOf(before[i]) &^ kept
			if gone != 0 && moved.have(before[i]) {
				continue // it stands elsewhere, or its lines break elsewhere
			}
			if len(b.added) > 0 {
				gone &^= guardCheck // which rewording often loses
			}
			if !forbidsAtStart(before[i], b.added, after) {
				gone &^= guardForbid
			}
			for bit := range guardKinds {
				kind := guard(1) << bit
				if gone&kind == 0 || lost[bit] <= 0 {
					continue
				}
				lost[bit]--
				facts = append(facts, fact(Weakens, path, i, true, kind.words(), before[i]))
				break
			}
		}
	}
	if len(after) == 0 && len(facts) > 1 {
		facts = facts[:1] // of a file that is deleted, which a reviewer sees anyhow
	}
	return facts
}

// runsOfWords are all runs of some words in added lines, which a text goes through whatever its lines.
type runsOfWords map[[wordsOfRun]string]bool

const wordsOfRun = 4

func newRunsOfWords(lines []string, added []bool) runsOfWords {
	runs := runsOfWords{}
	var last [wordsOfRun]string
	for i, line := range lines {
		if !added[i] {
			last = [wordsOfRun]string{}
			continue
		}
		for word := range strings.FieldsSeq(strings.ToLower(line)) {
			copy(last[:], last[1:])
			last[wordsOfRun-1] = word
			runs[last] = true
		}
	}
	return runs
}

// have says whether all runs of a line's words are there. Of a line with fewer words, none is.
func (r runsOfWords) have(line string) bool {
	words := strings.Fields(strings.ToLower(line))
	for i := range len(words) - wordsOfRun + 1 {
		if !r[[wordsOfRun]string(words[i:i+wordsOfRun])] {
			return false
		}
	}
	return len(words) >= wordsOfRun
}

// forbidsAtStart says whether a line begins with a prohibition, and no other text took its place but the same without
// the prohibition.
func forbidsAtStart(line string, added []int, after []string) bool {
	const compared = 8
	text := bareText(line)
	for _, order := range []string{"do not ", "don't ", "never ", "you must not ", "important: ", "critical: "} {
		rest, ok := strings.CutPrefix(text, order)
		if !ok {
			continue
		}
		for _, i := range added {
			if strings.HasPrefix(bareText(after[i]), rest[:min(len(rest), compared)]) {
				return true
			}
		}
		return len(added) == 0
	}
	return false
}

// bareText gives a line in lower case without the marks of lists and emphasis before it.
func bareText(line string) string {
	return strings.ToLower(strings.TrimLeft(line, " \t>*-_0123456789.)#[]!"))
}

// lostGuards counts, for each kind, how many more lines with such a safeguard were removed than added.
func lostGuards(before, after []string, removed, added []bool) (lost [guardKinds]int) {
	count := func(line string, step int) {
		g := guardsOf(line)
		for bit := range guardKinds {
			if g&(1<<bit) != 0 {
				lost[bit] += step
			}
		}
	}
	for i, line := range before {
		if removed[i] {
			count(line, 1)
		}
	}
	for i, line := range after {
		if added[i] {
			count(line, -1)
		}
	}
	return lost
}

// fact makes a fact of a line, which counts from 0.
func fact(class Class, path string, line int, removed bool, says, words string) Fact {
	words = oneLine(words)
	return Fact{Class: class, Path: path, Line: line + 1, Removed: removed, Where: Prose, Words: words, Sentence: says +
		": " + words}
}

// widenedBounds gives the lines of which only a number has changed, to ten times as much or as little.
func widenedBounds(path string, b block, before, after []string) []Fact {
	if len(b.removed) != len(b.added) {
		return nil
	}
	var facts []Fact
	for i := range b.removed {
		old, now := before[b.removed[i]], after[b.added[i]]
		if isBound(old) && widened(old, now) {
			facts = append(facts, fact(Weakens, path, b.added[i], false, "Changes a bound tenfold", now))
		}
	}
	return facts
}

// isBound says whether a line is about a bound.
func isBound(line string) bool {
	lower := strings.ToLower(line)
	for _, word := range []string{"limit", "threshold", "max", "timeout", "retries", "at most", "more than", "less than",
		"percent", "%", "budget",
		"above", "below", "exceed", " > ", " < ", ">=", "<="} {
		if strings.Contains(lower, word) {
			return true
		}
	}
	return false
}

// widened says whether two lines differ in numbers alone, one of which is ten times the other.
func widened(old, now string) bool {
	oldText, oldNumbers := cutNumbers(old)
	newText, newNumbers := cutNumbers(now)
	if oldText != newText || len(oldNumbers) != len(newNumbers) {
		return false
	}
	for i, number := range oldNumbers {
		if other := newNumbers[i]; number != other && (number*10 <= other || other*10 <= number) {
			return true
		}
	}
	return false
}

// cutNumbers gives a line without its numbers, and these.
func cutNumbers(line string) (text string, numbers []float64) {
	var b strings.Builder
	for at := 0; at < len(line); {
		end := at
		for end < len(line) && (line[end] >= '0' && line[end] <= '9' || line[end] == '.' && end > at) {
			end++
		}
		if end == at {
			b.WriteByte(line[at])
			at++
			continue
		}
		number, _ := strconv.ParseFloat(strings.TrimRight(line[at:end], "."), 64)
		numbers = append(numbers, number)
		b.WriteByte('0')
		at = end
	}
	return b.String(), numbers
}
