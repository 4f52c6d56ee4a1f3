//go:build linux

package crash

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

const (
	lanes         = 4
	roundsPerLane = 76
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
