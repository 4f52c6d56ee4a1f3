package facts

import "strings"

// readSentences adds the facts of the sentences of a unit, and gives the inline code in it.
func readSentences(found []hit, u unit, plain []string) (all []hit, code []span) {
	x, title := ruleIndex(), 0
	if u.prose && len(plain) > 0 {
		title = u.titleEnd(plain[0])
	}
	code = readWords(plain, !u.prose, u.words, func(s sentence) {
		add := func(class Class, says string, from, first, last int) {
			found = append(found, hit{class, says, u.where, u.lines[s[first].line].number, u.lines[s[last].line].number,
				s.text(plain, from, last)})
		}
		senses := s.senses()
		for i := range s {
			if !x.mayBegin(&s[i]) {
				continue
			}
			if s[i].line == 0 && int(s[i].start) < title {
				x.readHiding(s, i, add)
				continue
			}
			x.read(s, senses, i, u.forbidden, add)
		}
		if at := s.answersYes(senses); at >= 0 && !u.forbidden {
			add(Weakens, "Answers yes to whatever a program asks", at, at, len(s)-1)
		}
	})
	return found, code
}

func (p *phrase) match(s sentence, at int) bool {
	if at+len(p.words) > len(s) {
		return false
	}
	for i, text := range p.words {
		if s[at+i].text != text {
			return false
		}
	}
	if p.after != 0 && !s.asksFor(p.after, at) {
		return false
	}
	return !s.negated(at) || p.class == Conceal || p.class == Weakens
}

// asksFor says whether an order with a sense stands before a word of a sentence, or an order to see to something.
func (s sentence) asksFor(m meaning, at int) bool {
	const near = 16
	for i := at - 1; i >= max(0, at-near); i-- {
		if s[i].has(m) && s.isOrder(i) || s[i].text == "that" && i > 0 && isSure(s[i-1].text) {
			return true
		}
	}
	return false
}

// match says whether a rule holds for a sentence from one of its words on, and which words are the first and the last.
func (r *sentenceRule) match(s sentence, at int, order *orderOnce) (first, last int, ok bool) {
	switch r.mood {
	case passive:
		return r.matchPassive(s, at, should)
	case permitted:
		return r.matchPassive(s, at, should|may)
	}
	if !r.begins(s, at, order) {
		return 0, 0, false
	}
	last = at
	for i := 1; i < len(r.steps); i++ {
		step := &r.steps[i]
		next, end := last+1, min(last+step.within, len(s)-1)
		for ; next <= end; next++ {
			w := &s[next]
			if w.clause == fullBreak || w.clause == lightBreak && step.tight {
				return 0, 0, false
			}
			if step.holds(w) {
				break
			}
			if r.steps[0].any == not && w.has(without) {
				return 0, 0, false // "never apply it without approval" asks for the approval
			}
		}
		if next > end {
			return 0, 0, false
		}
		last = next
	}
	return at, last, r.ends(s, at, last)
}

// begins says whether the first word of a rule stands as its mood asks.
func (r *sentenceRule) begins(s sentence, at int, order *orderOnce) bool {
	switch r.mood {
	case ordered, away, using, loading:
		return order.isOrder(s, at)
	case bold:
		return order.isOrder(s, at) && !s.harmlessObject(at)
	case asserted, above:
		return !s.negated(at)
	case doing:
		return s.partOfOrder(at)
	case opening:
		return s[at].clause != noBreak
	}
	return true
}

// orderOnce looks once whether a word is an order, which many rules ask of the same word.
type orderOnce struct{ known, order bool }

func (o *orderOnce) isOrder(s sentence, at int) bool {
	if !o.known {
		o.known, o.order = true, s.isOrder(at)
	}
	return o.order
}

