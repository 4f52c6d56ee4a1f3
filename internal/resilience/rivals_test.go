package resilience

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/forgetest/httpfault"
	"github.com/claudeops/claudeops/internal/forgetest/memhost"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/prflow"
	"github.com/claudeops/claudeops/internal/record"
	"github.com/claudeops/claudeops/internal/store"
)

// stranger is the use case on a machine of its own: other records, another key.
func (w *world) stranger() *prflow.Service {
	w.t.Helper()
	s, err := store.Open(w.t.Context(), w.t.TempDir(), store.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = s.Close() })
	key := rand.Text()
	o := w.service().Options
	o.Ledger, o.History = s.Ledger, s.History
	o.Key = func() ([]byte, error) { return []byte(key), nil }
	o.Clock.Sleep = func(ctx context.Context, d time.Duration) { // as long as others may need here
		select {
		case <-ctx.Done():
		case <-time.After(d / 10):
		}
	}
	return prflow.New(o)
}

// titled is the change under a title of its own, with the content.
func (w *world) titled(title, content string) []byte {
	w.t.Helper()
	raw, err := json.Marshal(map[string]any{
		"repo_owner": w.repo.Owner, "repo_name": w.repo.Name, "title": title, "body": "Disks fill up with small files.",
		"files": []any{map[string]any{"path": "checks/inodes.md", "action": "create", "content": content}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return raw
}

// TestEightMachinesWithRecordsOfTheirOwnMakeOnePullRequest lets them propose at the same moment.
func TestEightMachinesWithRecordsOfTheirOwnMakeOnePullRequest(t *testing.T) {
	const machines = 8
	for _, k := range kinds() {
		for name, ask := range map[string]struct {
			title   func(i int) string
			content func(i int) string
			codes   []fault.Code
		}{
			"the same change under the same title": {
				func(int) string { return "Check inodes" }, func(int) string { return "# Inodes\n" }, []fault.Code{""},
			},
			"the same change under different titles": {
				func(i int) string { return fmt.Sprint("Check inodes ", i) }, func(int) string { return "# Inodes\n" }, []fault.Code{""},
			},
			"different changes of one file under different titles": {
				func(i int) string { return fmt.Sprint("Check inodes ", i) }, func(i int) string { return fmt.Sprint("# Inodes ", i, "\n") },
				[]fault.Code{"", fault.DuplicatePR},
			},
			"different changes of one file under the same title": {
				func(int) string { return "Check inodes" }, func(i int) string { return fmt.Sprint("# Inodes ", i, "\n") },
				[]fault.Code{"", fault.DuplicatePR},
			},
		} {
			t.Run(k.name+", "+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, k)
				services := make([]*prflow.Service, machines)
				for i := range services {
					services[i] = w.stranger()
				}
				w.forge.Faults().SetLatency(5 * time.Millisecond)
				results, errs := make([]prflow.CreateResult, machines), make([]error, machines)
				propose := func(i int) {
					raw := w.titled(ask.title(i), ask.content(i))
					results[i], errs[i] = services[i].Create(context.Background(), operation.Caller{Door: record.DoorMCP, Name: "test"}, raw)
				}
				var all sync.WaitGroup
				for i := range machines {
					all.Go(func() { propose(i) })
				}
				all.Wait()
				branches, open := w.state()
				if len(open) != 1 || len(branches) != 1 {
					t.Fatalf("open pull requests %v, branches %v", open, branches)
				}
				first := 0
				for i := range machines {
					if code := fault.CodeOf(errs[i]); !slices.Contains(ask.codes, code) {
						t.Errorf("machine %d: %v", i, errs[i])
					} else if code == "" && results[i].Number != open[0] || code == fault.DuplicatePR && fault.From(errs[i]).Existing.Number != open[0] {
						t.Errorf("machine %d: %+v, %v; open is #%d", i, results[i], errs[i], open[0])
					} else if code == "" && !results[i].Reused {
						first++
					}
				}
				if first != 1 {
					t.Errorf("%d of them opened it", first)
				}
				w.forge.Host().World(t, w.repo, nil).Merge(open[0])
				for i := range machines { // what was withdrawn is no rejection
					if err := w.proposeUpdate(services[i], i); i == 0 && err != nil || fault.CodeOf(err) == fault.CooldownActive {
						t.Errorf("machine %d: %v", i, err)
					}
				}
			})
		}
	}
}

// proposeUpdate proposes another change of the file.
func (w *world) proposeUpdate(service *prflow.Service, i int) error {
	raw, err := json.Marshal(map[string]any{
		"repo_owner": w.repo.Owner, "repo_name": w.repo.Name, "title": fmt.Sprint("Check more ", i), "body": "Why not.",
		"files": []any{map[string]any{"path": "checks/inodes.md", "action": "update", "content": fmt.Sprint("# More ", i, "\n")}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = service.Create(context.Background(), operation.Caller{Door: record.DoorMCP, Name: "test"}, raw)
	return err
}

// TestTheLookForOthersCostsOneRequest opens a pull request of somebody else at the last moment, so that ours does not get the
// next number.
func TestTheLookForOthersCostsOneRequest(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, k)
			var once sync.Once
			w.forge.Faults().Plan(func(r *http.Request) bool {
				if opensPull(r) {
					once.Do(func() {
						world := w.forge.Host().World(t, w.repo, nil)
						world.Push("feature/x", memhost.File{Path: "x.md", Content: "x\n"})
						world.OpenPR("feature/x", "Somebody else's")
					})
				}
				return false
			}, httpfault.Fault{Kind: httpfault.LateFirst})
			result, err := w.create(t.Context())
			if err != nil || result.Number != 2 || len(result.Warnings) != 0 {
				t.Fatalf("%+v, %v", result, err)
			}
			if got, usual := len(w.forge.Faults().Requests()), sequence(t, k); got != usual+1 {
				t.Errorf("%d requests, %d are usual", got, usual)
			}
		})
	}
}
