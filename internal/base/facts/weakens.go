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
	w.add(guardCheck, "set -e|verify that|make sure|ensure that|check that|check whether|pipefail|--verify")
	return w
})

// guardsOf gives the kinds of safeguards that a line names.
func guardsOf(line string) guard {
	var found guard
	plain := textscan.Undisguise(line)
	guardWords().findAt(plain, func(g guard, at int) {
		if found&g == 0 && isGuard(g, plain, at) {
			found |= g
		}
	})
	return found
}

// isGuard says whether a word by which safeguards are known is one in a line: it is about an act, and not the title or
// the name of something.
func isGuard(g guard, line string, at int) bool {
	rest := strings.ToLower(line[at:])
	switch g {
	case guardAsk:
		return asksWhether(strings.ToLower(line[:at]), rest)
	case guardLimit:
		if strings.HasPrefix(rest, "only if") || strings.HasPrefix(rest, "unless") {
			return namesAct(strings.ToLower(line[:at])) || bareText(line[:at]) == "" && namesAct(rest)
		}
	case guardWarning:
		return !strings.HasPrefix(rest, "warning signs") && (!strings.HasPrefix(rest, "warning") ||
			strings.HasPrefix(bareText(line), "warning"))
	}
	return true
}

// asksWhether says whether words make an act wait for somebody: they ask for an approval, and not for a thing, and an
// approval that is named is asked for.
func asksWhether(before, rest string) bool {
	word, object, _ := strings.Cut(rest, " ")
	switch strings.Trim(word, ".,:;*)\"'") {
	case "ask":
		whom, what, asksTo := strings.Cut(object[:min(len(object), 40)], " to ")
		what, _, _ = strings.Cut(what, " ")
		switch strings.Trim(what, ".,:;*)\"'") {
		case "confirm", "approve", "review", "check", "decide", "verify", "agree", "authorise", "authorize", "allow",
			"permit", "sign":
			asksTo = false
		}
		return !asksTo || asksLeave().anyIn(whom)
	case "wait":
		return namesApprover(object)
	case "approval", "confirmation", "approve", "approvals":
		return strings.TrimSpace(object) == "" || asksBefore().anyIn(before) || !isKindOf(object)
	}
	return true
}

// asksLeave are what is asked for where somebody has to agree first.
var asksLeave = sync.OnceValue(func() *parts { //nolint:gochecknoglobals // made once, never changed
	return newParts("permission", "approv", "consent", "confirm", "go-ahead", "sign-off")
})

// isKindOf says whether the words behind "approval" make it the name of something, such as a workflow.
func isKindOf(object string) bool {
	word, _, _ := strings.Cut(object, " ")
	switch strings.Trim(word, ".,:;*)\"'") {
	case "workflow", "workflows", "process", "processes", "page", "email", "emails", "message", "messages", "dialog",
		"flow", "flows", "status", "step", "steps":
		return true
	}
	return false
}

// namesApprover says whether what is waited for is somebody, or what somebody says.
func namesApprover(object string) bool {
	for _, word := range []string{"approv", "confirm", "user", "owner", "human", "reply", "review", "answer", "person",
		"operator", "partner", "customer", "sign-off", "permission", "consent", "go-ahead", "response", "on-call", "engineer",
		"maintainer", "manager", "somebody", "someone", "colleague"} {
		if strings.Contains(object, word) {
			return true
		}
	}
	return false
}

// asksBefore are the words behind which an approval is asked for.
var asksBefore = sync.OnceValue(func() *parts { //nolint:gochecknoglobals // made once, never changed
	return newParts("ask", "wait", "require", "need", "without", "until", "get", "obtain", "after", "before", "seek",
		"request", "explicit", "first")
})

// namesAct says whether a text in lower case names what should not be done without care.
func namesAct(text string) bool { return riskyActs().anyIn(text) }

// riskyActs are the beginnings of verbs that change something.
var riskyActs = sync.OnceValue(func() *parts { //nolint:gochecknoglobals // made once, never changed
	return newParts("delet", "remov", "restart", "reboot", "stop", "kill", "drain", "run", "execut", "appl", "merge",
		"deploy", "scale", "force", "proceed", "continue", "go on", "push", "commit", "send", "share", "publish", "upload",
		"chang", "edit", "modif", "skip", "bypass", "ignor", "log", "print", "expos", "disclos", "reveal", "store", "disabl",
		"touch", "install", "approv", "overwrit", "writ", "access", "open", "purg", "drop", "format", "rotat", "upgrad",
		"downgrad", "roll", "reset", "clean", "wip", "truncat", "evict", "revok", "grant", "post", "destroy", "erase",
		"shred", "terminat", "suspend", "shut", "promot", "migrat", "export", "transfer", "encrypt", "detach")
})

