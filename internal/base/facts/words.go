package facts

import (
	"strings"
	"sync"
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
	inflected  bool // see entry
	pairs      bool // see entry
	clause     pause
	code       bool      // it stands in inline code
	phrases    *[]phrase // see entry
	line       int32     // index of the line in the unit
	start, end int32     // in the undisguised line
}

// pause is the punctuation before a word.
type pause uint8

const (
	noBreak    pause = iota
	lightBreak       // a comma, a colon, a quote, an asterisk
	fullBreak        // a semicolon, a bracket, a dash; or the word begins the sentence
)

// has says whether the word may mean any of m.
func (w *word) has(m meaning) bool { return w.meaning&m != 0 }

// sentence is the words of a sentence.
type sentence []word

// span is inline code of a line.
type span struct {
	line, start, end int
	negated          bool // a "not" stands shortly before it
}

// sentenceReader parts the text of a unit into sentences.
type sentenceReader struct {
	lexicon senses
	each    func(sentence) // is called with each sentence, whose words it must not keep
	current sentence
	code    []span // the inline code so far
	clause  pause  // before the next word
	codeEnd int    // where inline code ends in the line; -1 outside of it
	isCode  bool   // whether it is code
	words   *wordCache
	plain   *plainWords
	letters *[256]letterClass
}

// wordBuffers holds the memory of sentences that were read.
var wordBuffers = sync.Pool{New: func() any { return &sentence{} }} //nolint:gochecknoglobals // holds no state

// mostWords bounds the words of a sentence; what goes on behind them is read as another.
const mostWords = 200

// readWords calls each with the sentences of a unit, whose lines are undisguised, and gives the inline code in them. In
// code, a sentence goes on in the next line only if that begins with a small letter.
func readWords(lines []string, code bool, words *wordCache, each func(sentence)) []span {
	buffer := wordBuffers.Get().(*sentence)
	r := sentenceReader{lexicon: lexicon(), words: words, each: each, clause: fullBreak, current: (*buffer)[:0],
		plain: plainLexicon(), letters: letterClasses()}
	parts, ends := separators(), wordEnds()
	for number, line := range lines {
		r.codeEnd, r.isCode = -1, false
		if code && !goesOn(line) || len(r.current) > mostWords {
			r.end()
		}
		for at := 0; at < len(line); {
			if line[at] == ' ' {
				at++
				continue
			}
			size := separatorLength(line[at:], parts)
			if size > 0 {
				r.separator(line, number, at)
			} else {
				size = wordLength(line[at:], ends)
				r.addWord(line[at:at+size], number, at)
				if code && isKey(line[at+size:]) && len(r.current) > 0 {
					r.current[len(r.current)-1].inflected = true // and so no order
				}
			}
			at += size
		}
	}
	r.end()
	*buffer = r.current
	wordBuffers.Put(buffer)
	return r.code
}

// isKey says whether the text behind a word of code gives it a value.
func isKey(rest string) bool {
	for rest != "" && rest[0] == ' ' {
		rest = rest[1:]
	}
	return rest != "" && rest[0] == '=' && !strings.HasPrefix(rest, "==")
}

// goesOn says whether a line of code, or of a comment in it, may go on with the sentence of the line before.
func goesOn(line string) bool {
	at := 0
	for at < len(line) && strings.IndexByte(" \t#/*", line[at]) >= 0 {
		at++
	}
	return at < len(line) && line[at] >= 'a' && line[at] <= 'z' && !strings.Contains(line[at:], ": ")
}

// end ends a sentence.
func (r *sentenceReader) end() {
	if len(r.current) > 0 {
		r.each(r.current)
		r.current = r.current[:0]
	}
	r.clause = fullBreak
}

