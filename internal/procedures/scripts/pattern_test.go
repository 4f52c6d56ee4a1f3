package scripts

import (
	"strings"
	"testing"

	"github.com/dlclark/regexp2/v2"
)

func TestPatternsStandInTheSchemaWhereTheyMeanTheSame(t *testing.T) {
	for text, want := range map[string]string{
		`^\d{3}-\d+$`: `^\d{3}-\d+$`, `^[a-z][a-z0-9_-]*$`: `^[a-zA-Z][a-zA-Z0-9_-]*$`, `^v\.`: `^[Vv]\.`,
		`[^A-Cx]`: `[^A-Ca-cxX]`,
		`[A-z]`:   `[A-z]`, `[0-Z]`: `[0-Za-z]`, `.`: `[^\n]`, `(?:1|2)(?=3)(?!4)`: `(?:1|2)(?=3)(?!4)`,
		`\#\-\ [\-.]`: `#- [\-.]`, `1{2,}?`: `1{2,}?`,
		`\w+`: "", `\bx`: "", `(?i)x`: "", `(?<n>1)`: "", `\A1\z`: "", `(1)\1`: "", `[a-z-[aeiou]]`: "", `[]1]`: "", `ä`: "",
		`[ä]`: "", `\p{L}`: "",
		`1{`: "", `1}`: "", `]`: "", `[1`: "", `\`: "", `(`: "", `*`: "", `\u0041`: "", `[[]`: "", `[\.-9]`: "", `[!-\.]`: "",
		`[-1]`: "", `{,2}`: "",
		strings.Repeat("1", maxPattern+1): "",
	} {
		if got := (Pattern{Text: text}).schema(); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{`^v[a-f]$`: `^v[a-f]$`, `ä[ö]`: `ä[ö]`} {
		if got := (Pattern{Text: text, CaseSensitive: true}).schema(); got != want {
			t.Errorf("%s with letter case: %s, want %s", text, got, want)
		}
	}
	if got := (Pattern{Text: "1", Other: true}).schema(); got != "" {
		t.Errorf("with other options: %s", got)
	}
}

func TestTextsThatAPatternDoesNotTakeAreRefused(t *testing.T) {
	script := Script{Name: "s", Interpreter: PowerShell, Description: parsePowerShell(`param(
[ValidatePattern('^[a-z]+$')]$Any,
[ValidatePattern('^[a-z]+$', Options = 'None')][string]$Cased,
[ValidatePattern("^(?i)v(?<major>\d+)\w$", Options=[System.Text.RegularExpressions.RegexOptions]::None)]$Net,
[ValidatePattern('^a$', Options = 'Multiline')]$Other,
[ValidatePattern('^a$', ErrorMessage = 'b')][string[]]$Many,
[ValidatePattern('(')]$Broken,
[ValidatePattern('^(1+)+$')]$Slow)`)}
	if script.Note != "" || len(script.Parameters) != 7 {
		t.Fatalf("%+v", script.Description)
	}
	for _, c := range []struct {
		name    string
		value   any
		refused bool
	}{
		{"Any", "ABC", false}, {"Any", "abc\n", false}, {"Any", "a1", true}, {"Any", "", true}, {"Cased", "abc", false},
		{"Cased", "ABC", true},
		{"Net", "V1ä", false}, {"Net", "v", true}, {"Other", "b\na", false}, {"Many", []any{"a", "A"}, false},
		{"Many", []any{"a", "b"}, true},
		{"Broken", "x", false}, {"Slow", strings.Repeat("1", 60) + "x", false},
	} {
		if got := script.Check(map[string]any{c.name: c.value}); (len(got) > 0) != c.refused {
			t.Errorf("%s %q: %v", c.name, c.value, got)
		}
	}
	properties := script.Schema()["properties"].(map[string]any)
	for name, want := range map[string]any{"Any": "^[a-zA-Z]+$", "Cased": "^[a-z]+$", "Net": nil, "Other": nil} {
		if got := properties[name].(map[string]any)["pattern"]; got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := properties["Many"].(map[string]any)["items"].(map[string]any)["pattern"]; got != "^[aA]$" &&
		got != "^[Aa]$" {
		t.Errorf("a list's pattern: %v", got)
	}
	if got := properties["Net"].(map[string]any)["description"]; got != `Must match ^(?i)v(?<major>\d+)\w$.` {
		t.Errorf("%v", got)
	}
}

// Whatever the schema refuses, PowerShell refuses, and the other way round, but for a line end at the end.
func FuzzPatternInTheSchema(f *testing.F) {
	for _, pattern := range []string{`^[a-z][a-z0-9_-]*$`, `^v\d+\.\d+(-rc\d{1,2})?$`, `(?:a|B)+?[^x-z]`, `[A-z0-Z,-.]`,
		`\s\S\D`, `.`} {
		f.Add(pattern, "v1.2-RC3", false)
	}
	f.Fuzz(func(t *testing.T, text, value string, cased bool) {
		p := Pattern{Text: text, CaseSensitive: cased}
		translated := p.schema()
		if translated == "" || strings.HasSuffix(value, "\n") ||
			strings.ContainsFunc(value, func(r rune) bool { return r >= 0x80 }) {
			return
		}
		there, err := regexp2.Compile(translated, regexp2.ECMAScript|regexp2.Unicode)
		if err != nil {
			t.Fatal(err)
		}
		there.MatchTimeout = patternTime
		matches, err := there.MatchString(value)
		if err == nil && matches == p.refuses(value) {
			t.Errorf("%q as %q disagree about %q: %t", text, translated, value, matches)
		}
	})
}
