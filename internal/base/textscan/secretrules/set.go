// Package secretrules finds credentials in text by the rules that come with gitleaks: expressions with keywords, a
// least entropy and exceptions. Only the rules are the library's; the search is made for texts of an agent that is not
// trusted, and does in one pass what the library does with 220.
//
// A rule's expression runs only where it can match: from the expression's syntax tree follow literals of which every
// match contains at least one (see literals), all of them are looked for at once (literalSearch), and the
// expression runs on what is around them. It finds what it would find in the whole text.
package secretrules

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
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
	literals   *literalSearch
	uses       [][]use // of each literal
}

type rule struct {
	id, description string
	expression      func() *regexp.Regexp // made when it is first needed: most rules never are
	// the group of the expression that is the credential; 0 is the first that is not empty
	group      int
	entropy    float64  // in bits a character; a value with no more is not a credential. 0 means any
	keywords   []string // in lower case; a text without one of them is not looked at; none: any text is
	exceptions []exception
	reach      literals
	opening    func() *automaton // nil if there is none
	lead       *lead             // nil if there is none
}

// exception is an expression for values that are not credentials.
type exception struct {
	match      bool                  // it is for the whole match, not for the credential
	expression func() *regexp.Regexp // made when it is first needed
}

// literalLists is a set of the lists of literals.also, bit by bit.
type literalLists uint64

// use says what it means for a rule that a literal stands in a text.
type use struct {
	rule    int
	keyword bool // the text is to be looked at
	reach   bool // the rule may match here
	also    literalLists
}

// Find lists what the rules find in text, by rule and by place. A rule that only guesses does not report what another
// one finds in the same line. It stops when ctx ends; the error is that of ctx.
func (s *Set) Find(ctx context.Context, text string) ([]Finding, error) {
	w := NewWork(ctx, math.MaxInt)
	found := s.FindWithin(w, text)
	return found, w.Err()
}

// FindWithin is Find as far as there is work left. The caller asks w whether there was enough.
func (s *Set) FindWithin(w *Work, text string) []Finding {
	places := s.places(w, text, false)
	var found []Finding
	for i := range s.rules {
		for _, place := range places[i] {
			found = s.addFindings(w, &s.rules[i], text, place, found)
		}
	}
	return withoutGuesses(found, text)
}

const (
	// minAgain and moreAgain bound the repeated search of a part of text after matches that were not credentials: at least
	// minAgain bytes, and moreAgain times its length. Beyond that, every match counts as a finding.
	minAgain, moreAgain = 64 << 10, 16
	// beyondLine and beyondBlock are how many bytes behind a match that is none another one may end that begins within it:
	// if the match is in one line, and if it is not.
	beyondLine, beyondBlock = 256, 4 << 10
)

// searchPart is a span in which matches are searched that begin before an offset.
type searchPart struct {
	byteRange
	until int
}

// findingCost is the cost of a finding: a text with many is refused, so its search may end early.
const findingCost = 20_000

// addFindings adds the findings of a rule in a part of text. If a match is not a credential, another one may end before
// the harmless value, or begin within the match: both are searched for.
func (s *Set) addFindings(w *Work, r *rule, text string, place byteRange, found []Finding) []Finding {
	again := minAgain + moreAgain*(place.end-place.start)
	seen := map[byteRange]bool{}
	for parts := []searchPart{{place, place.end}}; len(parts) > 0; {
		p := parts[len(parts)-1]
		parts = parts[:len(parts)-1]
		for at := range r.matchPart(w, text, p) {
			f := r.finding(text, at.start, at.end)
			where := byteRange{f.From, f.To}
			switch {
			case r.entropy != 0 && entropy(f.Secret) <= r.entropy, seen[where]:
			case s.none(r, f) && again > 0:
				seen[where] = true
				for _, rest := range []searchPart{
					{byteRange{f.Start, f.From}, f.From},
					{byteRange{afterWord(text, f.Start), min(p.end, f.To+f.beyond())}, at.end},
				} {
					if rest.start < rest.until {
						again -= rest.end - rest.start
						parts = append(parts, rest)
					}
				}
			default:
				w.Spend(findingCost)
				seen[where] = true
				found = append(found, f)
			}
		}
	}
	return found
}

