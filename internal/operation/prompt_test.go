package operation

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
)

func TestArgumentsOfAPromptAreChecked(t *testing.T) {
	p := Prompt{Name: "ask", Arguments: []PromptArgument{{Name: "what", Description: "the question", Required: true},
		{Name: "more"}}}
	for name, c := range map[string]struct {
		arguments map[string]string
		want      []string // of the error; none: there is none
	}{
		"all":                 {map[string]string{"what": "a", "more": "b"}, nil},
		"what is required":    {map[string]string{"what": "a"}, nil},
		"nothing":             {nil, []string{"`what` is missing: the question"}},
		"blank":               {map[string]string{"what": " \n"}, []string{"`what` is missing"}},
		"unknown":             {map[string]string{"what": "a", "other": "b"}, []string{"ask takes only what, more"}},
		"missing and unknown": {map[string]string{"other": "b"}, []string{"`what` is missing", "ask takes only what, more"}},
		"too long": {map[string]string{"what": strings.Repeat("a", maxPromptArgument+1)},
			[]string{"at most 16384 bytes"}},
		"no text": {map[string]string{"what": "a\xff"}, []string{"must be text"}},
		"a zero":  {map[string]string{"what": "a", "more": "\x00"}, []string{"`more` must be text"}},
	} {
		err := p.Check(c.arguments)
		if (err == nil) != (c.want == nil) || err != nil && fault.CodeOf(err) != fault.InvalidArgument {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var said string
		if err != nil {
			for _, v := range fault.From(err).Violations {
				said += v.Message + "\n"
			}
		}
		for _, want := range c.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s: %q lacks %q", name, said, want)
			}
		}
	}
}