// addWord adds a word, and notes the punctuation behind it.
func (r *sentenceReader) addWord(text string, line, at int) {
	end := len(text)
	for end > 0 && isWordStop(text[end-1]) {
		end--
	}
	before := len(r.current)
	r.look(text[:end])
	if len(r.current) > before {
		w := &r.current[before]
		w.line, w.start, w.end = int32(line), int32(at), int32(at+end) //nolint:gosec // see maxLine
		w.code, w.clause = r.isCode, r.clause
		r.clause = noBreak
		r.current.addPair()
	}
	ends := false
	for i := end; i < len(text); i++ {
		switch text[i] {
		case ',', ':', ';':
			r.clause = max(r.clause, lightBreak)
		case '.', '!', '?':
			ends = true
		}
	}
	if ends || len(r.current) >= mostWords {
		r.end()
	}
}

// isWordStop says whether a character at the end of a word belongs to the sentence.
func isWordStop(c byte) bool {
	switch c {
	case '.', ',', ';', ':', '!', '?', '\'', '-', '_':
		return true
	}
	return false
}

// look adds a word without the punctuation behind it, unless that leaves nothing.
func (r *sentenceReader) look(text string) {
	var class letterClass
	hash := hashStart
	for i := range len(text) {
		c := text[i]
		class |= r.letters[c]
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		hash = (hash ^ uint32(c)) * hashPrime
	}
	hash ^= hash >> 16
	if class&specialLetter == 0 {
		if e := r.plain.find(text, hash); e != nil {
			r.current = append(r.current, word{text: e.text, meaning: e.meaning, inflected: e.inflected, pairs: e.pairs,
				phrases: e.phrases})
			return
		}
		if class&capitalLetter == 0 {
			if text != "" {
				r.current = append(r.current, word{text: text})
			}
			return
		}
	}
	if w := r.words.word(r.lexicon, text, hash); w.text != "" {
		r.current = append(r.current, *w)
	}
}

// letterClass is what a character of a word is.
type letterClass uint8

const (
	capitalLetter letterClass = 1 << iota
	specialLetter             // what other words are made of than letters: a dot, a slash
)

// letterClasses gives the class of each character.
var letterClasses = sync.OnceValue(func() *[256]letterClass { //nolint:gochecknoglobals // made once, never changed
	var classes [256]letterClass
	for c := 'A'; c <= 'Z'; c++ {
		classes[c] = capitalLetter
	}
	for _, c := range "./@'_" {
		classes[c] = specialLetter
	}
	for c := utf8.RuneSelf; c < len(classes); c++ {
		classes[c] = specialLetter
	}
	return &classes
})

// separator reads the sign at an offset of a line that parts words.
func (r *sentenceReader) separator(line string, number, at int) {
	switch c := line[at]; {
	case c == ' ':
	case c == '`' && at == r.codeEnd:
		r.isCode, r.codeEnd = false, -1
	case c == '`':
		if length := strings.IndexByte(line[at+1:], '`'); length > 0 {
			r.codeEnd = at + 1 + length
			r.code = append(r.code, span{number, at + 1, r.codeEnd, r.current.negated(len(r.current))})
			r.isCode = isCode(line[at+1 : r.codeEnd])
		}
	case c == '|' && !r.isCode:
		r.end()
	case c == '\'':
		if at > 0 && line[at-1] == ' ' && at+1 < len(line) && isLetter(line[at+1]) { // it opens a quotation
			r.clause = max(r.clause, lightBreak)
		}
	case c == ';' || c == '(' || c == ')' || c >= utf8.RuneSelf:
		r.clause = fullBreak
	case c != '\t' && c != '&' && c != '=' && c != '^':
		r.clause = max(r.clause, lightBreak)
	}
}

// isCode says whether inline code is code, and no sentence that is put as such.
func isCode(text string) bool {
	return strings.Count(text, " ") < 2 || isClearCommand(text) || strings.ContainsAny(text, "={}()[]$")
}

