package resilience

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/store/storetest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// machine is a machine of its own: other records, another key.
type machine struct {
	*prflow.Service
	records *storetest.Lent
	result  prflow.CreateResult
	err     error
}

func (w *world) newMachine() *machine {
	w.t.Helper()
	s := records.Open(w.t, nil, time.Now)
	key := rand.Text()
	o := w.service().Options
	o.Ledger, o.History = s.Ledger, s.History
	o.Proof.Key = func() ([]byte, error) { return []byte(key), nil }
	o.Clock.Sleep = func(ctx context.Context, d time.Duration) { // as long as others may need here
		select {
		case <-ctx.Done():
		case <-time.After(d / 10):
		}
	}
	return &machine{Service: prflow.New(o), records: s}
}

// propose keeps the answer.
func (m *machine) propose(raw []byte) {
	m.result, m.err = m.Create(context.Background(), agent(), raw)
}

// left returns the number of its proposals that are to be settled.
func (m *machine) left(t testing.TB) int {
	t.Helper()
	left, err := m.records.History.Unfinished(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return len(left)
}

// tries bounds how often a machine calls again whose forge is slower than the limit of a request.
const tries = 20

// proposeAgain makes the identical call as long as the last answer, or what is left of it, asks for that. It reports
// whether it did.
func (m *machine) proposeAgain(t testing.TB, raw []byte) (again bool) {
	t.Helper()
	retryable := func() bool { return m.err != nil && fault.From(m.err).Retryable() }
	for range tries {
		if !retryable() && m.left(t) == 0 {
			return again
		}
		again = true
		m.propose(raw)
	}
	if retryable() { // what is only left is the rounds' to settle
		t.Errorf("no answer after %d calls: %v", tries, m.err)
	}
	return again
}

// titled is the change under a title of its own, with the content.
func (w *world) titled(title, content string) []byte {
	w.t.Helper()
	return w.arguments(map[string]any{"title": title, "body": "Disks fill up with small files.",
		"files": []any{fileOf("create", "checks/inodes.md", content)}})
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
				func(i int) string { return fmt.Sprint("Check inodes ", i) }, func(int) string { return "# Inodes\n" },
				[]fault.Code{""},
			},
			"different changes of one file under different titles": {
				func(i int) string { return fmt.Sprint("Check inodes ", i) },
				func(i int) string { return fmt.Sprint("# Inodes ", i, "\n") },
				[]fault.Code{"", fault.DuplicatePR},
			},
			"different changes of one file under the same title": {
				func(int) string { return "Check inodes" }, func(i int) string { return fmt.Sprint("# Inodes ", i, "\n") },
				[]fault.Code{"", fault.DuplicatePR},
			},
		} {
			t.Run(k.title()+", "+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, k)
				all := make([]*machine, machines)
				for i := range all {
					all[i] = w.newMachine()
				}
				w.forge.Faults().SetLatency(5 * time.Millisecond)
				var together sync.WaitGroup
				for i, m := range all {
					together.Go(func() { m.propose(w.titled(ask.title(i), ask.content(i))) })
				}
				together.Wait()
				again := false
				for i, m := range all {
					again = m.proposeAgain(t, w.titled(ask.title(i), ask.content(i))) || again
				}
				w.settleLater(all)
				branches, open := w.state()
				if len(open) != 1 || len(branches) != 1 {
					t.Fatalf("open pull requests %v, branches %v", open, branches)
				}
				first := 0
				for i, m := range all {
					if code := fault.CodeOf(m.err); !slices.Contains(ask.codes, code) {
						t.Errorf("machine %d: %v", i, m.err)
					} else if code == "" && m.result.Number != open[0] || code == fault.DuplicatePR &&
						fault.From(m.err).Existing.Number != open[0] {
						t.Errorf("machine %d: %+v, %v; open is #%d", i, m.result, m.err, open[0])
					} else if code == "" && !m.result.Reused {
						first++
					}
				}
				if first > 1 || first == 0 && !again {
					t.Errorf("%d of them opened it", first)
				}
				w.forge.Host().World(t, w.repo, nil).Merge(open[0])
				for i, m := range all { // a withdrawn one is not a rejection
					m.propose(w.update(i))
					m.proposeAgain(t, w.update(i))
					if i == 0 && m.err != nil || fault.CodeOf(m.err) == fault.CooldownActive {
						t.Errorf("machine %d: %v", i, m.err)
					}
				}
			})
		}
	}
}

// settleLater lets an hour pass and the rounds of a server come, if a machine has something left: of a request that may
// still arrive, or a branch that it could not remove.
func (w *world) settleLater(all []*machine) {
	w.t.Helper()
	left := func() (n int) {
		for _, m := range all {
			n += m.left(w.t)
		}
		return n
	}
	if left() == 0 && !strings.Contains(w.log.String(), "branch of a withdrawn pull request not removed") {
		return
	}
	w.pass(61 * time.Minute)
	sweeper := all[0].NewSweeper()
	repos := []record.RepoName{{Provider: w.kind.name, Owner: w.repo.Owner, Name: w.repo.Name}}
	for range tries {
		for _, m := range all {
			if _, err := m.Resume(w.t.Context()); err != nil {
				w.t.Fatal(err)
			}
		}
		swept, err := sweeper.Sweep(w.t.Context(), repos)
		if left() == 0 && err == nil && !slices.ContainsFunc(swept, func(s prflow.Swept) bool { return s.Error != "" }) {
			return
		}
	}
	w.t.Errorf("not settled after %d rounds", tries)
}

// update is another change of the file.
func (w *world) update(i int) []byte {
	w.t.Helper()
	return w.arguments(map[string]any{"title": fmt.Sprint("Check more ", i), "body": "Why not.",
		"files": []any{fileOf("update", "checks/inodes.md", fmt.Sprint("# More ", i, "\n"))}})
}

// TestTheLookForOthersCostsOneRequest opens a pull request of somebody else at the last moment, so that ours does not
// get the next number.
func TestTheLookForOthersCostsOneRequest(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.title(), func(t *testing.T) {
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
			if got, usual := len(w.forge.Faults().Requests()), len(sequenceOfProposal(t, k)); got != usual+1 {
				t.Errorf("%d requests, %d are usual", got, usual)
			}
		})
	}
}
