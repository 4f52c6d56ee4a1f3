//go:build linux

package crash

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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
	for i, step := range steps() {
		for j, then := range recoveries() {
			if !isTried(i, j) {
				continue
			}
			t.Run("killed when "+step.step+", then "+then.name, func(t *testing.T) {
				t.Parallel()
				killedAt(t, step).recover(t, then)
			})
		}
	}
}

// A title that was used before leads to the branch of a pull request that was merged long ago. Which branch that is was
// decided before the first step, so each step is left to one of the recoveries of TestKillAtEveryStep.
func TestKillAtEveryStepUnderATitleOfOld(t *testing.T) {
	for i, step := range steps() {
		then := recoveries()[i%3]
		t.Run("killed when "+step.step+", then "+then.name, func(t *testing.T) {
			t.Parallel()
			k := &killed{stepCase: step, request: newInodes(), number: 2}
			k.world = worldAfter(t, "a merged title", true, newWorld, func(t *testing.T, w *world) {
				old := newCheck(k.request.Title, "checks/old.md", "# Old\n")
				if a := w.asked(t, old); !a.opened() {
					t.Fatalf("not opened: %+v", a)
				}
				w.end(t, w.assertOne(t, 1, old), gitprovider.StateMerged)
			})
			k.doom(t, doomed{Step: k.step, Request: k.request})
			k.recover(t, then)
		})
	}
}

// killed is a world in which a process was killed.
type killed struct {
	*world
	stepCase
	request request
	number  int // of the pull request that the process was about to open
}

// killedAt is a world in which the first process was killed at the step.
func killedAt(t *testing.T, step stepCase) *killed {
	t.Helper()
	k := &killed{stepCase: step, request: newInodes(), number: 1}
	k.world = worldAfter(t, "killed when "+step.step, sharesKilled, newWorld, func(t *testing.T, w *world) {
		w.doom(t, doomed{Step: step.step, Request: k.request})
	})
	return k
}

// newInodes is the proposal that most of the killed processes make.
func newInodes() request { return newCheck("Watch inodes", "checks/inodes.md", "# Inodes\n") }

func (k *killed) recover(t *testing.T, then recovery) {
	t.Helper()
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
	opened := 0
	for _, a := range k.askedAtOnce(t, k.request, several) {
		if a.opened() {
			opened++
		}
		if a.Number != k.number {
			t.Errorf("want #%d: %+v", k.number, a)
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
			k := killedAt(t, step)
			w, r := k.world, k.request
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
	w.setPolicy(t, policyText+"repositories: [\"local:"+repoKey+"\"]\n")
	r := newInodes()
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

const lanes = 4

// seedVariable repeats a run: the delays are the same, though not what the machine does meanwhile.
const seedVariable = "CLAUDEOPS_CRASH_SEED"

// TestKillNineAtRandomMoments kills servers that work on create_pr, and lets others go on. Most of them die at a
// random moment of the part in which they write, and the others at one of all that they do. A lane is a repository of
// its own.
func TestKillNineAtRandomMoments(t *testing.T) {
	seed := seedOf(t)
	t.Logf("seed %d (set %s to repeat it)", seed, seedVariable)
	for n := range lanes {
		t.Run(fmt.Sprintf("lane %d", n), func(t *testing.T) {
			t.Parallel()
			l := newLane(t, rand.New(rand.NewPCG(seed, uint64(n))))
			for round := range roundsPerLane {
				if l.round(t, round); t.Failed() {
					t.FailNow()
				}
			}
			l.assertWhole(t)
			l.report(t)
		})
	}
}

// The first process of all makes state folder, database and key. Killed while it does, it must not keep the next one
// from doing so.
func TestKillNineAtFirstUse(t *testing.T) {
	seed := seedOf(t)
	t.Logf("seed %d (set %s to repeat it)", seed, seedVariable)
	for n := range lanes {
		t.Run(fmt.Sprintf("lane %d", n), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, uint64(lanes+n)))
			for round := range freshRounds {
				t.Run(strconv.Itoa(round), func(t *testing.T) {
					l := &lane{world: newPlace(t), random: random, tally: map[string]int{}, typical: firstUse}
					l.round(t, round)
					l.assertWhole(t)
				})
			}
		})
	}
}

