package content

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

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
// Two files of 4 KB take some 6 ms and a MiB of prose 0.6 s (one core of an AMD EPYC). A MiB made to be slow, with the
// keywords of all 230 rules or of nothing but credentials, takes up to 20 s: give ctx a deadline. It is looked at
// between rules, so the call may outlast it by the time of one rule, 0.1 s a MiB for most.
func (s *Scanner) Secrets(ctx context.Context, name, text string) ([]Secret, error) {
	rules, err := s.rules()
	if err != nil {
		return nil, err
	}
	layers, beyond := layersOf(text)
	found := ownSecrets(s.own.set().spans(layers), text)
	if beyond >= 0 {
		line, column := position(text[:beyond])
		found = append(found, Secret{Rule: EncodedRule,
			Description: "Text that is encoded too often, or unpacks to too much, to look into.",
			Line:        line, Column: column, LastLine: 1 + strings.Count(text, "\n")})
	}
	known, err := knownSecrets(ctx, rules, layers)
	if err != nil {
		return nil, fmt.Errorf("scan %q for secrets: %w", name, err)
	}
	found = append(found, known...)
	slices.SortFunc(found, func(a, b Secret) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column, strings.Compare(a.Rule, b.Rule), b.LastLine-a.LastLine)
	})
	found = slices.CompactFunc(found, func(a, b Secret) bool {
		return a.Line == b.Line && a.Column == b.Column &&
			a.Rule == b.Rule
	})
	return found[:min(len(found), MaxSecrets)], nil
}

// Redact replaces every own credential in text, and 20 and more letters and digits in a row of one, with "[redacted]":
// in the forms that Secrets finds, but for those that only decoding shows other than of escapes. It needs no rules and
// costs little for the length of a log line or an error text. The first and the last character of an encoded credential
// may stay where they also encode a neighbour.
func (s *Scanner) Redact(text string) string {
	var b strings.Builder
	at := 0
	for _, found := range s.own.set().spans(unescapedLayers(layer{text: text})) {
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

// ownSecrets lists the own credentials that stand at spans of text.
func ownSecrets(spans []span, text string) []Secret {
	var found []Secret
	for _, where := range spans[:min(len(spans), MaxSecrets)] {
		line, column := position(text[:where.start])
		last, _ := position(text[:max(where.start, where.end-1)])
		found = append(found, Secret{
			Rule:        OwnTokenRule,
			Description: "A credential of this server itself.",
			Line:        line,
			Column:      column,
			LastLine:    last,
		})
	}
	return found
}
