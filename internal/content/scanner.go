package content

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/zricethezav/gitleaks/v8/detect"
	"github.com/zricethezav/gitleaks/v8/report"
)

const (
	// MaxSecrets is the most findings that Secrets returns.
	MaxSecrets = 50
	// OwnTokenRule is the rule of a Secret that is one of this server's own credentials.
	OwnTokenRule = "own-token"
)

// Secret is where a credential stands. It never holds the credential nor a part of it.
type Secret struct {
	Rule        string // the gitleaks rule, or OwnTokenRule
	Description string // what the rule looks for, one sentence
	Line        int    // 1-based; where the match begins, for an encoded secret where the encoded text begins
	Column      int    // 1-based, in runes
}

// Scanner finds credentials in text: those that the rules of gitleaks know, and this server's own. It is safe for
// concurrent use. The rules are loaded by the first call of Secrets (some 25 ms and 16 MB allocated), never before.
type Scanner struct {
	own   []needle
	rules func() (*detect.Detector, error)
}

// NewScanner makes a scanner that also knows own, the values of this server's own credentials. Surrounding white space
// is dropped; values of fewer than 8 bytes that are not white space are ignored: they would be found everywhere.
func NewScanner(own []string) *Scanner {
	return &Scanner{own: needles(own), rules: sync.OnceValues(loadRules)}
}

// Secrets lists the first MaxSecrets credentials in text by position. name says in errors which text was scanned; no
// rule and no exception depends on it, nor on comments in text (see loadRules). Encoded text is decoded (base64, hex,
// percent, \u escapes) up to three times.
//
// Own credentials are found as they are, base64-encoded at any offset (both alphabets), hex-encoded and
// percent-encoded, also when white space or punctuation is strewn in; see needles.
//
// An error means that text was not scanned to the end: the rules could not be loaded (this holds for every later call
// too), ctx ended, or the library failed. Callers refuse then.
//
// Two files of 4 KB take some 7 ms and a MiB of prose 0.6 s (one core of an AMD EPYC). A MiB made to be slow, with the
// keywords of all 220 rules or of nothing but credentials, takes up to 20 s: give ctx a deadline. It is looked at
// between rules, so the call may outlast it by the time of one rule, 0.1 s a MiB for most.
func (s *Scanner) Secrets(ctx context.Context, name, text string) ([]Secret, error) {
	detector, err := s.rules()
	if err != nil {
		return nil, err
	}
	found := ownSecrets(s.own, text)
	reports, err := scan(ctx, detector, text)
	if err != nil {
		return nil, fmt.Errorf("scan %q for secrets: %w", name, err)
	}
	lines := lineStarts(text)
	for _, r := range reports {
		if heuristic(r.RuleID) && identifier(r.Secret) {
			continue
		}
		line, column := reportPosition(lines, text, r)
		found = append(found, Secret{Rule: r.RuleID, Description: r.Description, Line: line, Column: column})
	}
	slices.SortFunc(found, func(a, b Secret) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column, strings.Compare(a.Rule, b.Rule))
	})
	found = slices.Compact(found)
	return found[:min(len(found), MaxSecrets)], nil
}

// Redact replaces every own credential in text, in the forms that Secrets finds, with "[redacted]". It needs no rules
// and costs little for the length of a log line or an error text. The first and the last character of an encoded
// credential may stay where they also encode a neighbour.
func (s *Scanner) Redact(text string) string {
	var b strings.Builder
	at := 0
	for _, found := range ownSpans(s.own, text) {
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

// ownSecrets lists the own credentials in text.
func ownSecrets(own []needle, text string) []Secret {
	var found []Secret
	for _, where := range ownSpans(own, text) {
		line, column := position(text[:where.start])
		found = append(found, Secret{
			Rule:        OwnTokenRule,
			Description: "A credential of this server itself.",
			Line:        line,
			Column:      column,
		})
		if len(found) == MaxSecrets {
			break
		}
	}
	return found
}

// scan runs the rules. A panic of the library is an error: a text that it cannot read is not a clean text.
func scan(ctx context.Context, detector *detect.Detector, text string) (reports []report.Finding, err error) {
	defer func() {
		if p := recover(); p != nil {
			reports, err = nil, fmt.Errorf("the scanner failed (%T)", p) // the value itself may quote text
		}
	}()
	// No file path: the library's exceptions and rules by path stay out of play.
	reports = detector.DetectContext(ctx, detect.Fragment{Raw: text}) //nolint:staticcheck // version 8 has no other
	if err := ctx.Err(); err != nil {
		return nil, err // the library stops early without saying so
	}
	return reports, nil
}

// lineStarts gives the byte offset of each line of text.
func lineStarts(text string) []int {
	starts := []int{0}
	for at := 0; ; {
		newline := strings.IndexByte(text[at:], '\n')
		if newline < 0 {
			return starts
		}
		at += newline + 1
		starts = append(starts, at)
	}
}

// reportPosition translates a position of the library: lines from 0, columns in bytes that count from 1 on the first
// line and from 2 on all others.
func reportPosition(starts []int, text string, r report.Finding) (line, column int) {
	row := min(max(r.StartLine, 0), len(starts)-1)
	offset := r.StartColumn - 1
	if row > 0 {
		offset--
	}
	start := starts[row]
	end := min(start+max(offset, 0), len(text))
	return row + 1, 1 + utf8.RuneCountInString(text[start:end])
}
