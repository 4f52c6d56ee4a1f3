package web_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/prflow"
	"github.com/claudeops/claudeops/internal/store"
)

func TestAProposalWhoseContentsWereRemovedSaysSo(t *testing.T) {
	w := newWorld(t, func(w *world) { w.flow.DryRun = true })
	dry := w.do("POST", "/api/v1/prs", request(nil))
	w.want(dry, 200, "")
	id := w.attempts()[0].RequestID
	w.advance(100 * 24 * time.Hour)
	_, err := w.store.Prune(context.Background(), w.Now(), func([]store.Pruned) prflow.Attempt { return prflow.Attempt{Action: "prune"} })
	if err != nil {
		t.Fatal(err)
	}
	w.flow.DryRun, w.handler = false, nil
	person := bearer(w.token("person", gitprovider.TierInvestigate, access.AllScopes()...))

	detail := w.get("/api/v1/proposals/"+id, person)
	w.want(detail, 200, "")
	change := detail.json["change"].(map[string]any)
	if change["pruned_at"] != w.Now().Format(time.RFC3339) || change["body"] != "" || change["title"] == "" {
		t.Errorf("got %v", change)
	}
	page := string(w.get("/proposals/"+id, person).body)
	for _, want := range []string{"Text and contents were removed on 2027-02-28", "checks/inodes.md", "cannot be opened any more"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	w.want(w.do("POST", "/api/v1/proposals/"+id+"/promote", "", person), 409, fault.Conflict)
	if w.fake.Writes() != 0 {
		t.Errorf("calls %v", w.fake.Calls())
	}
}
