package web_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/prflow"
)

func TestAProposalTellsWhatBecameOfItsPullRequest(t *testing.T) {
	w := newWorld(t, nil)
	made := w.do("POST", "/api/v1/prs", request(nil))
	w.want(made, 201, "")
	id := w.attempts()[0].RequestID
	pull := func() any {
		t.Helper()
		detail := w.get("/api/v1/proposals/" + id)
		w.want(detail, 200, "")
		inDetail := detail.json["attempts"].([]any)[0].(map[string]any)["pull"]
		inList := w.get("/api/v1/proposals").json["proposals"].([]any)[0].(map[string]any)["pull"]
		if diff := cmp.Diff(inDetail, inList); diff != "" {
			t.Errorf("the list tells something else (-detail +list):\n%s", diff)
		}
		return inDetail
	}
	r, found, err := w.store.FindPull(t.Context(), prflow.PullKey{Provider: "fake", Owner: "joe", Repo: "infra", Number: 1})
	if err != nil || !found {
		t.Fatal(found, err)
	}
	want := map[string]any{"state": "open", "head": r.Head, "approvals": 0.0, "changes_requested": 0.0}
	if diff := cmp.Diff(any(want), pull()); diff != "" {
		t.Errorf("before anybody has looked (-want +got):\n%s", diff)
	}
	w.page("/proposals/"+id, 200).has("not looked at yet")

	w.advance(time.Hour)
	r.State, r.EndedAt, r.EndedBy, r.SeenBy = gitprovider.StateMerged, w.Now().Add(-time.Minute), "ann <b>"+ownToken, prflow.DoorWebhook
	r.SeenAt, r.Approvals, r.Checks = w.Now(), 2, gitprovider.ChecksSuccess
	if ok, err := w.store.SeePull(t.Context(), r, nil); !ok || err != nil {
		t.Fatal(ok, err)
	}
	got := pull().(map[string]any)
	if got["state"] != "merged" || got["as_of"] != "2026-11-20T13:00:00Z" || got["ended_at"] != "2026-11-20T12:59:00Z" || got["seen_by"] != "webhook" ||
		got["approvals"] != 2.0 || got["checks"] != "success" {
		t.Errorf("got %v", got)
	}
	w.page("/proposals/"+id, 200).has("merged", "2026-11-20 12:59:00 UTC", "2 approving", "after a webhook", "ann <b>")
	for _, target := range []string{"/proposals/" + id, "/api/v1/proposals/" + id} {
		if strings.Contains(string(w.get(target).body), ownToken) {
			t.Errorf("%s shows a token of ours", target)
		}
	}
}