// changedBlock is the lines that a change removes and adds at one place.
type changedBlock struct{ removed, added []int }

// blocksOf gives the places at which lines were removed or added, by the number of lines before that were kept.
func blocksOf(removed, added []bool) []changedBlock {
	var all []changedBlock
	for i, j := 0, 0; i < len(removed) || j < len(added); i, j = i+1, j+1 {
		var b changedBlock
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
		facts = append(facts, softened(path, b, before, after)...)
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
	for _, order := range []string{"do not ", "do not, ", "don't ", "never ", "never, ", "you must not ", "important: ",
		"critical: "} {
		rest, ok := strings.CutPrefix(text, order)
		if !ok {
			continue
		}
		for _, i := range added {
			if strings.HasPrefix(bareText(after[i]), rest[:min(len(rest), compared)]) {
				return true
			}
		}
		return len(added) == 0 && forbidsAct(rest)
	}
	return forbidsList(text) // "Never:", behind which the list stays
}

// forbidsAct says whether one of the first words behind a prohibition is an act, and not a matter of style.
func forbidsAct(rest string) bool {
	const near = 3
	looked := 0
	for word := range strings.FieldsSeq(rest) {
		word = strings.Trim(word, ",*_")
		switch word {
		case "ever", "under", "any", "circumstances", "circumstance", "in", "case", "at", "all", "just", "simply":
			continue // "never, under any circumstances, delete"
		}
		if looked++; looked > near {
			return false
		}
		if riskyActs().begin(word) || believes().begin(word) {
			return true
		}
	}
	return false
}

// believes are the beginnings of verbs by which somebody does as others say.
var believes = sync.OnceValue(func() *parts { //nolint:gochecknoglobals // made once, never changed
	return newParts("trust", "follow", "obey", "believ")
})

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
func widenedBounds(path string, b changedBlock, before, after []string) []Fact {
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

// softened gives the added lines in which a prohibition of a removed one has got an exception: "never delete it", which
// becomes "never delete it without consent".
func softened(path string, b changedBlock, before, after []string) (facts []Fact) {
	for _, i := range b.removed {
		order, rest := prohibition(before[i])
		if order == "" || hasException(rest) || !forbidsAct(rest) {
			continue
		}
		for _, j := range b.added {
			other, now := prohibition(after[j])
			if other == order && hasException(now) && sameBeginning(rest, now) {
				facts = append(facts, fact(Weakens, path, j, false, "Adds an exception to a prohibition", after[j]))
				break
			}
		}
	}
	return facts
}

// prohibition returns the word by which a line forbids something, and what stands behind it, in lower case.
func prohibition(line string) (order, rest string) {
	lower := strings.ToLower(line)
	first := len(lower)
	for _, word := range []string{"never ", "do not ", "don't ", "must not "} {
		if at := strings.Index(lower, word); at >= 0 && at < first && (at == 0 || !isLetter(lower[at-1])) {
			first, order, rest = at, strings.TrimPrefix(word, "must "), lower[at+len(word):]
		}
	}
	return order, rest
}

// hasException says whether something is forbidden only as long as something else is so.
func hasException(rest string) bool {
	for _, word := range []string{"without ", "unless ", "except", "until ", "only with ", "before ", "but only"} {
		if strings.Contains(rest, word) {
			return true
		}
	}
	return false
}

// sameBeginning says whether two prohibitions forbid the same: their first words are alike, as far as an exception.
func sameBeginning(was, now string) bool {
	const compared = 2
	olds, news := strings.Fields(was), strings.Fields(now)
	for i := range compared {
		if i >= len(olds) || i >= len(news) {
			return i > 0
		}
		if strings.Trim(olds[i], ".,;:!*_`") != strings.Trim(news[i], ".,;:!*_`") {
			return i > 0 && (i < len(news) && hasException(news[i]+" "))
		}
	}
	return true
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