// separators are the signs of ASCII that part words, and wordEnds those that end one which has begun.
var (
	separators = sync.OnceValue(func() *byteSet { //nolint:gochecknoglobals // made once, never changed
		return newByteSet(" \t`|()[]{}<>*\"';,:#!?=&^")
	})
	wordEnds = sync.OnceValue(func() *byteSet { //nolint:gochecknoglobals // made once, never changed
		return newByteSet(" \t`|\"()<>*][{}")
	})
)

// separatorLength returns the length of the separator that a text begins with: white space or a sign that is not part
// of a word; 0 if it begins with a word. parts are separators.
func separatorLength(text string, parts *byteSet) int {
	if c := text[0]; c < utf8.RuneSelf {
		if parts[c] {
			return 1
		}
		return 0
	}
	r, size := utf8.DecodeRuneInString(text)
	if unicode.IsLetter(r) || unicode.IsDigit(r) {
		return 0
	}
	return size
}

// wordLength returns the length of the word that a text begins with, with the punctuation behind it. ends are wordEnds.
func wordLength(text string, ends *byteSet) int {
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			if ends[c] {
				return i
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if i > 0 && r != '\u2019' && unicode.IsOneOf([]*unicode.RangeTable{unicode.P, unicode.S, unicode.Z}, r) {
			return i
		}
		i += size
	}
	return len(text)
}

// wordCache keeps words of a file that are names or paths, or begin with a capital letter. Most come again.
type wordCache [1024]struct {
	text string
	word word
}

// wordCaches holds the memory of caches that are not in use.
var wordCaches = sync.Pool{New: func() any { return new(wordCache) }} //nolint:gochecknoglobals // holds no state

// release empties the cache, which holds parts of a file, for another one.
func (c *wordCache) release() {
	clear(c[:])
	wordCaches.Put(c)
}

// word gives the word of a text without punctuation behind it, which has no line yet. It stays as it is until the next
// call. hash is that of the text in small letters.
func (c *wordCache) word(lexicon senses, text string, hash uint32) *word {
	if c == nil {
		w := newWord(lexicon, text)
		return &w
	}
	slot := &c[hash%uint32(len(c))]
	if slot.text != text {
		slot.text, slot.word = text, newWord(lexicon, text)
	}
	return &slot.word
}

// newWord makes a word of a text without punctuation behind it, which has no line yet.
func newWord(lexicon senses, text string) word {
	classes, special := letterClasses(), false
	for i := range len(text) {
		special = special || classes[text[i]] == specialLetter
	}
	w := word{text: strings.ToLower(text)}
	if w.look(lexicon, w.text) || !special {
		return w
	}
	w.text = strings.Trim(strings.ReplaceAll(w.text, "\u2019", "'"), "_")
	if !w.look(lexicon, w.text) && !w.look(lexicon, strings.TrimSuffix(w.text, "'s")) {
		const longest = 2 // letters before the apostrophe of an article, as in l'utilisateur
		if article, noun, ok := strings.Cut(w.text, "'"); ok && len(article) <= longest {
			w.look(lexicon, noun)
		}
	}
	if w.meaning == 0 && strings.IndexByte(text, '_') > 0 && namesSecretVariable(text) {
		w.meaning = secret
	}
	if w.meaning == 0 && w.text != "" {
		w.form = formOf(w.text)
	}
	return w
}

// look gives the word what the lexicon knows of a text, and says whether it knows it.
func (w *word) look(lexicon senses, text string) bool {
	e, known := lexicon[text]
	w.meaning, w.inflected, w.pairs, w.phrases = e.meaning, e.inflected, e.pairs, nil
	if len(text) == len(w.text) {
		w.phrases = e.phrases
	}
	return known
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
	case isProduct(text):
		return plainWord
	case isScript(text):
		return scriptWord
	case isPath(text):
		return pathWord
	}
	return plainWord
}