// matchPart yields the matches of a part, as far as there is work left.
func (r *rule) matchPart(w *Work, text string, p searchPart) func(yield func(byteRange) bool) {
	const matchCost, least, batch = 24_000, 128, 500 // least in bytes
	byteCost := 40
	if r.reach.before.chars != 0 && r.lead == nil { // a match may begin at many places before the literal
		byteCost = 350
	}
	return func(yield func(byteRange) bool) {
		if p.until < p.end { // most often there is none that begins there, and the next one is near
			if !w.Spend(min(p.end-p.start, least) * byteCost) {
				return
			}
			first := r.all(text, p.byteRange, 1)
			if len(first) == 0 || first[0].start >= p.until {
				return
			}
		}
		if !w.Spend((p.end - p.start) * byteCost) {
			return
		}
		for more := true; more; { // behind a batch, a match may begin that needs another character before it
			all := r.all(text, p.byteRange, batch)
			for _, m := range all {
				if m.start >= p.until || !w.Spend(matchCost) || !yield(m) {
					return
				}
			}
			if more = len(all) == batch; more {
				p.start = all[batch-1].end
			}
		}
	}
}

// searched is what is searched for of the rule's expression: all but its lead.
func (r *rule) searched() *regexp.Regexp {
	if r.lead != nil {
		return r.lead.rest()
	}
	return r.expression()
}

// all returns the first matches of the rule's expression in a part of a text.
func (r *rule) all(text string, part byteRange, most int) []byteRange {
	var all []byteRange
	last := part.start
	for _, m := range r.searched().FindAllStringIndex(text[part.start:part.end], most) {
		found := byteRange{part.start + m[0], part.start + m[1]}
		if r.lead != nil {
			found.start = r.lead.before(text[last:found.start]) + last
		}
		all, last = append(all, found), found.end
	}
	return all
}

func (f Finding) beyond() int {
	if strings.Contains(f.match, "\n") {
		return beyondBlock
	}
	return beyondLine
}

// finding returns a match of a rule from start to end.
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

// afterWord returns the end of the word that begins at an offset, at least one character behind it.
func afterWord(text string, at int) int {
	_, size := utf8.DecodeRuneInString(text[at:])
	at += size
	for at < len(text) && (text[at] == '_' || text[at] >= '0' && text[at] <= '9' || text[at]|0x20 >= 'a' &&
		text[at]|0x20 <= 'z') {
		at++
	}
	return at
}

// secret returns the place of the credential in a match.
func (r *rule) secret(match string) (from, to int) {
	groups := r.searched().FindStringSubmatchIndex(match)
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
		if value != "" && e.expression().MatchString(value) {
			return true
		}
	}
	return false
}

// withoutGuesses leaves out what a rule that only guesses found inside of what another one found in the same line.
func withoutGuesses(found []Finding, text string) []Finding {
	const most = 100 // of a line that are compared: a text with more is refused whatever else it has
	lines := &lineBreaks{text: text}
	kinds := map[int][]string{} // what rules found that do not guess, by line
	for _, f := range found {
		if line := lines.countBefore(f.Start); !guesses(f.Rule) && len(kinds[line]) < most {
			kinds[line] = append(kinds[line], f.Secret)
		}
	}
	return slices.DeleteFunc(found, func(f Finding) bool {
		return guesses(f.Rule) && slices.ContainsFunc(kinds[lines.countBefore(f.Start)],
			func(secret string) bool { return strings.Contains(secret, f.Secret) })
	})
}

// guesses says whether a rule looks for anything unlike prose behind a telling name, rather than for one kind of
// credential.
func guesses(rule string) bool { return strings.Contains(rule, "generic") }

// Expressions returns the expressions of the rules, in their order, for a comparison with another search.
func (s *Set) Expressions() []string {
	all := make([]string, 0, len(s.rules))
	for _, r := range s.rules {
		all = append(all, r.expression().String())
	}
	return all
}

