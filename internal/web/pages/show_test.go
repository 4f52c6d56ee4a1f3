package pages

import (
	"html/template"
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
