// Package secretrules finds credentials in text by the rules that come with gitleaks: expressions with keywords, a
// least entropy and exceptions. Only the rules are the library's; the search is made for texts of an agent that is not
// trusted, and does in one pass what the library does with 220.
//
// A rule's expression runs only where it can match: from the expression's syntax tree follow literals of which every
// match contains at least one (see literals), all of them are looked for at once with an Aho-Corasick automaton, and
// the expression runs on what is around them. It finds what it would find in the whole text.
package secretrules

import (
	"context"
	"regexp"
	"strings"
	"unicode/utf8"

	ahocorasick "github.com/BobuSumisu/aho-corasick"
)

// Finding is a place in a text that a rule matches.
type Finding struct {
	Rule        string // the rule's id
	Description string // what the rule looks for, one sentence
	Start       int    // the byte offset of the match
	Secret      string // the part of the match that is the credential
	From, To    int    // the byte offsets of the credential, To excluded
	match       string
}

// Set is the rules, ready to be run. It is safe for concurrent use.
type Set struct {
	rules      []rule
	exceptions []exception // for the findings of all rules
	harmless   func(rule, value string) bool
	literals   *ahocorasick.Trie
	uses       [][]use // of each literal
}

type rule struct {
	id, description string
	expression      func() *regexp.Regexp // made when it is first needed: most rules never are
	// the group of the expression that is the credential; 0 is the first that is not empty
	group      int
	entropy    float64  // in bits a character; what has no more is no credential. 0 means any
	keywords   []string // in lower case; a text without one of them is not looked at; none: any text is
	exceptions []exception
	reach      literals
	opening    func() *opening // nil if there is none
}

// exception is an expression for values that are no credentials.
type exception struct {
	match      bool // it is for the whole match, not for the credential
	expression *regexp.Regexp
}

// lists is a set of the lists of literals.also, bit by bit.
type lists uint64

// use says what it means for a rule that a literal stands in a text.
type use struct {
	rule    int
	keyword bool // the text is to be looked at
	reach   bool // the rule may match here
	also    lists
}

// Find lists what the rules find in text, by rule and by place. A rule that only guesses does not report what another
// one finds in the same line. It stops when ctx ends; the error is that of ctx.
func (s *Set) Find(ctx context.Context, text string) ([]Finding, error) {
	places := s.places(text)
	var found []Finding
	for i := range s.rules {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for _, place := range places[i] {
			found = s.matches(&s.rules[i], text, place, found)
		}
	}
	return withoutGuesses(found, text), nil
}

const (
	// minAgain is how many bytes of a part of text are searched again at least because what was found is no credential,
	// and moreAgain how many times its length. After that, what is found counts.
	minAgain, moreAgain = 64 << 10, 16
	// beyondLine and beyondBlock are how many bytes behind a match that is none another one may end that begins within it:
	// if the match is in one line, and if it is not.
	beyondLine, beyondBlock = 256, 4 << 10
)

// matches adds the findings of a rule in a part of text. Where a match is no credential, another one may end before the
// value that is none, or begin within the match: both are looked for.
func (s *Set) matches(r *rule, text string, place span, found []Finding) []Finding {
	again := minAgain + moreAgain*(place.end-place.start)
	seen := map[span]bool{}
	for parts := []span{place}; len(parts) > 0; {
		part := parts[len(parts)-1]
		parts = parts[:len(parts)-1]
		for _, at := range r.expression().FindAllStringIndex(text[part.start:part.end], -1) {
			f := r.finding(text, part.start+at[0], part.start+at[1])
			where := span{f.From, f.To}
			switch {
			case r.entropy != 0 && entropy(f.Secret) <= r.entropy, seen[where]:
			case s.none(r, f) && again > 0:
				seen[where] = true
				for _, rest := range []span{{f.Start, f.From}, {afterWord(text, f.Start), min(part.end, f.To+f.beyond())}} {
					if rest.start < rest.end {
						again -= rest.end - rest.start
						parts = append(parts, rest)
					}
				}
			default:
				seen[where] = true
				found = append(found, f)
			}
		}
	}
	return found
}

func (f Finding) beyond() int {
	if strings.Contains(f.match, "\n") {
		return beyondBlock
	}
	return beyondLine
}

// finding is a match of a rule from start to end.
func (r *rule) finding(text string, start, end int) Finding {
	match := strings.TrimLeft(text[start:end], "\n")
	f := Finding{Rule: r.id, Description: r.description, Start: end - len(match), match: strings.TrimRight(match, "\n")}
	from, to := r.secret(f.match)
	f.Secret, f.From, f.To = f.match[from:to], f.Start+from, f.Start+to
	return f
}

// none says whether what a rule has found is known to be no credential.
func (s *Set) none(r *rule, f Finding) bool {
	return excepted(f, s.exceptions) || excepted(f, r.exceptions) || s.harmless(f.Rule, f.Secret)
}

// afterWord is where the word ends that begins at an offset, and at least one character behind it.
func afterWord(text string, at int) int {
	_, size := utf8.DecodeRuneInString(text[at:])
	at += size
	for at < len(text) && (text[at] == '_' || text[at] >= '0' && text[at] <= '9' || text[at]|0x20 >= 'a' &&
		text[at]|0x20 <= 'z') {
		at++
	}
	return at
}

// secret is where in a match the credential is.
func (r *rule) secret(match string) (from, to int) {
	groups := r.expression().FindStringSubmatchIndex(match)
	if r.group > 0 && len(groups) > 0 {
		return max(groups[2*r.group], 0), max(groups[2*r.group+1], 0)
	}
	for i := 2; i < len(groups); i += 2 {
		if groups[i] < groups[i+1] {
			return groups[i], groups[i+1]
		}
	}
	return 0, len(match)
}

func excepted(f Finding, exceptions []exception) bool {
	for _, e := range exceptions {
		value := f.Secret
		if e.match {
			value = f.match
		}
		if value != "" && e.expression.MatchString(value) {
			return true
		}
	}
	return false
}

// withoutGuesses leaves out what a rule that only guesses found inside of what another one found in the same line.
func withoutGuesses(found []Finding, text string) []Finding {
	var kinds []Finding // of the rules that do not guess
	for _, f := range found {
		if !guesses(f.Rule) {
			kinds = append(kinds, f)
		}
	}
	kept := found[:0:0]
	for _, f := range found {
		if !guesses(f.Rule) || !known(f, kinds, text) {
			kept = append(kept, f)
		}
	}
	return kept
}

// guesses says whether a rule looks for anything unlike prose behind a telling name, rather than for one kind of
// credential.
func guesses(rule string) bool { return strings.Contains(rule, "generic") }

func known(guess Finding, kinds []Finding, text string) bool {
	for _, f := range kinds {
		if !strings.Contains(f.Secret, guess.Secret) {
			continue
		}
		from, to := min(f.Start, guess.Start), max(f.Start, guess.Start)
		if !strings.Contains(text[from:to], "\n") {
			return true
		}
	}
	return false
}

// Expressions are the expressions of the rules, in their order, for those who compare what is found with another
// search.
func (s *Set) Expressions() []string {
	all := make([]string, 0, len(s.rules))
	for _, r := range s.rules {
		all = append(all, r.expression().String())
	}
	return all
}
