package facts

import (
	"strings"
	"sync"
)

// mostOfTitle is the number of words from which on a text is a sentence and no title.
const mostOfTitle = 6

// titleEnd returns where the title at the beginning of a unit ends in its first line: the whole line of a heading, or
// the bold words before a colon or dash; 0 if there is none. A title says what stands below it, as "Delete a snapshot"
// does, and orders nothing. One that leaves no choice, forbids, names a place or ends with an exclamation is read like
// any sentence, and so is a numbered step that has nothing else.
func (u unit) titleEnd(line string) int {
	switch {
	case u.heading && isTitle(line):
		return len(line)
	case !strings.HasPrefix(line, "**"):
		return 0
	}
	label, rest, ok := strings.Cut(line[2:], "**")
	if !ok || !isTitle(label) {
		return 0
	}
	rest = strings.TrimLeft(rest, " ")
	if rest == "" && u.step && len(u.lines) == 1 {
		return 0
	}
	if strings.HasSuffix(label, ":") || rest == "" && !strings.HasSuffix(label, ".") { // with a stop, it is a sentence
		return len(label) + 2
	}
	for _, mark := range []string{":", "- ", "\u2013", "\u2014"} {
		if strings.HasPrefix(rest, mark) {
			return len(label) + 2
		}
	}
	return 0
}

// isTitle says whether a text is short, and has nothing that an order needs.
func isTitle(text string) bool {
	if strings.ContainsAny(text, "`/@!=<") {
		return false
	}
	words := 0
	for word := range strings.FieldsSeq(text) {
		words++
		switch strings.ToLower(strings.Trim(word, ".,:;()\"'*_")) {
		case "all", "every", "everything", "any", "always", "not", "never", "don't", "no", "without", "previous", "above",
			"your", "you", "user", "users", "anyone", "everyone":
			return false
		}
		if words > mostOfTitle || strings.IndexByte(strings.TrimRight(word, ".,:;"), '.') >= 0 {
			return false
		}
	}
	return words > 0
}

// forbidLists marks the lists that stand under a title which forbids what they say, and the steps that are whole.
func forbidLists(units []unit) []unit {
	forbids, below := false, false // below: of the heading, which a sentence that leads to the list may follow
	for i := range units {
		u := &units[i]
		if i+1 < len(units) && (units[i+1].item == u.item || units[i+1].depth > u.depth) {
			u.step = false
		}
		switch {
		case u.listed:
			u.forbidden = forbids
		case !u.prose:
			forbids = false
		default:
			text := strings.TrimRight(u.lines[len(u.lines)-1].text, " *_")
			leads := strings.HasSuffix(text, ":")
			forbids = (u.heading || leads) && forbidsList(text) || leads && below && !u.heading && !asksToAct(text)
			below = u.heading && forbids
		}
	}
	return units
}

// forbidsList says whether a title forbids what stands below it, or says that it is wrong.
func forbidsList(title string) bool {
	const longest = 60
	if len(title) > longest {
		return false
	}
	title = strings.ToLower(strings.Trim(title, "*_: #"))
	switch title {
	case "never", "don't", "dont", "don'ts", "do not", "must not", "you must not", "avoid", "avoid these", "never do",
		"never do this", "do not do this", "don't do this", "what not to do", "what to avoid", "things to avoid",
		"never do the following", "do not do the following", "avoid the following", "mistakes", "pitfalls", "bad", "wrong",
		"bad practices", "rationalizations", "excuses", "not allowed", "forbidden", "prohibited":
		return true
	}
	for _, begin := range []string{"red flags", "anti-patterns", "antipatterns", "common mistakes", "common pitfalls",
		"common rationalizations", "rationalizations to"} {
		if strings.HasPrefix(title, begin) {
			return !asksToAct(title)
		}
	}
	return false
}

// asksToAct says whether a title, or what leads to a list, says what is to be done: "Red flags and how to respond".
func asksToAct(text string) bool {
	text = withoutOrdersNotTo().Replace(strings.ToLower(text))
	for word := range strings.FieldsSeq(text) {
		switch strings.Trim(word, ".,:;()\"'*_") {
		case "do", "how", "instead", "then", "follow", "must", "should", "always", "run", "now", "step", "steps", "action",
			"actions", "fix", "fixes", "respond", "response", "responses", "correct", "resolve", "remedy", "remedies",
			"solution", "solutions":
			return true
		}
	}
	return false
}

// withoutOrdersNotTo takes the words away that forbid.
var withoutOrdersNotTo = sync.OnceValue(func() *strings.Replacer { //nolint:gochecknoglobals // made once, never changed
	return strings.NewReplacer("do not do", "", "do not", "", "don't do", "", "never do", "", "must not", "",
		"should not", "")
})
