package facts

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// form is what a word looks like.
type form uint8

// The forms.
const (
	plainWord   form = iota
	urlWord          // https://host/path
	mailWord         // somebody@host
	hostWord         // host.tld
	pathWord         // a/b, ~/x, file.ext
	secretWord       // a path where secrets are kept
	lastingWord      // a path of what runs later by itself
	scriptWord       // a path of a script
)

// word is one word of a sentence.
type word struct {
	text       string // in lower case, without punctuation around it
	meaning    meaning
	form       form
	line       int  // index of the line in the unit
	start, end int  // in the undisguised line
	code       bool // it stands in inline code
	clause     pause
}

// pause is the punctuation before a word.
type pause uint8

const (
	noBreak    pause = iota
	lightBreak       // a comma, a colon, a quote, an asterisk
	fullBreak        // a semicolon, a bracket, a dash; or the word begins the sentence
)

// has says whether the word may mean any of m.
func (w word) has(m meaning) bool { return w.meaning&m != 0 }

// sentence is the words of a sentence.
type sentence []word

// span is inline code of a line.
type span struct {
	line, start, end int
	negated          bool // a "not" stands shortly before it
}

// sentences parts the text of a unit, whose lines are undisguised, into sentences, and gives the inline code in it.
func sentences(lines []string) (all []sentence, code []span) {
	var current sentence
	clause, inCode, codeEnd := fullBreak, false, -1
	end := func() {
		if len(current) > 0 {
			all = append(all, current)
			current = nil
		}
		clause = fullBreak
	}
	words := lexicon()
	for number, line := range lines {
		inCode, codeEnd = false, -1
		for at := 0; at < len(line); {
			size := separatorLength(line[at:])
			if size == 0 {
				size = wordLength(line[at:])
				w := newWord(words, line[at:at+size], number, at)
				w.code, w.clause = inCode, clause
				trailing := line[w.end : at+size]
				if w.text != "" {
					current, clause = append(current, w), noBreak
					current.addPair()
				}
				at += size
				if strings.ContainsAny(trailing, ",:;") {
					clause = max(clause, lightBreak)
				}
				if strings.ContainsAny(trailing, ".!?") {
					end()
				}
				continue
			}
			switch c := line[at]; {
			case c == '`' && at == codeEnd:
				inCode, codeEnd = false, -1
			case c == '`':
				if length := strings.IndexByte(line[at+1:], '`'); length > 0 {
					codeEnd = at + 1 + length
					code = append(code, span{number, at + 1, codeEnd, current.negated(len(current))})
					inCode = isCode(line[at+1 : codeEnd])
				}
			case c == '|' && !inCode:
				end()
			case strings.IndexByte(";()", c) >= 0, c >= utf8.RuneSelf:
				clause = fullBreak
			case strings.IndexByte("[]{:,\"<>*#", c) >= 0:
				clause = max(clause, lightBreak)
			}
			at += size
		}
	}
	end()
	return all, code
}

// isCode says whether inline code is code, and no sentence that is put as such.
func isCode(text string) bool {
	return strings.Count(text, " ") < 2 || isClearCommand(text) || strings.ContainsAny(text, "={}()[]$")
}

// separatorLength returns the length of the separator that a text begins with: white space or a sign that is no part of
// a word; 0 if it begins with a word.
func separatorLength(text string) int {
	c := text[0]
	if c >= utf8.RuneSelf {
		r, size := utf8.DecodeRuneInString(text)
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return 0
		}
		return size
	}
	if c == ' ' || c == '\t' || strings.IndexByte("`|()[]{}<>*\"';,:#!?=&^", c) >= 0 {
		return 1
	}
	return 0
}

// wordLength returns the length of the word that a text begins with, with the punctuation behind it.
func wordLength(text string) int {
	for i := range len(text) {
		c := text[i]
		if c == ' ' || c == '\t' || c == '`' || c == '|' || c == '"' || c == '(' || c == ')' || c == '<' || c == '>' ||
			c == '*' || c == ']' || c == '[' || c == '{' || c == '}' {
			return i
		}
	}
	return len(text)
}

// newWord makes a word of a text that stands in a line at an offset.
func newWord(words senses, text string, line, at int) word {
	trimmed := strings.TrimRight(text, ".,;:!?'\u2019\u201d-_")
	w := word{text: strings.ToLower(trimmed), line: line, start: at, end: at + len(trimmed)}
	w.meaning = words[w.text]
	if w.meaning != 0 || len(w.text) == len(trimmed) && !strings.ContainsAny(trimmed, "./@'_\u2019") {
		return w
	}
	if strings.Contains(w.text, "\u2019") {
		w.text = strings.ReplaceAll(w.text, "\u2019", "'")
	}
	if w.meaning = words[w.text]; w.meaning == 0 {
		w.meaning = words[strings.TrimSuffix(w.text, "'s")]
	}
	if w.meaning == 0 {
		w.form = formOf(w.text)
	}
	return w
}

// formOf says what a word in lower case, with a dot, slash or at in it, looks like.
func formOf(text string) form {
	switch {
	case isSecretPlace(text):
		return secretWord
	case strings.Contains(text, "://"):
		return urlWord
	case isLasting(text):
		return lastingWord
	case isMailbox(text):
		return mailWord
	case isHost(text):
		return hostWord
	case isScript(text):
		return scriptWord
	case isPath(text):
		return pathWord
	}
	return plainWord
}

// addPair gives a word the sense that it has behind the word before it, such as the keys in "API keys".
func (s sentence) addPair() {
	last := len(s) - 1
	if last < 1 {
		return
	}
	before := s[last-1].text
	if before == "root" || before == "admin" || before == "public" || before == "administrator" {
		switch s[last].text {
		case "directory", "cause", "causes", "dir", "element", "level", "node", "device", "page", "console", "guide", "folder",
			"filesystem", "component", "api", "key", "partition", "url", "path", "ip", "cloud", "docs", "documentation":
			s[last-1].meaning &^= power
		}
	}
	switch s[last].text {
	case "key", "keys":
		switch before {
		case "api", "private", "ssh", "access", "secret", "signing", "account", "encryption", "deploy":
			s[last].meaning |= secret
		}
	case "variables":
		if before == "environment" || before == "env" {
			s[last].meaning |= secret | data
		}
	case "access", "rights", "permissions", "privileges", "control":
		switch before {
		case "full", "admin", "administrator", "root", "write", "edit", "unrestricted", "public", "all", "owner", "elevated":
			s[last].meaning |= power
		}
	case "token", "tokens", "cookie", "cookies":
		switch before {
		case "access", "api", "session", "bearer", "auth", "authentication", "refresh", "secret", "service", "github", "deploy", "personal",
			"oauth", "login", "jwt", "browser", "saved", "all", "every", "security", "admin":
			s[last].meaning |= secret
		}
	case "run":
		if before == "dry" {
			s[last].meaning |= safeguard
		}
	case "name", "names", "keyword":
		s[last].meaning &^= secret
	}
}

// isPath says whether a word is surely a path, unlike "and/or" or "e.g".
func isPath(text string) bool {
	return strings.ContainsAny(text[:1], "/~$") && len(text) > 1 || strings.HasPrefix(text, "./") || strings.HasPrefix(text, "../") ||
		strings.Count(text, "/") > 1 || strings.HasSuffix(text, "/")
}
