package secretrules

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"

	ahocorasick "github.com/BobuSumisu/aho-corasick"
	"github.com/pelletier/go-toml/v2"
)

// file is a file of rules, as gitleaks reads it, without what only a scan of folders and histories needs.
type file struct {
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
	var f file
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
		expression: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(r.Regex) }), // parsed above
		opening:    sync.OnceValue(func() *opening { return newOpening(tree) }),
	})
	return nil
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
			compiled, err := regexp.Compile(expression)
			if err != nil {
				return nil, err
			}
			all = append(all, exception{match: match, expression: compiled})
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
	builder := ahocorasick.NewTrieBuilder()
	for _, text := range slices.Sorted(maps.Keys(uses)) {
		builder.AddString(text)
		s.uses = append(s.uses, uses[text])
	}
	s.literals = builder.Build()
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
