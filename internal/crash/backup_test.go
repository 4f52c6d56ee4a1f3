//go:build linux && !postgres

package crash

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// backupRounds is how often a backup, and how often a restore, is killed.
const backupRounds = 25

// installed is what tells one installation's records from another's.
type installed struct{ head, key string }

// TestKillNineDuringABackup kills backups that replace one that exists. The file is the former backup or the new one, and the
// next backup leaves nothing of the killed ones beside it.
func TestKillNineDuringABackup(t *testing.T) {
	w, random := newWorld(t), randomOf(t)
	file, folder := w.at("kept/records.tar"), w.at("kept")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	w.propose1(t, 0)
	before := w.recordsIn(t, w.at("state"))
	typical := w.timed(t, "backup", file)
	killed := 0
	for round := range backupRounds {
		w.propose1(t, round+1)
		after := w.recordsIn(t, w.at("state"))
		c := w.start(t, "", "backup", "--force", file)
		if c.killAfter(random, typical); c.killed(t) {
			killed++
		}
		switch got := w.heldBy(t, file); got {
		case before, after:
			before = got
		default:
			t.Fatalf("round %d: the backup holds %v, want %v or %v", round, got, before, after)
		}
	}
	w.run(t, "backup", "--force", file)
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("beside the backup: %v, %v", left, err)
	}
	t.Logf("%d of %d backups were killed", killed, backupRounds)
	if killed == 0 {
		t.Error("none was killed")
	}
}

// TestKillNineDuringARestore kills restores that replace the records of one installation by those of another, and back.
// Records and key are of the same one afterwards, whole.
func TestKillNineDuringARestore(t *testing.T) {
	w, random := newWorld(t), randomOf(t)
	w.propose1(t, 0)
	w.run(t, "backup", w.at("a.tar"))
	a := w.recordsIn(t, w.at("state"))
	other := newWorld(t)
	other.propose1(t, 0)
	other.propose1(t, 1)
	other.run(t, "backup", w.at("b.tar"))
	b := other.recordsIn(t, other.at("state"))
	if a.key == b.key {
		t.Fatal("both have the same key")
	}
	files := map[string]string{a.key: w.at("a.tar"), b.key: w.at("b.tar")}
	heads := map[string]string{a.key: a.head, b.key: b.head}
	typical := w.timed(t, "restore", "--replace", files[a.key])
	now, killed := w.recordsIn(t, w.at("state")), 0
	for round := range backupRounds {
		next := a
		if now.key == a.key {
			next = b
		}
		c := w.start(t, "", "restore", "--replace", files[next.key])
		if c.killAfter(random, typical); c.killed(t) {
			killed++
		}
		got := w.recordsIn(t, w.at("state"))
		w.run(t, "audit", "verify", "--expect-head", heads[got.key]) // what the backup held is in the chain, with its own key
		if got != now && got.key != next.key {
			t.Fatalf("round %d: got %v, want %v or the backup %v", round, got, now, next)
		}
		now = got
	}
	t.Logf("%d of %d restores were killed", killed, backupRounds)
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
	if a := w.asked(t, newCheck(fmt.Sprintf("Check %d", n), fmt.Sprintf("checks/check-%d.md", n), "# Check\n")); a.Number == 0 {
		t.Fatalf("not opened: %+v", a)
	}
}

// timed runs a command to its end, and returns how long that took.
func (w *world) timed(t *testing.T, args ...string) time.Duration {
	t.Helper()
	began := time.Now()
	w.run(t, args...)
	return time.Since(began)
}

// recordsIn verifies the records of a state folder.
func (w *world) recordsIn(t *testing.T, dir string) installed {
	t.Helper()
	report := decode[struct {
		OK   bool
		Head string
	}](t, []byte(w.runAt(t, dir, "audit", "verify", "--json")))
	key, err := os.ReadFile(filepath.Join(dir, "mark.key"))
	if err != nil || !report.OK || strings.TrimSpace(string(key)) == "" {
		t.Fatalf("%+v with the key %q, %v", report, key, err)
	}
	return installed{report.Head, string(key)}
}

// heldBy is what a backup holds, without the row of the restore: its head is the one that the backup was made with.
func (w *world) heldBy(t *testing.T, file string) installed {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	answer := decode[struct{ Head string }](t, []byte(w.runAt(t, dir, "restore", file, "--json")))
	return installed{answer.Head, w.recordsIn(t, dir).key}
}

// runAt is run for another state folder.
func (w *world) runAt(t *testing.T, dir string, args ...string) string {
	t.Helper()
	c := &child{}
	c.cmd, c.cancel = w.prepare(t, "claudeops", args...)
	c.cmd.Env = append(c.cmd.Env, "CLAUDEOPS_STATE_DIR="+dir)
	c.start(t, "")
	if _, code := c.wait(t); code != 0 {
		t.Fatalf("claudeops %v: exit %d\n%s%s", args, code, &c.out, &c.err)
	}
	return c.out.String()
}

// killAfter kills the child after a random part of the time that it takes if nobody does.
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
