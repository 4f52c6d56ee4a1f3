package facts

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/textscan"
)

// hit is a fact of a text, before it is known whether the change brings it.
type hit struct {
	class      Class
	says       string // what is done, such as "Deletes files"
	where      Where
	line, last int // from 0
	words      string
}

// key identifies what is said, wherever it stands.
func (h hit) key() string { return string(h.class) + " " + strings.ToLower(h.words) }

// readFile gives the facts of one file of a change.
func readFile(f File, addresses *addressBook) []Fact {
	before, after := splitLines(f.Old), splitLines(f.New)
	removed, added := changedLines(before, after)
	had := map[string]int{}
	buffer := hitBuffers.Get().(*[]hit)
	defer hitBuffers.Put(buffer)
	hits := readText((*buffer)[:0], f.Path, f.Old, before, removed, nil)
	for _, h := range hits {
		had[h.key()]++
	}
	clear(hits)
	hits = readText(hits[:0], f.Path, f.New, after, added, addresses)
	defer func() {
		clear(hits)
		*buffer = hits
	}()
	facts := make([]Fact, 0, len(hits))
	full := map[Class]*classRoom{}
	for _, h := range hits {
		line := firstChanged(added, h.line, h.last)
		if len(had) > 0 {
			if key := h.key(); had[key] > 0 {
				had[key]--
				continue
			}
		}
		if line < 0 {
			continue
		}
		room := full[h.class]
		if room == nil {
			room = &classRoom{last: -1}
			full[h.class] = room
		}
		if room.has(line) {
			facts = append(facts, h.fact(f.Path, line))
		} else {
			facts = append(facts, Fact{Class: h.class, Path: f.Path, Line: line + 1})
		}
	}
	if fileKind(f.Path, after) == "markdown" {
		facts = append(facts, headerFacts(f)...)
	}
	return withoutTwins(append(facts, weakened(f.Path, before, after, removed, added)...))
}

// hitBuffers holds the memory of facts that were read.
var hitBuffers = sync.Pool{New: func() any { return &[]hit{} }} //nolint:gochecknoglobals // holds no state

// classRoom says how many lines of a file have a fact of a class. Of those behind MaxFacts lines none is returned:
// they are counted, and their words are not made.
type classRoom struct{ lines, last int }

func (r *classRoom) has(line int) bool {
	if line > r.last && r.lines < MaxFacts {
		r.lines, r.last = r.lines+1, line
	}
	return line <= r.last
}

// withoutTwins leaves one fact of a class on each line: the one with the most words, which says most.
func withoutTwins(facts []Fact) []Fact {
	last := make(map[int]int, len(facts)/2) // line, negative if removed -> the last one kept of it, from 1
	before := make([]int, 0, len(facts))    // the one kept of the same line before each
	kept := facts[:0]
	for _, f := range facts {
		line := f.Line
		if f.Removed {
			line = -line
		}
		twin := last[line]
		for twin > 0 && kept[twin-1].Class != f.Class {
			twin = before[twin-1]
		}
		switch {
		case f.Class == Address:
			before, kept = append(before, 0), append(kept, f)
		case twin == 0:
			before, kept = append(before, last[line]), append(kept, f)
			last[line] = len(kept)
		case len(f.Words) > len(kept[twin-1].Words):
			kept[twin-1] = f
		}
	}
	return kept
}

// firstChanged returns the first changed line of some, or -1.
func firstChanged(changed []bool, first, last int) int {
	for i := first; i <= last && i < len(changed); i++ {
		if changed[i] {
			return i
		}
	}
	return -1
}

// fact makes a hit a fact of a file's line, which counts from 0.
func (h hit) fact(path string, line int) Fact {
	const enough = 8 * MaxWords // bytes: of more, the time would grow with the square of a line
	words := oneLine(h.words[:min(len(h.words), enough)])
	sentence := h.says
	if words != "" {
		sentence += ": " + words
	}
	return Fact{Class: h.class, Path: path, Line: line + 1, Where: h.where, Words: words, Sentence: sentence}
}

// oneLine makes words fit to be shown on one line.
func oneLine(words string) string {
	if line, ok := oneLineASCII(words); ok {
		return line
	}
	spaced := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return ' '
		}
		return r
	}, words)
	return shortened(strings.Join(strings.Fields(spaced), " "), MaxWords)
}

