package session

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/system/processtree"
)

func TestProcessesThatDoNotEndFailTheSession(t *testing.T) {
	for _, test := range []struct {
		before outcome
		end    processtree.End
		state  sessions.State
		words  []string
	}{
		{outcome{sessions.StateSucceeded, ""}, processtree.End{}, sessions.StateSucceeded, nil},
		{outcome{sessions.StateSucceeded, ""}, processtree.End{Remaining: []int{7, 9}}, sessions.StateFailed,
			[]string{"[7 9]", "the operator"}},
		{outcome{sessions.StateSucceeded, ""}, processtree.End{ReaperLost: true}, sessions.StateFailed,
			[]string{"was killed"}},
		{outcome{sessions.StateTimeout, "too long"}, processtree.End{Remaining: []int{7}}, sessions.StateTimeout,
			[]string{"too long; ", "[7]"}},
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
