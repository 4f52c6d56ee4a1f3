// Package secretrules finds credentials in text by the rules that come with gitleaks: expressions with keywords, a least
// entropy and exceptions. Only the rules are the library's; the search is made for texts of an agent that is not trusted, and does in one pass what
// the library does with 220.
//
// A rule's expression runs only where it can match: from the expression's syntax tree follow literals of which every match
// contains at least one (see literals), all of them are looked for at once with an Aho-Corasick automaton, and the expression
// runs on what is around them. It finds what it would find in the whole text.
package secretrules

import (
	"context"
	"regexp"
	"strings"

	ahocorasick "github.com/BobuSumisu/aho-corasick"
)

// Finding is a place in a text that a rule matches.
type Finding struct {
	Rule        string // the rule's id
	Description string // what the rule looks for, one sentence
	Start       int    // the byte offset of the match
	Secret      string // the part of the match that is the credential
	match       string
}

// Set is the rules, ready to be run. It is safe for concurrent use.
type Set struct {
	rules      []rule
	exceptions []exception // for the findings of all rules
	literals   *ahocorasick.Trie
	uses       [][]use // of each literal
}

type rule struct {
	id, description string
	expression      func() *regexp.Regexp // made when it is first needed: most rules never are
	group           int                   // the group of the expression that is the credential; 0 is the first that is not empty
	entropy         float64               // in bits a character; what has no more is no credential. 0 means any
	keywords        []string              // in lower case; a text without one of them is not looked at; none: any text is
	exceptions      []exception
	reach           literals
	opening         func() *opening // nil if there is none
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

// Find lists what the rules find in text, by rule and by place. A rule that only guesses does not report what another one
// finds in the same line. It stops when ctx ends; the error is that of ctx.
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

// matches adds the findings of a rule in a part of text.
func (s *Set) matches(r *rule, text string, place span, found []Finding) []Finding {
	part := text[place.start:place.end]
	for _, at := range r.expression().FindAllStringIndex(part, -1) {
		match := strings.TrimLeft(part[at[0]:at[1]], "\n")
		f := Finding{Rule: r.id, Description: r.description, Start: place.start + at[1] - len(match), match: strings.TrimRight(match, "\n")}
		f.Secret = r.secret(f.match)
		if r.entropy != 0 && entropy(f.Secret) <= r.entropy || excepted(f, s.exceptions) || excepted(f, r.exceptions) {
			continue
		}
		found = append(found, f)
	}
	return found
}

// secret is the part of a match that is the credential.
func (r *rule) secret(match string) string {
	groups := r.expression().FindStringSubmatch(match)
	if len(groups) < 2 {
		return match
	}
	if r.group > 0 {
		return groups[r.group]
	}
	for _, group := range groups[1:] {
		if group != "" {
			return group
		}
	}
	return match
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
	kept := found[:0:0]
	for _, f := range found {
		if !guesses(f.Rule) || !known(f, found, text) {
			kept = append(kept, f)
		}
	}
	return kept
}

// guesses says whether a rule looks for anything unlike prose behind a telling name, rather than for one kind of credential.
func guesses(rule string) bool { return strings.Contains(rule, "generic") }

func known(guess Finding, found []Finding, text string) bool {
	for _, f := range found {
		if guesses(f.Rule) || !strings.Contains(f.Secret, guess.Secret) {
			continue
		}
		from, to := min(f.Start, guess.Start), max(f.Start, guess.Start)
		if !strings.Contains(text[from:to], "\n") {
			return true
		}
	}
	return false
}