// oneLineASCII is oneLine for words of ASCII that are not too long.
func oneLineASCII(words string) (line string, ok bool) {
	var out [MaxWords]byte
	length, gap := 0, false
	for i := range len(words) {
		c := words[i]
		switch {
		case c >= utf8.RuneSelf || c == 0x7f:
			return "", false
		case c <= ' ':
			gap = length > 0
			continue
		}
		if length+1 >= MaxWords {
			return "", false
		}
		if gap {
			out[length], gap = ' ', false
			length++
		}
		out[length] = c
		length++
	}
	return string(out[:length]), true
}

// shortened takes what cannot be seen from a text, and cuts it to a number of runes.
func shortened(text string, runes int) string { return textscan.Clean(text, runes) }

// readText adds what the changed parts of a text hold. addresses is nil for an old text.
func readText(found []hit, path, text string, lines []string, changed []bool, addresses *addressBook) []hit {
	if firstChanged(changed, 0, len(lines)-1) < 0 {
		return found
	}
	words, inside := wordCaches.Get().(*wordCache), new(unpacker)
	defer words.release()
	plains := make([]string, 0, len(lines)) // the undisguised lines of all units
	looks := make([]look, 0, len(lines))    // and what they look like
	for _, u := range layoutOf(path, text, lines) {
		if !u.changed(changed) {
			continue
		}
		u.words = words
		begin := len(plains)
		for _, line := range u.lines {
			plain, look := undisguised(line.text)
			plains, looks = append(plains, plain), append(looks, look)
		}
		plain, look := plains[begin:len(plains):len(plains)], looks[begin:len(looks):len(looks)]
		found = readUnit(found, u, plain, look)
		found = append(found, readSpread(u, changed, inside)...)
		for i, line := range u.lines {
			if !changed[line.number] {
				continue
			}
			if look[i].mayBeOpaque() || len(line.text) > maxLine {
				found = append(found, readOpaque(u, line, look[i], inside)...)
			}
			if look[i].signs.has(hasColon | hasLess | hasBracket) {
				found = append(found, readRoles(u, line, plain[i])...)
			}
			if addresses != nil && look[i].signs.has(hasStop|hasColon) {
				found = append(found, addresses.read(u, line, plain[i])...)
			}
		}
	}
	return found
}

// undisguised gives a line without its disguises, and what it looks like.
func undisguised(text string) (string, look) {
	text = text[:min(len(text), maxLine)]
	l := lookOf(text)
	if !l.signs.has(hasEscape) {
		return text, l
	}
	plain := textscan.Undisguise(text)
	l.signs = signsOf(plain)
	return plain, l
}

func (u unit) changed(changed []bool) bool {
	for _, line := range u.lines {
		if changed[line.number] {
			return true
		}
	}
	return false
}

// readUnit adds what a unit holds.
func readUnit(found []hit, u unit, plain []string, look []look) []hit {
	if !u.prose {
		return readTextInCode(readCode(found, u, plain), u, plain)
	}
	found, code := readSentences(found, u, plain)
	if u.where == Comment {
		found = append(found, readComment(u, plain)...)
	}
	add := func(where Where, line int) func(act, string) {
		number := u.lines[line].number
		return func(a act, words string) { found = append(found, hit{a.class, a.says, where, number, number, words}) }
	}
	for _, c := range code {
		text := plain[c.line][c.start:c.end]
		if c.start > 1 && plain[c.line][c.start-2] == '!' && text != "" {
			add(Code, c.line)(act{RunsCode, "Runs a command as soon as it is read"}, text)
		}
		if !c.negated && !u.forbidden {
			readCommands(text, true, add(Code, c.line))
			readProgram(text, add(Code, c.line))
			if givesConsent(text) {
				add(Code, c.line)(act{Rights, "Switches a protection off"}, text)
			}
		}
	}
	for i := range u.lines {
		if command := bareCommand(plain[i], look[i].signs); command != "" {
			readCommands(command, true, add(u.where, i))
		}
		if isProgramLine(plain[i]) {
			readProgram(plain[i], add(u.where, i))
		}
		if !look[i].signs.has(hasOpening) {
			continue
		}
		if target := linkedScript(plain[i]); target != "" {
			add(u.where, i)(act{RunsCode, "Links a script"}, target)
		}
	}
	return found
}

