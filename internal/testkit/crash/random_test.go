//go:build linux

package crash

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

const (
	lanes         = 4
	roundsPerLane = 38
	freshRounds   = 10 // of each lane: the process also makes the records
)

// seedVariable repeats a run: the delays are the same, though not what the machine does meanwhile.
const seedVariable = "CLAUDEOPS_CRASH_SEED"

// TestKillNineAtRandomMoments kills a server that works on create_pr after a random part of the time that one takes,
// and lets others go on. A lane is a repository of its own.
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
					l := &lane{world: newWorld(t), random: random, tally: map[string]int{}, typical: firstUse}
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
	tally   map[string]int
	last    string // the phase in which the last victim died
	told    []int  // the pull requests that processes of this round were answered with
	locks   int    // that git left when it was killed, too
}

// newLane measures what a call takes, before anything is killed.
func newLane(t *testing.T, random *rand.Rand) *lane {
	t.Helper()
	l := &lane{world: newWorld(t), random: random, tally: map[string]int{}}
	var took []time.Duration
	for i := range 5 {
		r := newCheck(fmt.Sprintf("Measure %d", i), fmt.Sprintf("checks/measure-%d.md", i), "# Measured\n")
		began := time.Now()
		a := l.asked(t, r)
		took = append(took, time.Since(began))
		l.end(t, l.assertOne(t, a.Number, r), gitprovider.StateMerged)
	}
	slices.Sort(took)
	l.typical = took[len(took)/2]
	return l
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
	victim := l.propose(t, r)
	var rival *child
	if then.rival {
		rival = l.propose(t, r)
	}
	l.killSometime(t, victim, rival == nil && l.random.IntN(2) == 0) // a rival's locks must not be taken for the victim's
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

// killSometime kills the victim after a random part of the time that a call takes, with its git commands or without.
func (l *lane) killSometime(t *testing.T, victim *child, withChildren bool) {
	t.Helper()
	delay := time.Duration(l.random.Int64N(int64(l.typical)))
	began := time.Now()
	select {
	case <-time.After(delay): // what is tested is that the moment does not matter
		victim.kill(withChildren)
	case <-victim.ended():
		l.learn(time.Since(began))
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
func (l *lane) learn(took time.Duration) { l.typical = (3*l.typical + took) / 4 }

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

// afterward is a continuation after a kill. It returns the one pull request that is open on the request's file.
type afterward struct {
	name  string
	rival bool // another process proposes the same from the beginning
	run   func(*testing.T, *lane, request) gitprovider.PullRequest
}

func afterwards() []afterward {
	again := func(t *testing.T, l *lane, r request) gitprovider.PullRequest {
		began := time.Now()
		a := l.asked(t, r)
		switch {
		case a.Number == 0:
			t.Errorf("no pull request: %+v", a)
		case a.opened():
			l.learn(time.Since(began))
		}
		return l.assertOne(t, a.Number, r)
	}
	return []afterward{
		{"the same again", false, again},
		{"another change", false, anotherChange},
		{"pr resume", false, func(t *testing.T, l *lane, r request) gitprovider.PullRequest {
			l.run(t, "pr", "resume")
			l.assertSettled(t)
			return again(t, l, r)
		}},
		{"a rival", true, again},
		{"the settling process is killed", false, func(t *testing.T, l *lane, r request) gitprovider.PullRequest {
			l.killSometime(t, l.propose(t, r), l.random.IntN(2) == 0)
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
		t.Fatalf("%s is no seed: %v", seedVariable, err)
	}
	return seed
}
