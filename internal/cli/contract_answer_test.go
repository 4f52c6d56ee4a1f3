package cli

import (
	"reflect"
	"strings"
	"testing"
)

func TestAnAnswerForPeopleIsATableAndHarmless(t *testing.T) {
	t.Parallel()
	type row struct {
		Name string   `json:"name"`
		Tags []string `json:"tags,omitempty"`
		New  *bool    `json:"new,omitempty"`
	}
	type answer struct {
		Rows  []row    `json:"rows"`
		Total int      `json:"total"`
		Text  string   `json:"text,omitempty"`
		Empty []string `json:"empty,omitempty"`
		Any   any      `json:"any"`
		Inner struct {
			On bool `json:"on"`
		} `json:"inner"`
	}
	yes := true
	a := answer{Rows: []row{{"a\n\x1b[31mb", []string{"x", "y"}, &yes}, {"c", nil, nil}}, Total: 2, Text: "one\ntwo\n",
		Empty: []string{}, Any: map[string]any{"k": 1}}
	a.Inner.On = true
	var b strings.Builder
	describe(&b, "", reflect.ValueOf(a))
	text := surface{}.lay(b.String())
	if strings.ContainsRune(text, '\x1b') {
		t.Errorf("control characters reach the terminal: %q", text)
	}
	for _, line := range []string{"rows: 2", "NAME", "x, y  true", "total: 2", "text: \n  one\n  two\n", `any: {"k":1}`,
		"inner.on: true"} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
	if strings.Contains(text, "empty") {
		t.Errorf("what is empty is shown:\n%s", text)
	}
}
