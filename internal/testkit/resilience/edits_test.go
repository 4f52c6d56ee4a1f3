package resilience

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// propose makes a request for the files to a service of its own, and says how many requests to the forge it took.
func (w *world) propose(files ...any) (prflow.CreateResult, int, error) {
	w.t.Helper()
	raw, err := json.Marshal(map[string]any{
		"repo_owner": w.repo.Owner, "repo_name": w.repo.Name, "title": "Check more", "body": "Why not.", "files": files,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	before := len(w.forge.Faults().Requests())
	result, err := w.service().Create(
		w.t.Context(),
		operation.Caller{Actor: record.Actor{Door: record.DoorMCP, Client: "test"}},
		raw,
	)
	return result, len(w.forge.Faults().Requests()) - before, err
}

func editOf(path, base, before, after string) map[string]any {
	return map[string]any{
		"path": path, "action": "update", "base_sha": base, "edits": []any{map[string]any{"old": before, "new": after}},
	}
}

// Edits cost nothing more at GitHub, and at Gitea at most one request for each file.
func TestEditsAreMadeAtTheCostOfOneRequestAFileAtMost(t *testing.T) {
	for _, k := range kinds() {
		for n := 1; n <= 3; n++ {
			t.Run(fmt.Sprintf("%s, %d files", k.title(), n), func(t *testing.T) {
				plain := newWorld(t, k)
				_, usual, err := plain.propose(map[string]any{"path": "checks/new.md", "action": "create", "content": "# New\n"})
				if err != nil {
					t.Fatal(err)
				}
				w := newWorld(t, k)
				var files []any
				for i := range n {
					path := fmt.Sprintf("checks/n%d.md", i)
					w.forge.Host().World(t, w.repo, nil).Push("main", memhost.File{Path: path, Content: "# Some\n\nOne.\n"})
					files = append(files, editOf(path, "", "One.", "Two."))
				}
				result, made, err := w.propose(files...)
				if err != nil || len(result.Lines) != n || result.Lines[0].Added != 1 || result.Lines[0].Removed != 1 {
					t.Fatalf("%+v, %v", result, err)
				}
				more := map[string]int{"github": 0, "gitea": n}[k.name]
				if made > usual+more {
					t.Errorf("it took %d requests, and a new file takes %d", made, usual)
				}
				w.forge.Host().Locked(func() {
					repo := w.forge.Host().Repo(w.repo)
					if got := repo.Commits[repo.Branches[result.Branch]].Files["checks/n0.md"].Content; got != "# Some\n\nTwo.\n" {
						t.Errorf("the file holds %q", got)
					}
				})
			})
		}
	}
}

func TestWhatDoesNotFitTheBaseIsShownAndNothingIsWritten(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.title(), func(t *testing.T) {
			w := newWorld(t, k)
			for _, file := range []map[string]any{
				editOf("checks/disk.md", "", "# Disc", "# Disk"), editOf("checks/disk.md", "0123456", "# Disc", "# Disks"),
			} {
				_, _, err := w.propose(file)
				e := fault.From(err)
				if fault.CodeOf(err) != fault.Conflict || e.Violations[0].Present == nil ||
					e.Violations[0].Present.Text != "# Disk\n" {
					t.Fatalf("%+v, %v", e, err)
				}
				for _, r := range w.forge.Faults().Requests() {
					if r.Method != "GET" && !strings.HasSuffix(r.Path, "/graphql") {
						t.Errorf("a write: %s %s", r.Method, r.Path)
					}
				}
				if branches, open := w.state(); len(branches)+len(open) > 0 {
					t.Errorf("branches %v, open %v", branches, open)
				}
				mended := editOf("checks/disk.md", e.Violations[0].Present.BaseSHA, "# Disk", "# Disks")
				if file["base_sha"] == "" {
					continue
				}
				if result, _, err := w.propose(mended); err != nil || result.Number == 0 { // the answer is all that it takes
					t.Errorf("%+v, %v", result, err)
				}
			}
			w.assertRecords()
		})
	}
}

// What files hold is read at no cost at GitHub, by one request at Gitea.
func TestAChangedManifestIsToldAtTheCostOfOneRequest(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.title(), func(t *testing.T) {
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
			result, err := w.service().Create(
				t.Context(),
				operation.Caller{Actor: record.Actor{Door: record.DoorMCP, Client: "test"}},
				raw,
			)
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
