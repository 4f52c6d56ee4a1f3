package secretrules

import (
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

func TestLiterals(t *testing.T) {
	t.Parallel()
	one, line := extent{1, 1}, extent{unbounded, 0}
	tests := []struct {
		expression    string
		choices       []string
		before, after extent
		opening       string // "" if there is none
	}{
		{`ghp_[0-9a-z]{36}`, []string{"ghp_"}, extent{}, extent{36, 0}, `ghp_[0-9a-z]{36}`},
		{`(?i)[\w.-]{0,50}?(?:api|API_KEY)[^=]{1,2}=x`, []string{"api", "api_key"}, extent{50, 0}, extent{4, 2}, ``},
		{`A[KS]IA.`, []string{"akia", "asia"}, extent{}, extent{1, 0}, ``},
		{`\bkey\b.*\n`, []string{"key"}, extent{}, extent{unbounded, 1}, ``},
		{`[^a]+webhook`, []string{"webhook"}, extent{unbounded, unbounded}, extent{}, ``},
		{`(?:abc|de.)+`, []string{"abc", "de"}, extent{}, extent{unbounded, 0}, ``},
		{`x?[01]{3}`, []string{"000", "001", "010", "011", "100", "101", "110", "111", "x000", "x001", "x010", "x011", "x100",
			"x101", "x110", "x111"}, extent{}, extent{}, ``},
		{`[0-9]{3}`, strings.Split("0123456789", ""), extent{}, extent{3, 0}, ``},
		{`(abc|[^a])`, nil, extent{}, extent{}, ``},
		{`(?:a|b){2}(?s:.)`, []string{"aa", "ab", "ba", "bb"}, extent{}, one, ``},
		{`[a-z.]+\.corp`, []string{".corp"}, line, extent{}, ``},
		{`größe`, nil, extent{}, extent{}, ``},
		{`kind:[ ]*secret.*\bdata:`, []string{"kind:"}, extent{}, extent{unbounded, 0}, `(?-s:kind: *secret.*\bdata:)`},
	}
	for _, tt := range tests {
		t.Run(tt.expression, func(t *testing.T) {
			t.Parallel()
			tree, err := syntax.Parse(tt.expression, syntax.Perl)
			if err != nil {
				t.Fatal(err)
			}
			got := shapeOf(tree).best()
			if !slices.Equal(got.choices, tt.choices) || len(got.choices) > 0 &&
				(got.before != tt.before || got.after != tt.after) {
				t.Errorf("%q, before %v, after %v; want %q, %v, %v", got.choices, got.before, got.after, tt.choices, tt.before,
					tt.after)
			}
			if tt.opening != "" && got.opening.String() != tt.opening {
				t.Errorf("opening %s, want %s", got.opening, tt.opening)
			}
		})
	}
}

// A text that holds none of what an alternative needs cannot match.
func TestAlternativesNeedWhatAllOfTheirPartsNeed(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string][][]string{
		`kind: .*secret|secret.*kind: `:            {{"kind: "}, {"secret"}},
		`kind: .*secret|token.*kind: |kind: .*sec`: {{"kind: "}},
		`kind: .*secret|secret`:                    nil,
	} {
		tree, err := syntax.Parse(expression, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		got := shapeOf(tree).best().also
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%s: %q, want %q", expression, got, want)
		}
	}
}

// An automaton may say that something matches which does not, for an assertion in the expression or since it is long,
// and never that something does not which does.
func TestAnAutomatonTellsWhatCannotMatch(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("1", mostRead)
	tests := []struct {
		expression, text string
		want             bool
	}{
		{`ab\b(?:c|d+)e`, "abce", true}, {`ab(?:c|d+)e`, "abcde", false}, {`ab(?:c|d+)e`, "abddde and more", true},
		{`a[0-9]{2,9}b`, "a1b", false}, {`a[0-9]{2,9}b`, "a12b", true}, {`a[0-9]{2,9}b`, "a1234567890b", false},
		{`a.*b`, "a12", false}, {`a.*b`, "a\nb", false}, {`(?s)a.*b`, "a\nb", true}, {`a[0-9]*b`, "a" + long, true},
		{`(?i)key[a-z]{0,3}=`, "KeyS=", true}, {`(?i)key=`, "\u212aey=", true}, {`gr[öü](?:ß|s)e`, "größe", true},
		{`gr[öü](?:ß|s)e`, "graße", false}, {`gr.ße`, "gr\xffße", true},
		{`a[0-9]{2}(?:[^0-9]|$)`, "a12", true}, {`a[0-9]{2}(?:[^0-9]|$)`, "a123", false},
		{`a[0-9]{2}(?:[^0-9]|$)`, "a12 3", true}, {`ü(?:x|$)`, "ü", true}, {`ü(?:x|$)`, "üy", false}, {`a`, "", false},
		{`(?:x[a-z]{200}|y[0-9]{200}|z[^0-9]{200})!`, "y" + long[:200] + "!", true},
		{`(?:x[a-z]{200}|y[0-9]{200}|z[^0-9]{200})!`, "y" + long[:199] + "!", false},
		{`(?:x[a-z]{200}|y[0-9]{200}|z[^0-9]{200})!`, "z" + strings.Repeat("ü", 200) + "!", true},
	}
	for _, tt := range tests {
		tree, err := syntax.Parse(tt.expression, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		if got, read := newAutomaton(tree).matches(tt.text, false); got != tt.want || read > mostRead {
			t.Errorf("%s in %q: %v, %d characters read", tt.expression, tt.text, got, read)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, rules, want string }{
		{"nothing", "", "there are none"},
		{"no TOML", "[[rules", "load the secret rules"},
		{"a broken expression", "[[rules]]\nid = 'a'\nregex = '('\n", `rule "a"`},
		{"a group that is not there", "[[rules]]\nid = 'a'\nregex = 'b'\nsecretGroup = 1\n", "no group 1"},
		{"a rule of two parts", "[[rules]]\nid = 'a'\nregex = 'b'\n[[rules.required]]\nid = 'c'\n", "another rule's finding"},
		{"exceptions for some rules",
			"[[rules]]\nid = 'a'\nregex = 'b'\n[[allowlists]]\ntargetRules = ['a']\nregexes = ['c']\n", "target rules"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := Load(tt.rules, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// Characters that only a change of case turns into letters of ASCII hide nothing.
func TestFindFoldsLetters(t *testing.T) {
	t.Parallel()
	s, err := Load(
		"[[rules]]\nid = 'a'\nregex = '(?i)task_[0-9]{4}'\nkeywords = ['task_']\n[[rules]]\nid = 'b'\nregex = "+
			"'(?i)task_[0-9]{5}'\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{"TASK_12345": 2, "ta\u017f\u212a_12345": 2, "tas\u212a_1234": 1,
		"\u017f\u0130 ta\u017fk_12345 task_12345": 4,
		"task_12 \u0130": 0} {
		if found, err := s.Find(t.Context(), text); err != nil || len(found) != want {
			t.Errorf("%q: %v, %v, want %d", text, found, err, want)
		}
	}
}