// pairedWords are the words for which addPair does something: the first of a pair, or the second.
const pairedWords = "embedded injected untrusted malicious suspicious hostile nightly temporary temp tmp test public " +
	"wheel root admin administrator own secret transit rest key keys variables access rights permissions privileges " +
	"control token tokens cookie cookies entries entry lines line files file records trail trails run number numbers " +
	"phrase data details card cards address addresses birthday configuration config name names key-value object " +
	"objects resource injection management rotation options handling provider providers exponents strength scanning " +
	"detection hygiene space usage pressure image images io i/o type size latency speed performance"

// isProduct says whether a word that ends as scripts do is the name of a product.
func isProduct(text string) bool {
	switch text {
	case "node.js", "next.js", "nuxt.js", "vue.js", "react.js", "express.js", "nest.js", "three.js", "d3.js", "chart.js",
		"angular.js", "ember.js", "alpine.js", "discord.js", "deno.js", "electron.js", "socket.js":
		return true
	}
	return false
}

// addPair gives a word the sense that it has behind the word before it, such as the keys in "API keys". Its words are
// in pairedWords.
func (s sentence) addPair() {
	if last := len(s) - 1; last > 0 && (s[last].pairs || s[last-1].pairs) {
		s.pair(last)
	}
}

// pair is addPair for a word behind another one.
func (s sentence) pair(last int) {
	before := s[last-1].text
	s.losePower(last)
	s.loseInstruction(last)
	switch s[last].text {
	case "secret":
		if s[last-1].has(be) {
			s[last].meaning &^= secret // "whether the index is secret"
		}
	case "transit", "rest":
		if before == "in" || before == "at" {
			s.loseEncryption(last)
		}
	case "key", "keys":
		switch before {
		case "api", "private", "ssh", "access", "secret", "signing", "account", "encryption", "deploy":
			s[last].meaning |= secret
		}
	case "variables":
		if (before == "environment" || before == "env") && !s.sets(last-2) {
			s[last].meaning |= secret | data
		}
	case "access", "rights", "permissions", "privileges", "control":
		switch before {
		case "full", "admin", "administrator", "root", "write", "edit", "unrestricted", "public", "all", "owner", "elevated",
			"maintainer", "collaborator", "remote":
			s[last].meaning |= power
		}
	case "token", "tokens", "cookie", "cookies":
		if s[last].text == "token" && (before == "the" || before == "your" || before == "this") {
			s[last].meaning |= secret
		}
		switch before {
		case "access", "api", "session", "bearer", "auth", "authentication", "refresh", "secret", "service", "github",
			"deploy", "personal",
			"oauth", "login", "jwt", "browser", "saved", "all", "every", "security", "admin":
			s[last].meaning |= secret
		}
	case "entries", "entry", "lines", "line", "files", "file", "records", "trail", "trails":
		if before == "log" || before == "audit" {
			s[last].meaning |= record
		}
	case "run":
		if before == "dry" {
			s[last].meaning |= safeguard
		}
	default:
		s.addSecretPair(last)
	}
}

// loseEncryption takes the sense of destruction from "encrypt" in "encrypt data in transit".
func (s sentence) loseEncryption(at int) {
	const near = 6
	for i := at - 2; i >= max(0, at-near); i-- {
		if strings.HasPrefix(s[i].text, "encrypt") {
			s[i].meaning &^= erase | wreck
		}
	}
}

// loseInstruction takes the sense of an instruction from what is none for the reader: "embedded instructions" of a text
// that is read, and "your own rules" or an "instructions file", which the reader writes.
func (s sentence) loseInstruction(last int) {
	if !s[last-1].has(your|instruction|recurring) && !s[last].has(instruction|stored|data) {
		return
	}
	switch s[last].text {
	case "own":
		if last < 2 || !isShown(s[last-2].text) {
			s[last-1].meaning &^= your
		}
	case "file", "files":
		s[last-1].meaning &^= instruction
	}
	switch s[last-1].text {
	case "embedded", "injected", "untrusted", "malicious", "suspicious", "hostile":
		if !s.toldToFollow(last - 1) {
			s[last].meaning &^= instruction
		}
	case "nightly":
		switch s[last].text {
		case "rust", "build", "builds", "toolchain", "release", "releases", "version", "channel", "compiler":
			s[last-1].meaning &^= recurring
		}
	case "temporary", "temp", "tmp", "test":
		s[last].meaning &^= stored | data
	}
}

