package session

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/processtree"
)

func TestProcessesThatDoNotEndFailTheSession(t *testing.T) {
	for _, test := range []struct {
		before outcome
		end    processtree.End
		state  State
		words  []string
	}{
		{outcome{StateSucceeded, ""}, processtree.End{}, StateSucceeded, nil},
		{outcome{StateSucceeded, ""}, processtree.End{Remaining: []int{7, 9}}, StateFailed, []string{"[7 9]", "the operator"}},
		{outcome{StateSucceeded, ""}, processtree.End{ReaperLost: true}, StateFailed, []string{"was killed"}},
		{outcome{StateTimeout, "too long"}, processtree.End{Remaining: []int{7}}, StateTimeout, []string{"too long; ", "[7]"}},
	} {
		v := test.before
		v.addProblems(test.end)
		if v.state != test.state || (len(test.words) == 0) != (v.reason == "") {
			t.Errorf("%+v became %+v", test.before, v)
		}
		for _, word := range test.words {
			if !strings.Contains(v.reason, word) {
				t.Errorf("%q lacks %q", v.reason, word)
			}
		}
	}
}
