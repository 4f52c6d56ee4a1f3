package web_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

func TestAProposalTellsWhatBecameOfItsPullRequest(t *testing.T) {
	t.Parallel()
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
	r, found, err := w.store.Pulls.FindPull(t.Context(), record.PullKey{Provider: "fake", Owner: "joe", Repo: "infra",
		Number: 1})
	if err != nil || !found {
		t.Fatal(found, err)
	}
	want := map[string]any{"state": "open", "head": r.Head, "approvals": 0.0, "changes_requested": 0.0}
	if diff := cmp.Diff(any(want), pull()); diff != "" {
		t.Errorf("before anybody has looked (-want +got):\n%s", diff)
	}

	w.advance(time.Hour)
	r.State, r.EndedAt, r.EndedBy, r.SeenBy = gitprovider.StateMerged, w.Now().Add(-time.Minute), "ann <b>"+
		ownToken, record.DoorWebhook
	r.SeenAt, r.Approvals, r.Checks = w.Now(), 2, gitprovider.ChecksSuccess
	if ok, err := w.store.Pulls.SeePull(t.Context(), r, nil); !ok || err != nil {
		t.Fatal(ok, err)
	}
	got := pull().(map[string]any)
	if got["state"] != "merged" || got["as_of"] != "2026-11-20T13:00:00Z" || got["ended_at"] != "2026-11-20T12:59:00Z" ||
		got["seen_by"] != "webhook" ||
		got["approvals"] != 2.0 || got["checks"] != "success" {
		t.Errorf("got %v", got)
	}
	w.page("/changes?tab=merged", 200).has("Check inodes, too", "Merged")
	for _, target := range []string{"/pulls/fake/joe/infra/1", "/api/v1/proposals/" + id} {
		if strings.Contains(string(w.get(target).body), ownToken) {
			t.Errorf("%s shows a token of ours", target)
		}
	}
}

// What was opened and has ended since is not told as open anywhere, and each state can be asked for.
func TestListingsTellTheStateOfPullRequestsAndFilterByIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, n := range []string{"a", "b", "c"} {
		w.want(w.do("POST", "/api/v1/prs", request(map[string]any{
			"title": "Check " + n, "files": []any{map[string]any{"path": "checks/" + n + ".md", "action": "create",
				"content": n}},
		})), 201, "")
	}
	for number, state := range map[int]gitprovider.State{1: gitprovider.StateMerged, 2: gitprovider.StateClosed} {
		r, found, err := w.store.Pulls.FindPull(t.Context(), record.PullKey{Provider: "fake", Owner: "joe", Repo: "infra",
			Number: number})
		r.State, r.SeenAt = state, w.Now()
		if ok, seeErr := w.store.Pulls.SeePull(t.Context(), r, nil); !ok || !found || err != nil || seeErr != nil {
			t.Fatal(ok, found, err, seeErr)
		}
	}
	for state, number := range map[string]float64{"merged": 1, "closed": 2, "open": 3} {
		list := w.get("/api/v1/proposals?pull=" + state).json["proposals"].([]any)
		if len(list) != 1 || list[0].(map[string]any)["pr_number"] != number ||
			list[0].(map[string]any)["pull"].(map[string]any)["state"] != state {
			t.Errorf("proposals with pull=%s: %v", state, list)
		}
		rows := w.get("/api/v1/audit?pull=" + state).json["entries"].([]any)
		if len(rows) != 1 || rows[0].(map[string]any)["pr_number"] != number ||
			rows[0].(map[string]any)["pull_state"] != state {
			t.Errorf("audit with pull=%s: %v", state, rows)
		}
		n := strconv.Itoa(int(number))
		tab := map[string]string{"merged": "Merged", "closed": "Closed", "open": "Needs review"}
		w.page(w.get("/proposals?pull="+state).Header.Get("Location"), 200).has("#"+n, tab[state],
			"Check "+string(rune('a'+int(number)-1)))
	}
	if list := w.get("/api/v1/proposals?pull=gone").json["proposals"].([]any); len(list) != 0 {
		t.Errorf("gone are %v", list)
	}
	w.want(w.get("/api/v1/proposals?pull=draft"), 400, fault.InvalidArgument)
	w.want(w.get("/api/v1/audit?pull=draft"), 400, fault.InvalidArgument)
	w.page("/changes", 200).has("All 3", "Waiting for you 1", "Merged 1", "Closed 1")
}
