//go:build linux

package crash

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// atOnce bounds an answer that does not wait, on a busy machine. A reservation that is stuck holds its files for 270 s;
// others are refused after 20 s, which the answers show.
const atOnce = patience

// stepCase is a step of a creation, and what a process that is killed there leaves.
type stepCase struct {
	step   string
	state  record.ProposalState // of what is left unfinished; "": nothing is
	branch bool
	pr     bool
}

func steps() []stepCase {
	return []stepCase{
		{"reserved", record.StateReserved, false, false},
		{"committed", record.StateReserved, true, false},
		{"commit recorded", record.StateCommitted, true, false},
		{"opened", record.StateCommitted, true, true},
		{"labelled", record.StateCommitted, true, true},
		{"recorded", "", true, true},
	}
}

// recovery is a continuation after the kill. It ends with one open pull request.
type recovery struct {
	name string
	run  func(*testing.T, *killed)
}

func recoveries() []recovery {
	return []recovery{
		{"the same is proposed again", func(t *testing.T, k *killed) { k.sameAgain(t) }},
		{"another change of the same file is proposed", func(t *testing.T, k *killed) { k.another(t) }},
		{"pr resume runs", func(t *testing.T, k *killed) {
			k.run(t, "pr", "resume")
			k.assertResumed(t)
			k.sameAgain(t)
		}},
		{"the same is proposed again by several at once", func(t *testing.T, k *killed) { k.sameAtOnce(t) }},
	}
}

func TestKillAtEveryStep(t *testing.T) {
	for _, step := range steps() {
		for _, then := range recoveries() {
			t.Run("killed when "+step.step+", then "+then.name, func(t *testing.T) {
				t.Parallel()
				k := &killed{world: newWorld(t), stepCase: step, number: 1}
				k.request = newCheck("Watch inodes", "checks/inodes.md", "# Inodes\n")
				k.dieAndRecover(t, then)
			})
		}
	}
}

// A title that was used before leads to the branch of a pull request that was merged long ago.
func TestKillAtEveryStepUnderATitleOfOld(t *testing.T) {
	for _, step := range steps() {
		for _, then := range recoveries()[:3] {
			t.Run("killed when "+step.step+", then "+then.name, func(t *testing.T) {
				t.Parallel()
				k := &killed{world: newWorld(t), stepCase: step, number: 2}
				old := newCheck("Watch inodes", "checks/old.md", "# Old\n")
				k.request = newCheck(old.Title, "checks/inodes.md", "# Inodes\n")
				if a := k.asked(t, old); !a.opened() {
					t.Fatalf("not opened: %+v", a)
				}
				k.end(t, k.assertOne(t, 1, old), gitprovider.StateMerged)
				k.dieAndRecover(t, then)
			})
		}
	}
}

// killed is a world in which a process was killed.
type killed struct {
	*world
	stepCase
	request request
	number  int // of the pull request that the process was about to open
}

func (k *killed) dieAndRecover(t *testing.T, then recovery) {
	t.Helper()
	k.doom(t, doomed{Step: k.step, Request: k.request})
	k.assertLeft(t)
	began := time.Now()
	then.run(t, k)
	if took := time.Since(began); took > atOnce {
		t.Errorf("the recovery took %v: somebody waited for the dead", took)
	}
	k.assertSettled(t)
	k.assertSettlement(t)
	k.assertWhole(t)
}

// assertLeft holds that the process died where it should.
func (k *killed) assertLeft(t *testing.T) {
	t.Helper()
	left := k.abandoned(t)
	var state record.ProposalState
	if len(left) > 0 {
		state = left[0].State
	}
	branch, pr := len(k.branches(t)) == 1, len(k.pulls(t, gitprovider.StateOpen)) == 1
	if len(left) > 1 || state != k.state || branch != k.branch || pr != k.pr {
		t.Fatalf("left: %d proposals %s, branch %t, pull request %t; want %+v", len(left), state, branch, pr, k.stepCase)
	}
}

// abandoned returns what is unfinished when all of it counts as abandoned. The kernel tells of a death at once, a
// PostgreSQL server when it notices that the connection has ended.
func (w *world) abandoned(t *testing.T) []record.Proposal {
	t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		left, err := w.store(t).History.Unfinished(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(left, func(p record.Proposal) bool { return !p.Abandoned }) {
			return left
		}
		if time.Since(began) > atOnce {
			t.Fatalf("what the dead process left does not count as abandoned: %v", left)
		}
	}
}

