// Package textscan judges text: what a reviewer cannot see in it, and what must never be published with it.
//
// It knows nothing of repositories or pull requests. Gate 5 asks it about file contents, titles and bodies; whatever
// shows text that other people wrote passes it through Clean; whatever logs or reports an error passes it through
// Scanner.Redact.
//
// Positions are 1-based. A line ends at "\n"; a column counts runes, not bytes. A byte that is not part of valid UTF-8
// counts as one rune.
package textscan

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/textscan/secretrules"
)

// lineIndex tells positions in one text many times.
type lineIndex struct {
	text   string
	starts []int // of the lines
}

func newLineIndex(text string) lineIndex {
	starts := []int{0}
	for i := range len(text) {
		if text[i] == '\n' {
			starts = append(starts, i+1)
		}
	}
	return lineIndex{text, starts}
}

// lineAt returns the number of the line that has an offset.
func (x lineIndex) lineAt(at int) int {
	line, found := slices.BinarySearch(x.starts, at)
	if found {
		line++
	}
	return line
}

// position returns the line and the column of an offset.
func (x lineIndex) position(at int) (line, column int) {
	line = x.lineAt(at)
	return line, 1 + utf8.RuneCountInString(x.text[x.starts[line-1]:at])
}

const (
	// MaxSecrets is the most findings that Secrets returns.
	MaxSecrets = 50
	// OwnTokenRule is the rule of a Secret that is one of this server's own credentials.
	OwnTokenRule = "own-token"
	// EncodedRule is the rule of encoded text that was not looked into: it is encoded more than five times, or unpacks to
	// more than a MiB beside three times the size of the text.
	EncodedRule = "encoded-text"
	// DividedRule is the rule of text with too many words that may be parts of credentials, so that not all combinations
	// were tried: more than fill the size of the text, or a MiB if it is smaller.
	DividedRule = "divided-text"
	// CostlyRule is the rule of text whose search costs more than is done for a text of its length: it has far more of
	// what begins like a credential than texts that people write.
	CostlyRule = "costly-text"
)

const (
	// costOfByte is the cost of each byte of a text, in units of secretrules.Work. It is an estimate that is high for most
	// texts; with this bound a MiB takes at most 0.7 s of a core of 2024, see BenchmarkHostileTexts. Descriptions of big
	// interfaces in YAML, which have the most names of credentials, cost some 690.
	costOfByte = 700
	// leastSearched is the length in bytes of the shortest text for which as much work is done.
	leastSearched = 96 << 10
)

// Secret is the place of a credential. It never holds the credential nor a part of it.
type Secret struct {
	Rule        string // the rule of gitleaks or of our own, OwnTokenRule, EncodedRule or DividedRule
	Description string // what the rule looks for, one sentence
	Line        int    // 1-based; where the match begins, for an encoded secret where the encoded text begins
	Column      int    // 1-based, in runes
	// LastLine is the line where the finding ends, for an encoded secret where the encoded text ends. For text that was
	// not searched it is the last line of all.
	LastLine int
}

// Scanner finds credentials in text: those that the rules of gitleaks know, and this server's own. It is safe for
// concurrent use. The rules are loaded by the process's first call of Secrets (some 10 ms and 11 MB allocated), never
// before; all scanners share them.
type Scanner struct {
	own ownCredentials
}

// NewScanner makes a scanner that also knows own, the values of this server's own credentials. Surrounding white space
// is dropped; values of fewer than 8 bytes that are not white space are ignored: they would be found everywhere.
func NewScanner(own []string) *Scanner {
	s := &Scanner{}
	s.own.add(own)
	return s
}

