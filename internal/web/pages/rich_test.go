package pages

import (
	"slices"
	"testing"
)

func TestOurOwnTextsHaveLinksAndCode(t *testing.T) {
	for text, want := range map[string][]Span{
		"":            nil,
		"plain":       {{Text: "plain"}},
		"a [b](/c) d": {{Text: "a "}, {Text: "b", Link: "/ops/c"}, {Text: " d"}},
		"run `x y`.":  {{Text: "run "}, {Text: "x y", Code: true}, {Text: "."}},
		"open `x":     {{Text: "open "}, {Text: "`x"}},
		"see [b] (c)": {{Text: "see "}, {Text: "[b] (c)"}},
		"[b](//evil)": {{Text: "b", Link: "/ops//evil"}},
		"[b](https:)": {{Text: "[b](https:)"}},
	} {
		if got := Rich("/ops", text); !slices.Equal(got, want) {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
