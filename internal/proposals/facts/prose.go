package facts

// step is a word that a rule asks for.
type step struct {
	any    meaning // the senses, one of which the word has
	forms  []form  // or the forms
	within int     // at most so many words behind the one before
}

// sentenceRule is a fact that the words of a sentence show: a verb and its object.
type sentenceRule struct {
	class Class
	says  string
	steps []step
	order bool // the first word is a verb that stands as an order, and nothing before it says not to
}

// sentenceRules lists the rules. They know senses, and no language.
func sentenceRules() []sentenceRule {
	toAddress := []form{urlWord, mailWord, hostWord}
	return []sentenceRule{
		{Destroy, "Deletes data", []step{{any: erase}, {any: data, forms: []form{pathWord}, within: 5}}, true},
		{Outbound, "Sends data out", []step{{any: send}, {forms: toAddress, within: 16}}, true},
		{Outbound, "Sends data out", []step{{any: send}, {any: data, within: 6}, {any: remote, within: 8}}, true},
		{Credential, "Collects secrets", []step{{any: collect | send | insert}, {any: secret, within: 5}}, true},
		{Override, "Tells the model to drop its instructions",
			[]step{{any: ignore}, {any: prior, within: 4}, {any: instruction, within: 4}}, true},
		{Conceal, "Asks to keep something from people",
			[]step{{any: not}, {any: tell | hide, within: 2}, {any: person | answer, within: 8}}, false},
		{Conceal, "Asks to keep something from people",
			[]step{{any: without}, {any: tell, within: 2}, {any: person | this, within: 4}}, false},
		{Conceal, "Asks to do something unseen", []step{{any: secretly}, {any: erase | send | collect | run | insert, within: 2}}, false},
		{Weakens, "Skips a safeguard", []step{{any: skip}, {any: safeguard, within: 4}}, true},
		{Weakens, "Skips a safeguard", []step{{any: without}, {any: ask | safeguard, within: 3}}, false},
		{Rights, "Switches security off", []step{{any: skip | stop}, {any: security, within: 4}}, true},
		{DownloadRun, "Installs a program", []step{{any: install}, {any: program, forms: []form{urlWord}, within: 5}}, true},
	}
}

// readSentences gives the facts of the sentences of a unit.
func readSentences(u unit, plain []string) (found []hit, code []span) {
	all, code := sentences(plain)
	rules := sentenceRules()
	for _, s := range all {
		for i := range s {
			if s[i].meaning == 0 {
				continue
			}
			for _, rule := range rules {
				if s[i].has(rule.steps[0].any) {
					if last, ok := rule.match(s, i); ok {
						found = append(found, hit{class: rule.class, says: rule.says, where: u.where,
							line: u.lines[s[i].line].number, last: u.lines[s[last].line].number, words: s.text(plain, i, last)})
					}
				}
			}
		}
	}
	return found, code
}

// match says whether a rule holds for a sentence from one of its words on, and which word is the last.
func (r sentenceRule) match(s sentence, first int) (last int, ok bool) {
	if r.order && !s.isOrder(first) {
		return 0, false
	}
	last = first
	for _, step := range r.steps[1:] {
		next := last + 1
		for next < len(s) && next <= last+step.within && !step.holds(s[next]) {
			next++
		}
		if next >= len(s) || next > last+step.within {
			return 0, false
		}
		last = next
	}
	return last, true
}

func (t step) holds(w word) bool {
	if w.has(t.any) {
		return true
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
	if s[at].has(inflected) || s[at].code {
		return false
	}
	before := at - 1
	if before >= 0 && !s[at].clause && isAdverb(s[before].text) {
		before--
	}
	if before >= 0 && !s[before+1].clause && !s[before].has(lead) {
		return false
	}
	return !s.negated(at)
}

// negated says whether a "not" stands shortly before a word.
func (s sentence) negated(at int) bool {
	const near = 4
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

// text gives the words of a sentence from first on, as they stand in the lines: as far as the last one, and on to the
// sentence's end if there is room.
func (s sentence) text(plain []string, first, last int) string {
	out := ""
	for i := first; i < len(s); {
		end := i
		for end+1 < len(s) && s[end+1].line == s[i].line {
			end++
		}
		if out != "" {
			out += " "
		}
		out += plain[s[i].line][s[i].start:s[end].end]
		if i = end + 1; i > last && len(out) > MaxWords {
			break
		}
	}
	return out
}