// Secrets lists the first MaxSecrets credentials in text by position. name says in errors which text was scanned; no
// rule and no exception depends on it, nor on comments in text (see secretrules.Load). Encoded text is decoded up to
// five times: base64, base32, hexadecimal digits, gzip and zlib in one of these, percent-encoding, the escapes of JSON,
// JavaScript, Python and C, character references of HTML, and full-width and similar letters; quoted-printable once. A
// credential that rules know by its form is also found in parts, over lines and in strings, lists and tables (see
// joiner).
//
// Own credentials are found besides base64-encoded at any offset, reversed, in other letter case, and when white space
// or punctuation is strewn in; 20 letters and digits in a row of one count as the credential. See Spread for those that
// are divided further.
//
// An error means that text was not scanned to the end: the rules could not be loaded (this holds for every later call
// too), or ctx ended. Callers refuse then.
//
// Two files of 4 KB take some 2 ms and a MiB of prose 0.2 s (one core of an AMD EPYC). No text takes more than a second
// a MiB: beyond that it is of CostlyRule. ctx is looked at after some milliseconds each.
func (s *Scanner) Secrets(ctx context.Context, name, text string) ([]Secret, error) {
	rules, err := embeddedRules()
	if err != nil {
		return nil, err
	}
	w := secretrules.NewWork(ctx, costOfByte*max(len(text), leastSearched))
	layers, beyond := layersOf(w, text)
	var found []hit
	for _, where := range s.own.set().spans(layers) {
		found = append(found, hit{OwnTokenRule, "A credential of this server itself.", where.start,
			max(where.start, where.end-1), 0})
	}
	if beyond >= 0 {
		found = append(found, hit{EncodedRule, "Text that is encoded too often, or unpacks to too much, to look into.",
			beyond, len(text), 0})
	}
	found = append(found, knownSecrets(w, rules, layers)...)
	if w.Spent() {
		found = append(found, hit{CostlyRule, "Text that has too much of what begins like a credential to search it all.",
			0, len(text), 0})
	}
	if err := w.Err(); err != nil {
		return nil, fmt.Errorf("scan %q for secrets: %w", name, err)
	}
	return firstOf(found, text), nil
}

// unbounded returns a Work without a limit, for texts that are short, or were searched already.
func unbounded() *secretrules.Work { return secretrules.NewWork(context.Background(), math.MaxInt) }

// firstOf returns the first MaxSecrets findings in a text, one for each rule and place, and one for each credential
// that rules for whatever a name is assigned to have found.
func firstOf(found []hit, text string) []Secret {
	found = onceEach(found)
	slices.SortFunc(found, func(a, b hit) int {
		return cmp.Or(a.at-b.at, strings.Compare(a.rule, b.rule), b.last-a.last)
	})
	found = slices.CompactFunc(found, func(a, b hit) bool { return a.at == b.at && a.rule == b.rule })
	lines := newLineIndex(text)
	var out []Secret
	for _, h := range found[:min(len(found), MaxSecrets)] {
		line, column := lines.position(h.at)
		out = append(out, Secret{h.rule, h.description, line, column, max(line, lines.lineAt(h.last))})
	}
	return out
}

// onceEach leaves out findings of rules that know a credential by what stands before it, where a more specific rule has
// found one that begins or ends at the same place.
func onceEach(found []hit) []hit {
	begins, ends := map[int]int{}, map[int]int{} // the rank of the most specific rule there
	for _, h := range found {
		if h.value > 0 {
			begins[h.value] = max(begins[h.value], specificity(h.rule))
			ends[h.last] = max(ends[h.last], specificity(h.rule))
		}
	}
	return slices.DeleteFunc(found, func(h hit) bool {
		return h.value > 0 && specificity(h.rule) < max(begins[h.value], ends[h.last])
	})
}

// specificity ranks rules: one that names the kind of credential ranks above one for any name.
func specificity(rule string) int {
	general := []string{"generic-api-key", "hashicorp-tf-password", "named-password", "assigned-password",
		"flag-password", "login-password", "command-password", "curl-auth-user"}
	if at := slices.Index(general, rule); at >= 0 {
		return at + 1
	}
	return len(general) + 1
}

// Withheld stands where Hide has taken out what looks like a secret.
const Withheld = "[withheld: looks like a secret]"

// Hide replaces words of a short text that hold what looks like a credential of anybody, such as the name of an
// argument or of a repository that a caller gave. White space and quotes end a word. A text that cannot be searched
// is withheld.
func (s *Scanner) Hide(text string) string {
	const shortest = 10 // in bytes; no rule finds less in a word that stands alone
	end := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("`\"'", r) }
	var b strings.Builder
	for rest := text; rest != ""; {
		size := strings.IndexFunc(rest, end)
		if size == 0 {
			_, size = utf8.DecodeRuneInString(rest)
		} else if size < 0 {
			size = len(rest)
		}
		word := rest[:size]
		rest = rest[size:]
		if len(word) >= shortest {
			if found, err := s.Secrets(context.Background(), "a word", word); err != nil || len(found) > 0 {
				word = Withheld
			}
		}
		b.WriteString(word)
	}
	return b.String()
}