// firstUse is about how long the first call of all takes.
const firstUse = 250 * time.Millisecond

// lane is a world in which one process after another is killed.
type lane struct {
	*world
	random  *rand.Rand
	typical time.Duration // of a call from the start of its process to its end
	writing time.Duration // of a call from its first write to its end; 0 if that is not known
	tally   map[string]int
	last    string // the phase in which the last victim died
	told    []int  // the pull requests that processes of this round were answered with
	locks   int    // that git left when it was killed, too
}

// newLane measures what a call takes, before anything is killed.
func newLane(t *testing.T, random *rand.Rand) *lane {
	t.Helper()
	l := &lane{world: newWorld(t), random: random, tally: map[string]int{}}
	r := newCheck("Measure", "checks/measure.md", "# Measured\n")
	l.end(t, l.measured(t, r), gitprovider.StateMerged)
	return l
}

// measured is the pull request of a process that nobody kills.
func (l *lane) measured(t *testing.T, r request) gitprovider.PullRequest {
	t.Helper()
	began := time.Now()
	c := l.proposeWatched(t, r)
	select {
	case <-c.writes:
	case <-c.ended():
	}
	writes := time.Now()
	_, code := c.wait(t)
	a := c.answered(t, code)
	if a.opened() {
		learn(&l.typical, time.Since(began))
		learn(&l.writing, time.Since(writes))
	}
	return l.assertOne(t, a.Number, r)
}

// round kills one process, lets others settle what it left, and ends the pull request that came of it. Titles come
// back, as an agent's do: what is killed often goes by the branch name of a pull request that ended long ago.
func (l *lane) round(t *testing.T, round int) {
	t.Helper()
	const titles = 3
	r := newCheck(fmt.Sprintf("Watch device %d", l.random.IntN(titles)), fmt.Sprintf("checks/device-%d.md", round),
		fmt.Sprintf("# Device %d\n", round))
	l.told = nil
	defer func() {
		if t.Failed() {
			t.Logf("in round %d; the last one was killed in the phase %q", round, l.last)
		}
	}()
	then := afterwards()[round%len(afterwards())]
	victim := l.proposeWatched(t, r)
	var rival *child
	if then.rival {
		rival = l.propose(t, r)
	}
	// A rival's locks must not be taken for the victim's, and it may leave the victim nothing to write.
	l.killSometime(t, victim, rival == nil && l.random.IntN(2) == 0, rival == nil && l.random.IntN(4) > 0)
	if rival != nil {
		rival.wait(t)
		a, _, done := rival.said(t)
		if !done || a.Number == 0 {
			t.Errorf("the rival got no pull request: %+v\n%s", a, &rival.err)
		}
		l.told = append(l.told, a.Number)
	}
	pr := then.run(t, l, r)
	l.assertSettled(t)
	for _, number := range l.told {
		if number != pr.Number {
			t.Errorf("processes were answered with %v, and #%d is open", l.told, pr.Number)
		}
	}
	l.end(t, pr, []gitprovider.State{gitprovider.StateMerged, gitprovider.StateClosed}[l.random.IntN(2)])
}

// firstWrite is the first phase of a call in which it leaves something.
const firstWrite = "reserving the files"

// watched is a server of which can be said when it begins to write.
type watched struct {
	*child
	writes chan struct{} // closed when it begins
}

func (w watched) Write(b []byte) (int, error) {
	before := w.out.Len()
	n, err := w.child.Write(b)
	if begins := []byte(firstWrite); !bytes.Contains(w.out.Bytes()[:before], begins) &&
		bytes.Contains(w.out.Bytes(), begins) {
		close(w.writes)
	}
	return n, err
}

// proposeWatched is propose of a server that is about to be killed.
func (w *world) proposeWatched(t *testing.T, r request) watched {
	t.Helper()
	victim := watched{&child{}, make(chan struct{})}
	victim.cmd, victim.cancel = w.prepare(t, "claudeops", "mcp-server")
	victim.cmd.Stdout = victim
	victim.start(t, proposalOf(r))
	return victim
}

