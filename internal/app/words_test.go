package app_test

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/web/words"
)

func TestEveryActOfAPersonHasAWord(t *testing.T) {
	for _, o := range app.Acts(nil) {
		if o.Action != "" && strings.Contains(words.Action(o.Action), ":") {
			t.Errorf("the action %q of %s has no word for people; add it to internal/web/words", o.Action, o.Name)
		}
	}
}
