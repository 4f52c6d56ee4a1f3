//go:build !postgres

package store

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// lockFilesIn lists the files of the processes.
func lockFilesIn(t testing.TB, place string) []string {
	t.Helper()
	return must.Get(filepath.Glob(filepath.Join(place, locksFolder, "*")))(t)
}

func TestAReservationHasALockFileUntilItEnds(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	names := []string{"a", "b", "c"}
	s := open(t, place, Options{NewID: func() string {
		name := names[0]
		names = names[1:]
		return name
	}})
	files := func(names ...string) (out []string) {
		for _, name := range names {
			out = append(out, filepath.Join(place, "owners", name+".lock"))
		}
		return out
	}
	recordAttempts(t, s, attempt("1"))
	wantEqual(t, len(lockFilesIn(t, place)), 0)
	reserve(t, s, proposal("1", "checks/a.md"), 0)
	reserve(t, s, proposal("2", "checks/b.md"), 0)
	wantEqual(t, lockFilesIn(t, place), files("a", "b"))
	for path, want := range map[string]fs.FileMode{"owners": fs.ModeDir | 0o700, "owners/a.lock": 0o600} {
		wantEqual(t, must.Get(os.Stat(filepath.Join(place, path)))(t).Mode(), want)
	}
	wantTaken(t, s, proposal("3", "checks/a.md"), 0, "1")
	wantEqual(t, lockFilesIn(t, place), files("a", "b"))
	finish(t, s, "1", record.Progress{State: record.StateFailed})
	wantEqual(t, lockFilesIn(t, place), files("b"))
	wantEqual(t, s.Close(), nil)
	wantEqual(t, len(lockFilesIn(t, place)), 0)
}

func TestTheFileOfAKilledProcessIsRemovedByWhoeverFindsIt(t *testing.T) {
	t.Parallel()
	for name, find := range map[string]func(t *testing.T, s *Store){
		"who asks about it":           func(t *testing.T, s *Store) { wantEqual(t, abandoned(t, s)["killed"], true) },
		"who makes a file of its own": func(t *testing.T, s *Store) { reserve(t, s, proposal("1", "checks/a.md"), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			place := newPlace(t)
			s := open(t, place, Options{NewID: func() string { return "mine" }})
			cmd, process := holder(t, place, "killed")
			left := filepath.Join(place, locksFolder, process+lockSuffix)
			kill(t, cmd)
			must.Get(os.Stat(left))(t)
			find(t, s)
			if _, err := os.Stat(left); err == nil {
				t.Fatal("it is still there")
			}
			wantEqual(t, abandoned(t, s)["killed"], true)
		})
	}
}

func TestAReservationWhoseFileWasRemovedIsTakenForAbandonedByOthers(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	s, other := open(t, place, Options{}), open(t, place, Options{})
	reserve(t, s, proposal("before", "checks/a.md"), 0)
	wantEqual(t, os.Remove(lockFilesIn(t, place)[0]), nil)
	wantEqual(t, abandoned(t, other), map[string]bool{"before": true})
	wantEqual(t, abandoned(t, s), map[string]bool{"before": false}) // it knows better
	reserve(t, s, proposal("after", "checks/b.md"), 0)
	wantEqual(t, abandoned(t, other), map[string]bool{"before": true, "after": false})
	wantEqual(t, abandoned(t, s), map[string]bool{"before": false, "after": false})
}

func TestANameThatIsNoFilesNameIsLeftAlone(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	s := open(t, place, Options{})
	reserve(t, s, proposal("1", "checks/a.md"), 0)
	outside := write(t, place, "x"+lockSuffix, "precious")
	mustExec(t, raw(t, s), "UPDATE proposals SET process = '../x'")
	wantEqual(t, abandoned(t, s), map[string]bool{"1": false})
	must.Get(os.Stat(outside))(t)
}

func TestAFileThatWasTakenForALeftOneBeforeItWasLockedIsNoSignOfLife(t *testing.T) {
	t.Parallel()
	s := open(t, newPlace(t), Options{})
	reserve(t, s, proposal("1", "checks/a.md"), 0) // makes the folder
	files := s.db.conn.locks.(*fileLocks)
	file := must.Get(os.OpenFile(files.path("new"), os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode))(t)
	defer func() { _ = file.Close() }()
	wantEqual(t, must.Get(files.hasEnded("new"))(t), true)
	wantEqual(t, must.Get(lockNew(file))(t), false)
}