// givesConsent says whether inline code is an option by which an agent asks nobody any more.
func givesConsent(text string) bool {
	return strings.HasPrefix(text, "--dangerously") || text == "--yolo" || text == "--auto-approve"
}

// isProgramLine says whether a line of prose is one of a program, which stands there without quotes.
func isProgramLine(line string) bool {
	return strings.HasPrefix(line, "with open(") || strings.HasPrefix(line, "import ") && strings.Contains(line, ";") ||
		strings.HasPrefix(line, "from ") && strings.Contains(line, " import ")
}

// linkedScript gives the first script that a line links to; "" if there is none.
func linkedScript(line string) string {
	for {
		_, rest, ok := strings.Cut(line, "](")
		if !ok {
			return ""
		}
		target, after, _ := strings.Cut(rest, ")")
		if isScript(target) && !strings.Contains(target, "://") {
			return target
		}
		line = after
	}
}

// mayHoldCommand says whether a line of prose has a sign that commands have, and no inline code.
func mayHoldCommand(line string) bool {
	signs := false
	for i := range len(line) {
		switch line[i] {
		case '`':
			return false
		case '-', '/', '|':
			signs = signs || i > 0 && (line[i-1] == ' ' || line[i-1] == ':' && line[i] == '/')
		}
	}
	return signs
}

// bareCommand gives the command that a line of prose holds without quotes; "" if it holds none.
func bareCommand(line string, signs signs) string {
	if (!signs.has(hasMark) || !mayHoldCommand(line)) && !strings.Contains(line, "sudo ") {
		return ""
	}
	for at := 0; at < len(line); {
		end := len(line)
		if size := strings.IndexByte(line[at:], ' '); size >= 0 {
			end = at + size
		}
		begin := at
		for begin < end && strings.IndexByte("($\"'", line[begin]) >= 0 {
			begin++
		}
		if name := line[begin:end]; isBareProgram(name) {
			rest := line[end:]
			if strings.HasSuffix(line[:at], "| ") || strings.Contains(rest, " -") || strings.Contains(rest, "://") ||
				strings.Contains(rest, " | ") || strings.Contains(rest, " /") || name == "sudo" && beginsWithProgram(rest) {
				return strings.TrimLeft(line[at:], "($\"'")
			}
		}
		at = end + 1
	}
	return ""
}

// isBareProgram says whether a word of a sentence is the name of a program, and no word that sentences have.
func isBareProgram(name string) bool {
	if len(name) < 2 || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	return (programs()[name] != nil || isProgramName(name)) && !isEnglishWord(name) || name == "docker" || name == "git"
}

// beginsWithProgram says whether the first word of a text is the name of a program.
func beginsWithProgram(text string) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(text, " "), " ")
	return name != "" && (programs()[name] != nil || isProgramName(name))
}

// readTextInCode adds what sentences in code say to the model: in comments, in texts of programs and in fields.
func readTextInCode(found []hit, u unit, plain []string) []hit {
	if kindOf(u.language) == configCode {
		found, _ = readSentences(found, u, plain)
		return found
	}
	texts := unit{where: u.where, words: u.words}
	var said []string
	for i, line := range plain {
		if isSentence(line) {
			texts.lines, said = append(texts.lines, u.lines[i]), append(said, line)
		}
	}
	if said == nil {
		return found
	}
	before := len(found)
	found, _ = readSentences(found, texts, said)
	return append(found[:before], slices.DeleteFunc(found[before:], func(h hit) bool {
		return h.class != Override && h.class != Conceal
	})...)
}

// isSentence says whether a line of code may hold a sentence: three words that nothing but space parts.
func isSentence(line string) bool {
	words := 0
	for i := 1; i+1 < len(line); i++ {
		if line[i] == ' ' {
			if isLetter(line[i-1]) && isLetter(line[i+1]) {
				words++
			} else if line[i-1] != ',' && line[i-1] != '.' {
				words = 0
			}
			if words == 2 {
				return true
			}
		}
	}
	return false
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80 }
