package resilience

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// What files hold is read at no cost at GitHub, by one request at Gitea.
func TestAChangedManifestIsToldAtTheCostOfOneRequest(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			usual := sequence(t, k)
			w := newWorld(t, k)
			w.forge.Host().World(t, w.repo, nil).Push("main",
				memhost.File{Path: "CLAUDE-OPS.md", Content: "## Git Provider\n\n- provider: " + k.name + "\n"})
			raw, err := json.Marshal(map[string]any{
				"repo_owner": w.repo.Owner, "repo_name": w.repo.Name, "title": "Move", "body": "We moved.", "files": []any{
					map[string]any{"path": "CLAUDE-OPS.md", "action": "update", "edits": []any{
						map[string]any{"old": k.name, "new": "evil"},
					}},
					map[string]any{"path": "checks/disk.md", "action": "update", "content": "# Disk\n\ndf -h\n"},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			before := len(w.forge.Faults().Requests())
			result, err := w.service().Create(t.Context(), operation.Caller{Door: record.DoorMCP, Name: "test"}, raw)
			if err != nil {
				t.Fatal(err)
			}
			want := "provider `evil` (was `" + k.name + "`)"
			if len(result.Warnings) != 1 || !strings.Contains(result.Warnings[0], want) {
				t.Errorf("warnings %q, want %q", result.Warnings, want)
			}
			var body string
			w.forge.Host().Locked(func() { body = w.forge.Host().Repo(w.repo).PRs[0].Body })
			if !strings.Contains(prflow.RedirectNote(body), want) {
				t.Errorf("the body says %q", body)
			}
			more := map[string]int{"github": 0, "gitea": 1}[k.name]
			if made := len(w.forge.Faults().Requests()) - before; made > usual+more {
				t.Errorf("it took %d requests, and another change takes %d", made, usual)
			}
		})
	}
}
