package web_test

import (
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
)

func TestThePageOfOutcomesNamesWhoWasRefusedForWhat(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.page("/outcomes", 200).has("Nothing was proposed in the last 30 days")
	w.refuse(3)
	page := w.page("/outcomes?days=7&by=repository", 200)
	page.has("How 3 changes ended", "Refused by a rule", "Still open", "joe/infra")
	w.page("/outcomes?by=tier", 200).has("Tier ")
	w.want(w.get("/outcomes?by=colour"), 400, fault.InvalidArgument)
}
