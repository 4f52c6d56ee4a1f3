package app_test

import (
	"testing"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/records/record"
)

func TestEveryActOfAPersonHasAWord(t *testing.T) {
	for _, o := range app.Acts(nil) {
		if o.Action != "" && !record.KnownAction(o.Action) {
			t.Errorf("the action %q of %s has no words for people; add them to internal/records/record", o.Action, o.Name)
		}
	}
}