// Redact replaces every own credential in text, and 20 and more letters and digits in a row of one, with "[redacted]":
// in the forms that Secrets finds, but for those that only decoding shows other than of escapes. It needs no rules and
// costs little for the length of a log line or an error text. The first and the last character of an encoded credential
// may stay where they also encode a neighbour.
func (s *Scanner) Redact(text string) string {
	var b strings.Builder
	at := 0
	for _, found := range s.own.set().spans(unescapedLayers(unbounded(), layer{text: text})) {
		b.WriteString(text[at:found.start])
		b.WriteString("[redacted]")
		at = found.end
	}
	if at == 0 {
		return text
	}
	b.WriteString(text[at:])
	return b.String()
}

// gitleaksRules are the rules of gitleaks v8 (MIT, see gitleaks/LICENSE), byte for byte: tools/gitleaks compares them
// with the module, and `make golden` takes them from it. The module itself is not linked, since the package that has
// the rules brings viper with readers of six formats, which took a tenth of the time of compiling.
//
//go:embed gitleaks/rules.toml
var gitleaksRules string

// ownRules are rules of our own, beside those of gitleaks: what operators hold and gitleaks does not know.
//
//go:embed ownrules.toml
var ownRules string

//nolint:gochecknoglobals // loaded once: they depend on the program alone
var embeddedRules = sync.OnceValues(loadRules)

// loadRules reads the rules that come with gitleaks, and our own. harmless stands in for the stop words that
// secretrules.Load drops.
func loadRules() (*secretrules.Set, error) {
	return secretrules.Load(strings.TrimRight(gitleaksRules, "\n")+"\n"+ownRules, harmless)
}

const (
	// contextLines is the number of lines before and after a decoded part that are searched together with it.
	contextLines = 2
	// minBudget is the minimum number of bytes of joined pieces that are searched for a text, however short.
	minBudget = 1 << 20
)

// secretSearch is the search for credentials of others in one text.
type secretSearch struct {
	rules *secretrules.Set
	work  *secretrules.Work
	lines lineIndex
	seen  map[ruleLine]bool // what an earlier layer has shown
	here  map[ruleLine]bool // what this one shows
	found []hit
}

type ruleLine struct {
	rule string
	line int
}

// hit is a finding of a rule, by offsets in the original.
type hit struct {
	rule, description string
	at, last          int
	value             int // where the credential itself begins; 0 where it is not known
}

// knownSecrets runs the rules over a text, over what its layers show beyond it, over both without comments, and over
// what line breaks part in all of these. The first layer is the text itself. Without enough work left, it stops.
func knownSecrets(w *secretrules.Work, rules *secretrules.Set, layers []layer) (found []hit) {
	text := layers[0].text
	s := &secretSearch{rules: rules, work: w, lines: newLineIndex(text), seen: map[ruleLine]bool{},
		here: map[ruleLine]bool{}}
	j := &joiner{rules: rules, work: w, budget: max(len(text), minBudget), report: s.takeForm}
	for i, l := range layers {
		if i > 0 {
			l = l.aroundChanges(contextLines)
		}
		s.scanLayer(l, s.any)
	}
	for i, l := range layers {
		if len(s.found) > MaxSecrets { // no more are listed
			break
		}
		if i > 0 {
			l = l.aroundChanges(maxPieces)
		}
		parts := []layer{l}
		if bare, ok := l.withoutMarkup(); ok {
			within := bare
			within.changed = bare.changedInWords()
			s.scanLayer(within.aroundChanges(contextLines), s.takeForm)
			parts = append(parts, bare)
		}
		for _, part := range parts {
			beyond := j.layer(part)
			switch {
			case beyond >= 0 && len(s.found) > 0: // it is refused anyway
				return s.found
			case beyond >= 0:
				return append(s.found, hit{rule: DividedRule,
					description: "Too many words that may be parts of credentials to try them all.", at: beyond, last: len(text)})
			}
		}
		s.endLayer()
	}
	return s.found
}

// scanLayer runs the rules over a layer.
func (s *secretSearch) scanLayer(l layer, report func(secretrules.Finding, layer)) {
	for _, f := range s.rules.FindWithin(s.work, l.text) {
		report(f, l)
	}
	s.endLayer()
}

// any takes a finding of every rule.
func (s *secretSearch) any(f secretrules.Finding, in layer) {
	where := in.originalOffset(f.Start)
	at := ruleLine{f.Rule, s.lines.lineAt(where)}
	if s.seen[at] {
		return
	}
	s.here[at] = true
	s.found = append(s.found,
		hit{f.Rule, f.Description, where, max(where, in.lastOrigin(f.To)), in.originalOffset(f.From)})
}