// killSometime kills the victim with its git commands or without, at a random moment of all that a call does, or of
// what it does from its first write on, if it comes to one.
func (l *lane) killSometime(t *testing.T, victim watched, withChildren, writing bool) {
	t.Helper()
	began, most := time.Now(), &l.typical
	if writing && l.writing > 0 {
		select {
		case <-victim.writes:
		case <-victim.ended():
		}
		began, most = time.Now(), &l.writing
	}
	select {
	// what is tested is that the moment does not matter
	case <-time.After(time.Duration(l.random.Int64N(int64(*most)))):
		victim.kill(withChildren)
	case <-victim.ended():
		learn(most, time.Since(began))
	}
	killed, _ := victim.wait(t)
	a, phases, answered := victim.said(t)
	if answered {
		l.told = append(l.told, a.Number)
	}
	switch {
	case !killed:
		l.last = "8 ended before the kill"
	case answered:
		l.last = "7 answered"
	case len(phases) == 0:
		l.last = "0 starting"
	default:
		l.last = strconv.Itoa(len(phases)) + " " + phases[len(phases)-1]
	}
	l.tally[l.last]++
	if withChildren {
		l.last += ", with its git commands"
		if left := outlast(func() []int { return linkedTo("cwd", l.dir) }, patience); len(left) > 0 {
			t.Errorf("processes that did not die: %v", left)
		}
		l.unlock(t)
	}
}

// learn follows the load of the machine.
func learn(typical *time.Duration, took time.Duration) {
	if *typical == 0 {
		*typical = took
	}
	*typical = max((3**typical+took)/4, time.Millisecond)
}

// unlock is the operator's part after git was killed: git leaves its lock files then, and only a person can know
// whether they still count.
func (l *lane) unlock(t *testing.T) {
	t.Helper()
	for _, lock := range l.lockFiles(t) {
		l.locks++
		if err := os.Remove(lock); err != nil {
			t.Fatal(err)
		}
	}
}

// afterward is a continuation after a kill, by a process of its own in the first case, and in this process otherwise.
// It returns the one pull request that is open on the request's file.
type afterward struct {
	name  string
	rival bool // another process proposes the same from the beginning
	run   func(*testing.T, *lane, request) gitprovider.PullRequest
}

func afterwards() []afterward {
	again := func(t *testing.T, l *lane, r request) gitprovider.PullRequest {
		return l.assertOne(t, l.asked(t, r).Number, r)
	}
	return []afterward{
		{"the same again", false, func(t *testing.T, l *lane, r request) gitprovider.PullRequest {
			return l.measured(t, r)
		}},
		{"another change", false, anotherChange},
		{"pr resume", false, func(t *testing.T, l *lane, r request) gitprovider.PullRequest {
			l.run(t, "pr", "resume")
			l.assertSettled(t)
			return again(t, l, r)
		}},
		{"a rival", true, again},
		{"the settling process is killed", false, func(t *testing.T, l *lane, r request) gitprovider.PullRequest {
			l.killSometime(t, l.proposeWatched(t, r), l.random.IntN(2) == 0, false)
			return again(t, l, r)
		}},
	}
}

func anotherChange(t *testing.T, l *lane, r request) gitprovider.PullRequest {
	other := newCheck("Watch it otherwise", r.Files[0].Path, r.Files[0].Content+"\nOtherwise.\n")
	a := l.asked(t, other)
	if a.opened() {
		return l.assertOne(t, a.Number, other)
	}
	if a.Error.Code != "duplicate_pr" {
		t.Errorf("neither opened nor refused for the pull request of the killed process: %+v", a)
	}
	number, _ := a.about()
	return l.assertOne(t, number, r)
}

// report logs in which phase how many died.
func (l *lane) report(t *testing.T) {
	t.Helper()
	text := ""
	for _, phase := range slices.Sorted(maps.Keys(l.tally)) {
		text += fmt.Sprintf("; %s: %d", phase, l.tally[phase])
	}
	folders, _ := filepath.Glob(l.at("tmp/*")) // the pattern is valid
	t.Logf("a call takes %v; locks of killed git commands: %d; temporary folders left: %d%s",
		l.typical.Round(time.Millisecond), l.locks, len(folders), text)
}

// seedOf is the seed of the delays: a new one for each run, unless the environment names one.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv(seedVariable)
	if text == "" {
		return rand.Uint64()
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s is not a seed: %v", seedVariable, err)
	}
	return seed
}
