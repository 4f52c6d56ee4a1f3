package session

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/processtree"
)

func TestProcessesThatDoNotEndFailTheSession(t *testing.T) {
	for _, test := range []struct {
		before verdict
		end    processtree.End
		state  State
		words  []string
	}{
		{verdict{StateSucceeded, ""}, processtree.End{}, StateSucceeded, nil},
		{verdict{StateSucceeded, ""}, processtree.End{Remaining: []int{7, 9}}, StateFailed, []string{"[7 9]", "the operator"}},
		{verdict{StateSucceeded, ""}, processtree.End{ReaperLost: true}, StateFailed, []string{"was killed"}},
		{verdict{StateTimeout, "too long"}, processtree.End{Remaining: []int{7}}, StateTimeout, []string{"too long; ", "[7]"}},
	} {
		v := test.before
		v.complete(test.end)
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
