package web_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
)

func TestAProposalWhoseContentsWereRemovedSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.flow.Authority.DryRun = true })
	dry := w.do("POST", "/api/v1/prs", request(nil))
	w.want(dry, 200, "")
	id := w.attempts()[0].RequestID
	w.advance(100 * 24 * time.Hour)
	_, err := w.store.Retention.Prune(context.Background(), w.Now(),
		func([]record.Pruned) record.Attempt { return record.Attempt{Action: "prune"} })
	if err != nil {
		t.Fatal(err)
	}
	w.flow.Authority.DryRun, w.handler = false, nil
	person := bearer(w.token("person", gitprovider.TierInvestigate, access.AllScopes()...))

	detail := w.get("/api/v1/proposals/"+id, person)
	w.want(detail, 200, "")
	change := detail.json["change"].(map[string]any)
	if change["pruned_at"] != w.Now().Format(time.RFC3339) || change["body"] != "" || change["title"] == "" {
		t.Errorf("got %v", change)
	}
	page := string(w.get("/proposals/"+id, person).body)
	for _, want := range []string{"Text and contents were removed on 2027-02-28", "checks/inodes.md",
		"cannot be opened any more"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	w.want(w.do("POST", "/api/v1/proposals/"+id+"/promote", "", person), 409, fault.Conflict)
	if w.fake.Script.Writes() != 0 {
		t.Errorf("calls %v", w.fake.Script.Calls())
	}
}

// TestAnOldChangeIsStillOnePullRequest asks for the same change again after all that retention removes is gone.
func TestAnOldChangeIsStillOnePullRequest(t *testing.T) {
	t.Parallel()
	other := map[string]any{"files": []any{map[string]any{"path": "checks/inodes.md", "action": "create",
		"content": "# Other\n"}}}
	for name, tt := range map[string]struct {
		happens func(w *world, people providertest.World) // to the pull request meanwhile
		body    string
		status  int
		code    fault.Code
	}{
		"the same change is answered with it": {nil, request(nil), 200, ""},
		"also if it has lost its labels": {
			func(w *world, people providertest.World) { w.fake.People.Unlabel(people.Ref(), 1) }, request(nil), 200, "",
		},
		"another change to its file is a duplicate": {nil, request(other), 409, fault.DuplicatePR},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
			w.advance(100 * 24 * time.Hour)
			if tt.happens != nil {
				tt.happens(w, w.fake.World(t, gitprovider.RepoRef{Owner: "joe", Name: "infra"}))
			}
			made := func() int {
				return w.fake.Script.Count(forgetest.MethodCommit) + w.fake.Script.Count(forgetest.MethodOpenPullRequest)
			}
			ctx, before := context.Background(), made()
			removed, err := w.store.Retention.Prune(ctx, w.Now().AddDate(0, 0, -90),
				func([]record.Pruned) record.Attempt { return record.Attempt{Action: "prune"} })
			if err != nil || removed[0] != (record.Pruned{Kind: "proposals", Rows: 1}) {
				t.Fatalf("removed %v, %v", removed, err)
			}
			a := w.do("POST", "/api/v1/prs", tt.body)
			w.want(a, tt.status, tt.code)
			if tt.code == "" && (a.json["number"] != float64(1) || a.json["reused"] != true) {
				t.Errorf("got %s", a.body)
			}
			if made() != before {
				t.Errorf("calls %v", w.fake.Script.Calls())
			}
		})
	}
}