// ends says whether the words from the first to the last of a rule are what its mood asks for.
func (r *sentenceRule) ends(s sentence, first, last int) bool {
	switch r.mood {
	case plainForm:
		return !s[last].inflected
	case above:
		return !s.saysNot(first, last) && !s.onlyReplaces(last)
	case asking:
		return !s.asksForThing(last)
	case away:
		return !s.staysNear(last + 1)
	case using:
		return !s.saysWhatItIsFor(first, last)
	case loading:
		return !s.countsUp(first, last)
	case doing:
		return !s.isKindOfThing(last)
	}
	return true
}

// answersYes returns the word from which on a sentence tells to give programs that ask an option by which they do not:
// "use `-y` on commands that prompt for confirmation"; -1 if it does not.
func (s sentence) answersYes(senses sentenceSenses) int {
	if senses.all&(perform|insert) == 0 || senses.all&(ask|safeguard) == 0 {
		return -1
	}
	for i := 1; i < len(s); i++ {
		if !s[i].code || s[i-1].code || i+1 < len(s) && s[i+1].code {
			continue
		}
		switch s[i].text {
		case "-y", "--yes", "--assume-yes", "--non-interactive", "--no-input", "--force", "-f", "yes":
			if s[i-1].has(perform|insert) && s.isOrder(i-1) && s[i+1:].asksSomebody() {
				return i - 1
			}
		}
	}
	return -1
}

// asksSomebody says whether one of the words is about a question or a confirmation.
func (s sentence) asksSomebody() bool {
	for i := range s {
		if s[i].has(ask | safeguard) {
			return true
		}
	}
	return false
}

// saysWhatItIsFor says whether a text says when it is to be read: "use this skill when somebody asks".
func (s sentence) saysWhatItIsFor(first, last int) bool {
	if s[first].text != "use" || last != first+2 || s[first+1].text != "this" {
		return false
	}
	switch s[last].text {
	case "skill", "agent", "tool", "command", "plugin":
		return true
	}
	return false
}

// countsUp says whether the number of a version is changed, rather than what has it: "update the deployed version".
func (s sentence) countsUp(first, last int) bool {
	if s[first].text != "update" || s[last].text != "version" && s[last].text != "release" && s[last].text != "build" {
		return false
	}
	for i := first + 1; i < last; i++ {
		if s[i].has(toward) {
			return false
		}
	}
	return true
}

// isKindOfThing says whether a safeguard is only the kind of the thing behind it, as in "test code".
func (s sentence) isKindOfThing(at int) bool {
	if at+1 >= len(s) || s[at+1].clause != noBreak {
		return false
	}
	switch s[at+1].text {
	case "code", "data", "file", "files", "fixtures", "fixture", "names", "name", "ids":
		return s[at].text == "test" || s[at].text == "tests" || s[at].text == "testing"
	}
	return false
}

// saysNot says whether a "not" stands between two words.
func (s sentence) saysNot(first, last int) bool {
	for i := first + 1; i < last; i++ {
		if s[i].has(not) {
			return true
		}
	}
	return false
}

// onlyReplaces says whether a word of rank is one that texts have for other things: "this runbook was replaced by".
func (s sentence) onlyReplaces(at int) bool {
	switch s[at].text {
	case "remove", "removes", "removed", "removing", "replaced", "replacing":
		return true
	}
	return false
}

// asksForThing says whether somebody is asked for a thing, or to do one, rather than whether it may be done. at is who
// is asked.
func (s sentence) asksForThing(at int) bool {
	const near = 4
	if at+1 >= len(s) || s[at+1].text != "for" && s[at+1].text != "to" {
		return false
	}
	for i := at + 2; i < len(s) && i <= at+1+near; i++ {
		if s[i].has(safeguard | ask) {
			return false
		}
	}
	return true
}