// Work bounds a search by what it costs, which unlike time is the same on every machine, and by its context. A unit is
// about a nanosecond of a core of 2024.
type Work struct {
	ctx       context.Context
	left      int
	unchecked int // units since the context was looked at
	err       error
}

// NewWork returns a Work of the given units, until ctx ends.
func NewWork(ctx context.Context, units int) *Work {
	return &Work{ctx: ctx, left: units, err: ctx.Err()}
}

// Spend takes units. It reports whether they were left, and the context has not ended.
func (w *Work) Spend(units int) bool {
	const often = 1 << 20 // units after which the context is looked at
	if w.left -= units; w.left < 0 {
		w.left = -1
	}
	if w.unchecked += units; w.unchecked >= often && w.err == nil {
		w.unchecked, w.err = 0, w.ctx.Err()
	}
	return w.left >= 0 && w.err == nil
}

// Spent reports whether there was too little.
func (w *Work) Spent() bool { return w.left < 0 }

// Err says why the context ended; nil if it has not.
func (w *Work) Err() error {
	if w.err == nil {
		w.err = w.ctx.Err()
	}
	return w.err
}

// ruleFile is a file of rules, as gitleaks reads it, without what only a scan of folders and histories needs.
type ruleFile struct {
	Rules     []fileRule
	Allowlist allowlist
	// Allowlists is a newer form of Allowlist.
	Allowlists []allowlist
}

type fileRule struct {
	ID, Description, Regex string
	SecretGroup            int
	Entropy                float64
	Keywords               []string
	Allowlists             []allowlist
	Required               []any
	SkipReport             bool
}

type allowlist struct {
	Condition, RegexTarget string
	TargetRules            []string
	Paths, Regexes         []string
}

// Load makes a set from rules in the form of gitleaks (TOML), made fit for text whose author may want to hide
// something. Upstream's exceptions serve people who scan their own code; here they would be switches for the agent:
//
//   - exceptions and limits by file path are dropped, so that a Kubernetes secret is found in Markdown too;
//   - stop words (1,446 of them, "example" among them, anywhere in a value) are dropped;
//   - exceptions for a value must match the value whole, and exceptions for a name must begin in the name;
//   - exceptions for a line are dropped, and comments such as "gitleaks:allow" count for nothing;
//   - where a credential has to end before white space or a quote, it may end before any character that is not part of
//     it, but for rules that only guess.
//
// harmless reports whether a value that a rule has found is harmless, and so not a credential; nil means that none is.
//
// It is an error if there are no rules, or if one uses a feature that this package lacks: rules that need another
// rule's finding, and exceptions for some rules outside of them.
func Load(rules string, harmless func(rule, value string) bool) (*Set, error) {
	var f ruleFile
	if err := toml.Unmarshal([]byte(rules), &f); err != nil {
		return nil, fmt.Errorf("load the secret rules: %w", err)
	}
	if harmless == nil {
		harmless = func(string, string) bool { return false }
	}
	s := &Set{harmless: harmless}
	for _, r := range f.Rules {
		if r.Regex == "" {
			continue // judges the path only
		}
		if err := s.addRule(r); err != nil {
			return nil, fmt.Errorf("load the secret rule %q: %w", r.ID, err)
		}
	}
	if len(s.rules) == 0 {
		return nil, errors.New("load the secret rules: there are none")
	}
	for _, a := range append(f.Allowlists, f.Allowlist) {
		if len(a.TargetRules) > 0 {
			return nil, errors.New("load the secret rules: exceptions with target rules are not supported")
		}
		a.Paths = nil // of any kind of file
		added, err := exceptionsOf([]allowlist{a})
		if err != nil {
			return nil, fmt.Errorf("load the secret rules: exceptions: %w", err)
		}
		s.exceptions = append(s.exceptions, added...)
	}
	s.index()
	return s, nil
}