// assertResumed holds that what was left is finished or undone, as far as it had got.
func (k *killed) assertResumed(t *testing.T) {
	t.Helper()
	k.assertSettled(t)
	if k.pr {
		k.assertOne(t, k.number, k.request)
	} else if open := k.pulls(t, gitprovider.StateOpen); len(open) > 0 {
		t.Errorf("a pull request came from nowhere: %v", open)
	}
}

// assertSettlement checks that the audit records the result of the killed process's attempt, once, and truly.
func (k *killed) assertSettlement(t *testing.T) {
	t.Helper()
	var outcomes []record.Outcome
	for _, a := range k.attempts(t) {
		if a.Action == "create_pr.settle" {
			outcomes = append(outcomes, a.Outcome)
		}
	}
	switch {
	case k.state == "" && len(outcomes) == 0:
	case k.state != "" && k.pr && len(outcomes) == 1 && outcomes[0] == record.OutcomeOpened:
	case k.state != "" && !k.pr && len(outcomes) == 1 && outcomes[0] == record.OutcomeFailed:
	default:
		t.Errorf("the audit settles the attempt as %v", outcomes)
	}
}

func (k *killed) sameAgain(t *testing.T) {
	t.Helper()
	a := k.asked(t, k.request)
	if a.Number != k.number || a.Reused != k.pr {
		t.Errorf("want #%d, reused %t: %+v", k.number, k.pr, a)
	}
	k.assertOne(t, k.number, k.request)
}

func (k *killed) another(t *testing.T) {
	t.Helper()
	other := newCheck("Watch inodes more closely", k.request.Files[0].Path, "# Inodes, closely\n")
	a := k.asked(t, other)
	if k.pr {
		if number, _ := a.about(); a.Error.Code != "duplicate_pr" || number != k.number {
			t.Errorf("want a refusal that names #%d: %+v", k.number, a)
		}
		k.assertOne(t, k.number, k.request)
		return
	}
	if !a.opened() || a.Number != k.number {
		t.Errorf("want #%d, opened: %+v", k.number, a)
	}
	k.assertOne(t, k.number, other)
}

func (k *killed) sameAtOnce(t *testing.T) {
	t.Helper()
	const several = 4
	var children []*child
	for range several {
		children = append(children, k.propose(t, k.request))
	}
	var wg sync.WaitGroup
	for _, c := range children {
		wg.Go(func() { c.wait(t) })
	}
	wg.Wait()
	opened := 0
	for _, c := range children {
		a, _, _ := c.said(t)
		if a.opened() {
			opened++
		}
		if a.Number != k.number {
			t.Errorf("want #%d: %+v\n%s", k.number, a, &c.err)
		}
	}
	if want := map[bool]int{false: 1, true: 0}[k.pr]; opened != want {
		t.Errorf("%d of %d opened a pull request, want %d", opened, several, want)
	}
	k.assertOne(t, k.number, k.request)
}

// loseState removes the state folder: the key of the marks, and with SQLite the records.
func (w *world) loseState(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll(w.at("state")); err != nil {
		t.Fatal(err)
	}
}

func TestKillAtEveryStepWithTheStateFolderLost(t *testing.T) {
	for _, step := range steps() {
		t.Run("killed when "+step.step, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := newCheck("Watch inodes", "checks/inodes.md", "# Inodes\n")
			w.doom(t, doomed{Step: step.step, Request: r})
			w.loseState(t)
			began := time.Now()
			if a := w.asked(t, r); a.Number != 1 {
				t.Errorf("want #1: %+v", a)
			}
			if took := time.Since(began); took > atOnce {
				t.Errorf("it took %v: somebody waited for the dead", took)
			}
			w.assertOne(t, 1, r)
			w.assertSettled(t)
			w.assertWhole(t)
		})
	}
}

func TestResumeRemovesABranchWhoseRecordsAreLost(t *testing.T) {
	w := newWorld(t)
	if err := os.WriteFile(w.at("policy.yaml"), []byte(policyText+"repositories: [\"local:"+repoKey+"\"]\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	r := newCheck("Watch inodes", "checks/inodes.md", "# Inodes\n")
	w.doom(t, doomed{Step: "commit recorded", Ago: 2 * time.Hour, Request: r})
	if len(w.branches(t)) != 1 {
		t.Fatalf("branches %v", w.branches(t))
	}
	w.loseState(t)
	out := w.run(t, "pr", "resume")
	if len(w.branches(t)) != 0 || !strings.Contains(out, "claude-ops/") && w.database == "" {
		t.Errorf("branches %v\n%s", w.branches(t), out)
	}
	w.assertSettled(t)
	if a := w.asked(t, r); !a.opened() || a.Number != 1 {
		t.Errorf("want #1: %+v", a)
	}
	w.assertOne(t, 1, r)
	w.assertWhole(t)
}