// staysNear says whether the words from one on are about a message between agents: "send it back to the implementer".
func (s sentence) staysNear(at int) bool {
	const near = 4
	if at < len(s) && (s[at].text == "as" || s[at].text == "the" || s[at].text == "through") {
		return true
	}
	for i := at; i < len(s) && i < at+near && s[i].clause != fullBreak; i++ {
		switch s[i].text {
		case "back", "implementer", "reviewer", "subagent", "subagents", "teammate", "orchestrator", "coordinator":
			return true
		}
	}
	return false
}

// partOfOrder says whether the words around one are an order that is not forbidden: one of the words before it, or the
// first of a clause shortly behind it, is a verb in its base form.
func (s sentence) partOfOrder(at int) bool {
	const before, behind = 10, 6
	acts := erase | send | weakSend | collect | perform | install | insert | grant | goOn | plan | keeps | trusts | stop |
		overrules | answer
	for i := at - 1; i >= max(0, at-before); i-- {
		if s[i].has(not) {
			return false
		}
		if s[i].has(acts) && s.isOrder(i) {
			return true
		}
	}
	for i := at + 1; i <= min(len(s)-1, at+behind); i++ {
		if s[i].clause != noBreak && s[i].has(acts) && !s[i].inflected {
			return true
		}
	}
	return false
}

// harmlessObject says whether one of the next words is what is deleted without loss, such as a pod or a space, or
// whether too few follow: then it is a title.
func (s sentence) harmlessObject(at int) bool {
	const near = 5
	words := 0
	for i := at + 1; i < len(s) && i <= at+near && s[i].clause == noBreak; i++ {
		words++
		if s[i].code {
			return true
		}
		switch s[i].text {
		case "pod", "pods", "job", "jobs", "line", "lines", "space", "spaces", "whitespace", "comment", "comments", "cache",
			"caches", "temporary",
			"temp", "tmp", "row", "rows", "column", "columns", "cell", "cells", "field", "fields", "slide", "slides", "text",
			"char",
			"characters", "word", "words", "this", "it", "them", "element", "elements", "annotation", "annotations", "label",
			"labels",
			"placeholder", "placeholders", "button", "node", "nodes", "duplicates", "method", "request", "requests",
			"operations",
			"operation", "marker", "markers", "object", "objects", "resource", "resources", "alert", "alerts", "for", "in",
			"from", "and",
			"or", "is", "are", "at", "with", "to", "page", "pages", "shape", "shapes", "option", "flag", "parameter", "key":
			return true
		}
	}
	return words < 3
}

// matchPassive matches "the files should be deleted": at is the participle, and the object stands before it.
func (r *sentenceRule) matchPassive(s sentence, at int, verbs meaning) (first, last int, ok bool) {
	if at < 3 || !s[at].inflected || !s[at-1].has(be) || !s[at-2].has(verbs) || s.negated(at) {
		return 0, 0, false
	}
	object := &r.steps[1]
	for i := at - 3; i >= max(0, at-object.within); i-- {
		if object.holds(&s[i]) {
			return i, at, true
		}
	}
	return 0, 0, false
}

func (t *step) holds(w *word) bool {
	if w.has(t.any) {
		return true
	}
	if w.form == plainWord {
		return false
	}
	for _, f := range t.forms {
		if w.form == f {
			return true
		}
	}
	return false
}

// isOrder says whether a word is a verb that tells the reader to do something: in its base form, at the start of a
// clause or behind a word such as "then" or "must", and without a "not".
func (s sentence) isOrder(at int) bool {
	before := at - 1
	gerund := before >= 0 && s[before].text == "by"
	if s[at].inflected != gerund || s[at].code || s.isSubject(at) || s[at].text == "do" && at+1 < len(s) &&
		s[at+1].has(not) {
		return false
	}
	if before >= 0 && s[at].clause == noBreak && isAdverb(s[before].text) {
		before--
	}
	if before >= 0 && s[before+1].clause == noBreak && !s.leadsTo(before) {
		return false
	}
	return !s.negated(at)
}