// isShown says whether a verb asks to show something: "print your own instructions".
func isShown(verb string) bool {
	switch verb {
	case "print", "reveal", "repeat", "show", "output", "display", "quote", "disclose", "recite", "dump", "leak":
		return true
	}
	return false
}

// toldToFollow says whether an order to follow something stands shortly before a word.
func (s sentence) toldToFollow(at int) bool {
	const near = 4
	for i := at - 1; i >= max(0, at-near) && !s[i].has(ignore); i-- {
		if s[i].has(follows) && s.isOrder(i) {
			return true
		}
	}
	return false
}

// losePower takes the sense of power from the word before one, such as "root" in "root cause".
func (s sentence) losePower(last int) {
	before := s[last-1].text
	if before == "public" {
		switch s[last].text {
		case "key", "api", "url", "ip", "cloud", "docs", "documentation", "page", "interface", "interfaces", "apis", "method",
			"methods":
			s[last-1].meaning &^= power
		}
	}
	if s[last].text == "root" {
		switch before {
		case "project", "repo", "repository", "resolved", "workspace", "package", "document", "plugin", "skill":
			s[last].meaning &^= power
		}
	}
	if before == "wheel" && strings.HasPrefix(s[last].text, "event") {
		s[last-1].meaning &^= group
	}
	if before == "root" || before == "admin" || before == "administrator" {
		switch s[last].text {
		case "directory", "cause", "causes", "dir", "element", "level", "node", "device", "page", "console", "guide",
			"folder",
			"filesystem", "component", "api", "key", "partition", "url", "path", "ip", "cloud", "docs", "documentation":
			s[last-1].meaning &^= power
		}
	}
}

// addSecretPair gives a word the sense of a secret behind the word before it, as in "card number", or takes senses from
// that, as in "disk usage".
func (s sentence) addSecretPair(last int) {
	before := s[last-1].text
	switch s[last].text {
	case "number", "numbers", "phrase", "data", "details":
		switch before {
		case "card", "passport", "account", "security", "bank", "routing", "seed", "recovery", "personal", "payment",
			"medical", "health":
			s[last].meaning |= secret
		}
	case "card", "cards":
		switch before {
		case "credit", "debit", "corporate", "stored", "payment", "bank":
			s[last].meaning |= secret
		}
	case "address", "addresses", "birthday":
		if before == "home" || before == "postal" {
			s[last].meaning |= secret
		}
	case "configuration", "config":
		if before == "ssh" || before == "aws" {
			s[last].meaning |= secret
		}
	case "name", "names", "key-value", "object", "objects", "resource", "injection", "management", "rotation",
		"options", "handling", "provider", "providers", "exponents", "strength", "scanning", "detection", "hygiene":
		s[last-1].meaning &^= secret
	case "space", "usage", "pressure", "image", "images", "io", "i/o", "type", "size", "latency", "speed", "performance":
		s[last-1].meaning &^= stored
	}
}

// sets says whether one of some words up to an index is a verb that sets or keeps something.
func (s sentence) sets(at int) bool {
	const near = 4
	for i := at; i >= max(0, at-near); i-- {
		if s[i].has(keeps) {
			return true
		}
	}
	return false
}

// isPath says whether a word is surely a path, unlike "and/or" or "e.g".
func isPath(text string) bool {
	return strings.ContainsAny(text[:1], "/~$") && len(text) > 1 || strings.HasPrefix(text, "./") ||
		strings.HasPrefix(text, "../") ||
		strings.Count(text, "/") > 1 || strings.HasSuffix(text, "/")
}
