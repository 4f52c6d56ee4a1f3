//go:build linux && !postgres

package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/records/store"
)

// newDatabase is the value of CLAUDEOPS_DATABASE_URL for one world: none, so that the records are in its state folder.
func newDatabase(*testing.T, string) string { return "" }

func copyDatabase(*testing.T, string) string { return "" }

func dropDatabases() {}

// sharesKilled says that one process is killed for all tests that look at what such a process left.
const sharesKilled = true

// The rounds in which a process is killed at a random moment, for each lane: three with each of afterwards.
const (
	roundsPerLane = 15
	freshRounds   = 5 // in these the process also makes the records
)

// isTried reports whether a recovery is tried after a kill at a step.
func isTried(_, _ int) bool { return true }

// backupRounds is the number of times that a backup is killed.
const backupRounds = 15

// installed identifies an installation's records.
type installed struct{ head, key string }

// TestKillNineDuringABackup kills backups. A folder that has its name is whole: its audit verifies up to the head that
// the records had, with the same key, and proposals go on with it. What a killed backup leaves has another name, and is
// refused to be written over.
func TestKillNineDuringABackup(t *testing.T) {
	w, random := newWorld(t), randomOf(t)
	w.propose1(t, 0)
	typical := w.timed(t, "backup", w.at("timed"))
	killed, left := 0, 0
	for round := range backupRounds {
		w.propose1(t, round+1)
		want := w.recordsIn(t, w.at("state"))
		folder := w.at(fmt.Sprintf("kept-%d", round))
		c := w.start(t, "", "backup", folder)
		if c.killAfter(random, typical); c.killed(t) {
			killed++
		}
		if _, err := os.Stat(folder); err == nil {
			if got := w.recordsIn(t, folder); got != want {
				t.Fatalf("round %d: the backup holds %v, want %v", round, got, want)
			}
			continue
		}
		if _, err := os.Stat(folder + ".partial"); err == nil {
			left++
		}
	}
	t.Logf("%d of %d backups were killed, %d left a part", killed, backupRounds, left)
	if killed == 0 {
		t.Error("none was killed")
	}
}

func randomOf(t *testing.T) *rand.Rand {
	t.Helper()
	seed := seedOf(t)
	t.Logf("seed %d (set %s to repeat it)", seed, seedVariable)
	return rand.New(rand.NewPCG(seed, 0))
}

// propose1 opens the n-th pull request of the world.
func (w *world) propose1(t *testing.T, n int) {
	t.Helper()
	if a := w.asked(t, newCheck(fmt.Sprintf("Check %d", n), fmt.Sprintf("checks/check-%d.md", n),
		"# Check\n")); a.Number == 0 {
		t.Fatalf("not opened: %+v", a)
	}
}

// timed runs a command in a process to its end, and returns how long that took.
func (w *world) timed(t *testing.T, args ...string) time.Duration {
	t.Helper()
	began := time.Now()
	if w.start(t, "", args...).killed(t) {
		t.Fatalf("claudeops %v was killed", args)
	}
	return time.Since(began)
}

// recordsIn verifies the records of a state folder.
func (w *world) recordsIn(t *testing.T, dir string) installed {
	t.Helper()
	records := store.New(dir, store.Options{LocalRoot: func() string { return local.RootIdentity(w.at("root")) }})
	defer func() { _ = records.Close() }() // it was only read
	report, err := records.Audit.Verify(t.Context(), "")
	key, keyErr := os.ReadFile(filepath.Join(dir, "mark.key"))
	if err := errors.Join(err, keyErr); err != nil || !report.OK() || strings.TrimSpace(string(key)) == "" {
		t.Fatalf("%+v with the key %q, %v", report, key, err)
	}
	return installed{report.Head, string(key)}
}

// killAfter kills the child after a random part of the time that it usually takes.
func (c *child) killAfter(random *rand.Rand, typical time.Duration) {
	wait := time.NewTimer(time.Duration(random.Int64N(int64(typical))))
	defer wait.Stop()
	select {
	case <-c.ended():
	case <-wait.C:
	}
	c.kill(false)
}

// killed waits for the child, which may have ended well before it could be killed.
func (c *child) killed(t *testing.T) bool {
	t.Helper()
	killed, code := c.wait(t)
	if !killed && code != 0 {
		t.Fatalf("exit %d\n%s%s", code, &c.out, &c.err)
	}
	return killed
}