func (s *Set) addRule(r fileRule) error {
	if len(r.Required) > 0 || r.SkipReport {
		return errors.New("rules that need another rule's finding are not supported")
	}
	r.Regex = WithWiderEnd(r.ID, r.Regex)
	tree, err := syntax.Parse(r.Regex, syntax.Perl)
	if err != nil {
		return err
	}
	if r.SecretGroup > tree.MaxCap() {
		return fmt.Errorf("its expression has no group %d", r.SecretGroup)
	}
	exceptions, err := exceptionsOf(r.Allowlists)
	if err != nil {
		return err
	}
	for i, keyword := range r.Keywords {
		r.Keywords[i] = strings.ToLower(keyword)
	}
	s.rules = append(s.rules, rule{
		id: r.ID, description: r.Description, group: r.SecretGroup, entropy: r.Entropy, keywords: r.Keywords,
		exceptions: exceptions,
		reach:      shapeOf(tree).best(),
		lead:       newLead(tree),
		expression: once(r.Regex),
		opening:    sync.OnceValue(func() *automaton { return newOpening(tree) }),
	})
	return nil
}

// once compiles an expression that was parsed when it is first needed.
func once(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// WithWiderEnd lets a credential end before brackets, commas and full stops, as in "(token)". What a rule only guesses
// is not worth that.
func WithWiderEnd(rule, expression string) string {
	const end, wider = "(?:[\\x60'\"\\s;]|\\\\[nr]|$)", `(?:[^0-9A-Za-z_/+=.-]|\.(?:[^0-9A-Za-z]|$)|$)`
	if before, found := strings.CutSuffix(expression, end); found && !guesses(rule) && rule != "hashicorp-tf-password" {
		return before + wider
	}
	return expression
}

// exceptionsOf leaves out and changes exceptions as Load says.
func exceptionsOf(lists []allowlist) ([]exception, error) {
	var all []exception
	for _, a := range lists {
		byPath := len(a.Paths) > 0 && strings.EqualFold(a.Condition, "and")
		if byPath || a.RegexTarget == "line" {
			continue
		}
		for _, expression := range a.Regexes {
			match := a.RegexTarget == "match"
			if match {
				expression = FromName(expression)
			} else {
				expression = WholeValue(expression)
			}
			if _, err := syntax.Parse(expression, syntax.Perl); err != nil {
				return nil, err
			}
			all = append(all, exception{match: match, expression: once(expression)})
		}
	}
	return all, nil
}

// WholeValue makes an expression match a value from end to end or not at all.
func WholeValue(expression string) string { return `\A(?:` + expression + `)\z` }

// FromName makes an expression for a whole match ("name = value") begin before the separator, so that the value alone
// cannot satisfy it.
func FromName(expression string) string { return `\A[^=:>|,]{0,90}?(?:` + expression + `)` }

// index makes the automaton that finds the rules' keywords and literals.
func (s *Set) index() {
	uses := map[string][]use{}
	for i, r := range s.rules {
		mine := map[string]use{}
		for _, keyword := range r.keywords {
			mine[keyword] = use{rule: i, keyword: true}
		}
		for _, literal := range r.reach.choices {
			u := mine[literal]
			u.rule, u.reach = i, true
			mine[literal] = u
		}
		for list, choices := range r.reach.also {
			for _, literal := range choices {
				u := mine[literal]
				u.rule, u.also = i, u.also|1<<list
				mine[literal] = u
			}
		}
		for text, u := range mine {
			uses[text] = append(uses[text], u)
		}
	}
	texts := slices.Sorted(maps.Keys(uses))
	for _, text := range texts {
		s.uses = append(s.uses, uses[text])
	}
	s.literals = newLiteralSearch(texts)
}

// entropy returns Shannon's entropy of a value, in bits a byte, each rune being a symbol, as the rules' limits are
// meant.
func entropy(value string) float64 {
	counts := map[rune]int{}
	for _, r := range value {
		counts[r]++
	}
	bits := 0.0
	for _, n := range counts {
		frequency := float64(n) / float64(len(value))
		bits -= frequency * math.Log2(frequency)
	}
	return bits
}