// isSubject says whether a word is a noun of which the next one says something: "Wipe doesn't happen on all exits".
func (s sentence) isSubject(at int) bool {
	if at+1 >= len(s) || s[at+1].clause != noBreak {
		return false
	}
	switch s[at+1].text {
	case "is", "was", "were", "isn't", "wasn't", "does", "doesn't", "did", "didn't", "won't", "has", "had":
		return true
	}
	return false
}

// leadsTo says whether an order may stand behind a word. Behind "to" it does only if somebody has to, needs to or is
// sure to do it: else that is a purpose, as in "to delete the file, run".
func (s sentence) leadsTo(at int) bool {
	switch s[at].text {
	case "to":
		if at == 0 {
			return false
		}
	case "that": // "flags that disable a check" says what flags do
		return at > 0 && isSure(s[at-1].text)
	case "can", "will": // "a value can disable a check", but "you can disable it"
		return at == 0 || s[at-1].has(model|your) || isReader(s[at-1].text)
	default:
		return s[at].has(lead | model)
	}
	switch s[at-1].text {
	case "need", "needs", "have", "has", "want", "sure", "remember", "forget", "required", "asked", "instructed", "is",
		"are", "be",
		"going", "try", "proceed", "continue", "ought", "supposed", "expected", "told", "free", "agree", "begin", "start",
		"careful",
		"you", "agent", "assistant", "model", "authorised", "authorized", "and", "or", "not", "always", "never":
		return true
	}
	return false
}

// isSure says whether an order may stand behind a word and "that", as in "make sure that".
func isSure(text string) bool {
	switch text {
	case "sure", "ensure", "so", "require", "requires", "required", "important", "certain", "necessary":
		return true
	}
	return false
}

// isReader says whether a word stands for who reads the text.
func isReader(text string) bool {
	switch text {
	case "you", "we", "i", "claude", "codex", "it", "they":
		return true
	}
	return false
}

// negated says whether a "not" stands shortly before a word.
func (s sentence) negated(at int) bool {
	near := 4
	if at > 1 && s[at-1].text == "or" { // "never force it, go round it, or skip a check"
		near = 16
	}
	for i := at - 1; i >= max(0, at-near); i-- {
		if s[i].has(forget) {
			return false
		}
		if s[i].has(not | without) {
			return true
		}
	}
	return false
}

func isAdverb(text string) bool {
	return len(text) > 4 && text[len(text)-2:] == "ly"
}

// text gives the words of a sentence from first on, as they stand in the lines: as far as the last one, and on as far
// as there is room. Where lines break makes no difference. A link is not cut.
func (s sentence) text(plain []string, first, last int) string {
	out := ""
	for i := first; i < len(s); {
		end := i
		for end+1 < len(s) && s[end+1].line == s[i].line && end-i < MaxWords &&
			(end < last || len(out)+int(s[end].end-s[i].start) <= MaxWords) {
			end++
		}
		if out != "" {
			out += " "
		}
		out += withWholeLinks(plain[s[i].line], int(s[i].start), int(s[end].end))
		if i = end + 1; i > last && len(out) > MaxWords {
			break
		}
	}
	return out
}

// withWholeLinks gives a part of a line, with the whole link where it begins or ends within one.
func withWholeLinks(line string, start, end int) string {
	const longest = 200 // bytes of a link's text; of more, the time would grow with the square of a line
	seam := strings.Index(line[max(0, start-2):end], "](")
	if seam < 0 {
		return line[start:end]
	}
	if seam += max(0, start-2); strings.IndexByte(line[min(start, seam):seam], '[') < 0 {
		from := max(0, start-longest)
		if open := strings.LastIndexByte(line[from:start], '['); open >= 0 {
			start = from + open
		}
	}
	part := line[start:end]
	if end < len(line) && line[end] == ')' && strings.LastIndex(part, "](") > strings.LastIndexByte(part, ')') {
		end++
	}
	return line[start:end]
}
