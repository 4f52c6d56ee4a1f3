package content

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/content/secretrules"
)

const (
	// MaxSecrets is the most findings that Secrets returns.
	MaxSecrets = 50
	// OwnTokenRule is the rule of a Secret that is one of this server's own credentials.
	OwnTokenRule = "own-token"
	// EncodedRule is the rule of encoded text that was not looked into: it is encoded more than five times, or unpacks to
	// more than a MiB beside three times the size of the text.
	EncodedRule = "encoded-text"
	// DividedRule is the rule of text with so many words that may be parts of credentials that not all ways to put them
	// together were tried: more than fills the size of the text, or a MiB if it is smaller.
	DividedRule = "divided-text"
	// CostlyRule is the rule of text whose search costs more than is done for a text of its length: it has far more of
	// what begins like a credential than texts that people write.
	CostlyRule = "costly-text"
)

const (
	// costOfByte is how much work is done for each byte of a text, in units of secretrules.Work. They are an estimate that
	// is high for most texts; with this bound a MiB takes at most a second of a core of 2024, see BenchmarkHostileTexts.
	costOfByte = 850
	// leastSearched is the length in bytes of the shortest text for which as much work is done.
	leastSearched = 96 << 10
)

// Secret is where a credential stands. It never holds the credential nor a part of it.
type Secret struct {
	Rule        string // the rule of gitleaks or of our own, OwnTokenRule, EncodedRule or DividedRule
	Description string // what the rule looks for, one sentence
	Line        int    // 1-based; where the match begins, for an encoded secret where the encoded text begins
	Column      int    // 1-based, in runes
	// LastLine is where what was found ends, for an encoded secret where the encoded text ends. For text that was not
	// looked into it is the last line of all.
	LastLine int
}

// Scanner finds credentials in text: those that the rules of gitleaks know, and this server's own. It is safe for
// concurrent use. The rules are loaded by the first call of Secrets (some 10 ms and 11 MB allocated), never before.
type Scanner struct {
	own   ownCredentials
	rules func() (*secretrules.Set, error)
}

// NewScanner makes a scanner that also knows own, the values of this server's own credentials. Surrounding white space
// is dropped; values of fewer than 8 bytes that are not white space are ignored: they would be found everywhere.
func NewScanner(own []string) *Scanner {
	s := &Scanner{rules: sync.OnceValues(loadRules)}
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
// Two files of 4 KB take some 4 ms and a MiB of prose 0.3 s (one core of an AMD EPYC). No text takes more than a second
// a MiB: beyond that it is of CostlyRule. ctx is looked at after some milliseconds each.
func (s *Scanner) Secrets(ctx context.Context, name, text string) ([]Secret, error) {
	rules, err := s.rules()
	if err != nil {
		return nil, err
	}
	w := secretrules.NewWork(ctx, costOfByte*max(len(text), leastSearched))
	layers, beyond := layersOf(w, text)
	var found []hit
	for _, where := range s.own.set().spans(layers) {
		found = append(found, hit{OwnTokenRule, "A credential of this server itself.", where.start,
			max(where.start, where.end-1)})
	}
	if beyond >= 0 {
		found = append(found, hit{EncodedRule, "Text that is encoded too often, or unpacks to too much, to look into.",
			beyond, len(text)})
	}
	found = append(found, knownSecrets(w, rules, layers)...)
	if w.Spent() {
		found = append(found, hit{CostlyRule, "Text that has too much of what begins like a credential to search it all.",
			0, len(text)})
	}
	if err := w.Err(); err != nil {
		return nil, fmt.Errorf("scan %q for secrets: %w", name, err)
	}
	return firstOf(found, text), nil
}

// unbounded is work for what is short, or was searched already.
func unbounded() *secretrules.Work { return secretrules.NewWork(context.Background(), math.MaxInt) }

// firstOf are the first MaxSecrets findings in a text, one for each rule and place.
func firstOf(found []hit, text string) []Secret {
	slices.SortFunc(found, func(a, b hit) int {
		return cmp.Or(a.at-b.at, strings.Compare(a.rule, b.rule), b.last-a.last)
	})
	found = slices.CompactFunc(found, func(a, b hit) bool { return a.at == b.at && a.rule == b.rule })
	lines := newLineIndex(text)
	var out []Secret
	for _, h := range found[:min(len(found), MaxSecrets)] {
		line, column := lines.position(h.at)
		out = append(out, Secret{h.rule, h.description, line, column, max(line, lines.line(h.last))})
	}
	return out
}

// Withheld stands where Hide has taken out what looks like a secret.
const Withheld = "[withheld: looks like a secret]"

// Hide replaces words of a short text that hold what looks like a credential of anybody, such as the name of an
// argument or of a repository that a caller gave. White space and quotes end a word. A text that cannot be searched
// is withheld.
func (s *Scanner) Hide(text string) string {
	const shortest = 16 // in bytes; no rule finds less in a word that stands alone
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