// takeForm takes only findings of rules that look for one kind of credential, and no names that were put together:
// those are words, or have no digit.
func (s *secretSearch) takeForm(f secretrules.Finding, in layer) {
	if hasForm(f.Rule) && !wordy(f.Secret) && strings.ContainsAny(f.Secret, "0123456789") {
		s.any(f, in)
	}
}

func (s *secretSearch) endLayer() {
	for at := range s.here {
		s.seen[at] = true
	}
	clear(s.here)
}

// aroundChanges returns the part of a layer that its step has decoded, with a number of whole lines before and after.
func (l layer) aroundChanges(lines int) layer {
	var text strings.Builder
	var origins []int
	end := 0
	for _, c := range l.changed {
		if c.end < end {
			continue
		}
		from, to := max(c.start, end), c.end
		for range lines + 1 {
			at := strings.LastIndexByte(l.text[end:from], '\n')
			from = end + max(at, 0)
			if at < 0 {
				break
			}
		}
		if from > end {
			from++
		}
		for range lines + 1 {
			next := strings.IndexByte(l.text[to:], '\n')
			if next < 0 {
				to = len(l.text)
				break
			}
			to += next + 1
		}
		text.WriteString(l.text[from:to])
		origins = append(origins, l.origins[from:to]...)
		end = to
	}
	return layer{text: text.String(), origins: append(origins, l.origins[end])}
}

// partSet finds how much of one credential a group of texts holds in parts.
type partSet struct {
	windows windowSet
	length  int
}

func newPartSet(folded string) partSet {
	size := minPart
	if strings.Trim(folded, "0123456789abcdef") == "" {
		size = minHexPart
	}
	set := partSet{windows: windowSet{size: size, at: map[uint64][]int{}}, length: len(folded)}
	set.windows.add(folded)
	return set
}

// holders says which of the folded texts hold parts of the credential, if all of them together hold at least windowSize
// of its letters and digits and half of it; else nil.
func (p partSet) holders(folded [][]string) []int {
	covered := make([]bool, p.length)
	var holders []int
	for number, layers := range folded {
		holds := false
		for _, text := range layers {
			p.windows.matchWindows(text, func(_, _, offset int) {
				holds = true
				for i := range p.windows.size {
					covered[offset+i] = true
				}
			})
		}
		if holds {
			holders = append(holders, number)
		}
	}
	count := 0
	for _, c := range covered {
		if c {
			count++
		}
	}
	if count < windowSize || 2*count < p.length {
		return nil
	}
	return holders
}

// Spread finds an own credential that is strewn over texts which leave together, such as the files of one proposal: in
// parts of at least 6 letters and digits (8 for credentials of hexadecimal digits), in any order, encoded or reversed.
// It returns the indices of the texts that hold the parts of the first credential found, or nil; len(texts) stands for
// parts that are only there where one text ends and the next begins. A credential that stands in one piece is found
// too; see Secrets.
func (s *Scanner) Spread(texts []string) []int {
	own := s.own.set()
	if len(own.parts) == 0 {
		return nil
	}
	folded, comments := make([][]string, len(texts)), commentForm()
	for i, text := range texts {
		layers, _ := layersOf(unbounded(), text) // what is beyond them, Secrets refuses
		for _, l := range layers {
			folded[i] = append(folded[i], lowerCase.foldText(l.text))
		}
		if bare := comments.ReplaceAllString(text, ""); bare != text {
			folded[i] = append(folded[i], lowerCase.foldText(bare))
		}
	}
	joined := make([]string, len(texts))
	for i := range texts {
		joined[i] = folded[i][0]
	}
	// The end of one text and the beginning of the next may make a part.
	folded = append(folded, []string{strings.Join(joined, "")})
	for _, p := range own.parts {
		if holders := p.holders(folded); holders != nil {
			if last := len(holders) - 1; last > 0 && holders[last] == len(texts) {
				holders = holders[:last]
			}
			return holders
		}
	}
	return nil
}

// commentForm matches comments of HTML, C and shells, which must not divide a credential.
func commentForm() *regexp.Regexp {
	return regexp.MustCompile(`(?s)<!--.*?-->|/\*.*?\*/|(?-s)(?:^|[ \t])(?:#|//|--).*`)
}
