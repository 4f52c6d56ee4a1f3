package pages

import (
	"html/template"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestWhateverATemplateWritesIsMadeFit has every kind of pipeline write a text that hides something and holds a token.
func TestWhateverATemplateWritesIsMadeFit(t *testing.T) {
	type named string
	show := Shower{Redact: func(s string) string { return strings.ReplaceAll(s, "secret", "[redacted]") }, Now: time.Now}
	const evil = "a\u202esecret"
	page := template.Must(template.New("x").Funcs(show.functions()).Parse(
		`{{.Text}} {{.Named}} {{.At}} {{printf "%s" .Text}} {{with .Text}}{{.}}{{end}} {{if .Text}}{{.Text}}{{else}}-{{end}} ` +
			`{{range .List}}{{.}}{{end}} {{range $i, $e := .List}}{{$i}}{{$e}}{{end}} {{$x := .Text}}{{$x}} {{line .Text}} {{whole .Text}} ` +
			`{{bounded .Text 300}} <a href="{{.Text}}">{{block "b" .}}{{.Text}}{{end}}</a> {{range .None}}{{else}}{{.Text}}{{end}}`))
	for _, one := range page.Templates() {
		showOutputs(one.Tree.Root)
	}
	var b strings.Builder
	if err := page.Execute(&b, map[string]any{
		"Text": evil, "Named": named(evil), "At": stringer(evil), "List": []string{evil}, "None": nil,
	}); err != nil {
		t.Fatal(err)
	}
	if out := b.String(); strings.ContainsAny(out, "\u202e") || strings.Contains(out, "secret") ||
		strings.Contains(out, "%e2%80%ae") ||
		strings.Count(out, "redacted") != 15 {
		t.Errorf("%d in %s", strings.Count(out, "redacted"), out)
	}
	if got := show.Bounded(strings.Repeat("x", 400), maxLine); len([]rune(got)) != maxLine {
		t.Errorf("%d runes", len(got))
	}
}

type stringer string

func (s stringer) String() string { return string(s) }

func TestOurOwnTextsHaveLinksAndCode(t *testing.T) {
	for text, want := range map[string][]Span{
		"":            nil,
		"plain":       {{Text: "plain"}},
		"a [b](/c) d": {{Text: "a "}, {Text: "b", Link: "/ops/c"}, {Text: " d"}},
		"run `x y`.":  {{Text: "run "}, {Text: "x y", Code: true}, {Text: "."}},
		"open `x":     {{Text: "open "}, {Text: "`x"}},
		"see [b] (c)": {{Text: "see "}, {Text: "[b] (c)"}},
		"[b](//evil)": {{Text: "b", Link: "/ops/evil"}},
		"[b](https:)": {{Text: "[b](https:)"}},
	} {
		if got := Rich("/ops", text); !slices.Equal(got, want) {
			t.Errorf("%q: %+v", text, got)
		}
	}
	if got := Rich("", "[b](//evil)"); !slices.Equal(got, []Span{{Text: "b", Link: "/evil"}}) {
		t.Errorf("without a base: %+v", got)
	}
}

// read is the text of all files that match.
func read(t *testing.T, patterns ...string) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v %v", pattern, names, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(name, "_test.go") {
				all.Write(text)
			}
		}
	}
	return all.String()
}

// What no page uses goes: templates, functions of templates, and rules for classes.
func TestNothingOfThePagesIsUnused(t *testing.T) {
	templates := read(t, "templates/*.html")
	for _, m := range regexp.MustCompile(`\{\{define "([^"]+)"`).FindAllStringSubmatch(templates, -1) {
		used := regexp.MustCompile(`\{\{(template|block) "` + m[1] + `"|\bparts? "` + m[1] + `"`)
		if !used.MatchString(templates) {
			t.Errorf("no page uses the template %s", m[1])
		}
	}
	actions := strings.Join(regexp.MustCompile(`\{\{[^}]*\}\}`).FindAllString(templates, -1), "\n")
	for name := range (Shower{}).functions() {
		if name != "shown" && !regexp.MustCompile(`[{( |]`+name+`[ )|}]`).MatchString(actions) {
			t.Errorf("no template calls the function %s", name)
		}
	}
	code := templates + read(t, "*.go", "../dashboard/*.go", "../views/*.go", "static/live.js")
	rules := regexp.MustCompile(`(?s)/\*.*?\*/|\{[^{}]*\}`).ReplaceAllString(read(t, "static/app.css"), " ")
	composed := regexp.MustCompile(`^(is|c)-(good|bad|warn|info|done|mute)$`) // of a tone
	for _, m := range regexp.MustCompile(`\.([a-zA-Z][\w-]*)`).FindAllStringSubmatch(rules, -1) {
		if !composed.MatchString(m[1]) && !regexp.MustCompile(`\b`+m[1]+`\b`).MatchString(code) {
			t.Errorf("nothing has the class %s", m[1])
		}
	}
}
