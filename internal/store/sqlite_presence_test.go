//go:build !postgres

package store

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// lockFilesIn lists the files of the processes.
func lockFilesIn(t testing.TB, place string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(place, ownersName, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestOnlyAStoreThatReservesHasALockFileUntilItIsClosed(t *testing.T) {
	place := newPlace(t)
	s := open(t, place, Options{NewID: func() string { return "name" }})
	recordAttempts(t, s, attempt("1"))
	wantEqual(t, len(lockFilesIn(t, place)), 0)
	reserve(t, s, proposal("1", "checks/a.md"), 0)
	reserve(t, s, proposal("2", "checks/b.md"), 0)
	wantEqual(t, lockFilesIn(t, place), []string{filepath.Join(place, "owners", "name.lock")})
	for path, want := range map[string]fs.FileMode{"owners": fs.ModeDir | 0o700, "owners/name.lock": 0o600} {
		info, err := os.Stat(filepath.Join(place, path))
		wantEqual(t, err, nil)
		wantEqual(t, info.Mode(), want)
	}
	wantEqual(t, s.Close(), nil)
	wantEqual(t, len(lockFilesIn(t, place)), 0)
}

func TestTheFileOfAKilledProcessIsRemovedByWhoeverFindsIt(t *testing.T) {
	for name, find := range map[string]func(t *testing.T, s *Store){
		"who asks about it":           func(t *testing.T, s *Store) { wantEqual(t, abandoned(t, s)["killed"], true) },
		"who makes a file of its own": func(t *testing.T, s *Store) { reserve(t, s, proposal("1", "checks/a.md"), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			place := newPlace(t)
			s := open(t, place, Options{NewID: func() string { return "mine" }})
			cmd, process := holder(t, place, "killed")
			left := filepath.Join(place, ownersName, process+ownerSuffix)
			kill(t, cmd)
			if _, err := os.Stat(left); err != nil {
				t.Fatalf("a killed process cleans nothing up: %v", err)
			}
			find(t, s)
			if _, err := os.Stat(left); err == nil {
				t.Fatal("it is still there")
			}
			wantEqual(t, abandoned(t, s)["killed"], true)
		})
	}
}

func TestAStoreWhoseFileWasRemovedGetsANewName(t *testing.T) {
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
	place := newPlace(t)
	s := open(t, place, Options{})
	reserve(t, s, proposal("1", "checks/a.md"), 0)
	outside := write(t, place, "x"+ownerSuffix, "precious")
	mustExec(t, raw(t, s), "UPDATE proposals SET process = '../x'")
	wantEqual(t, abandoned(t, s), map[string]bool{"1": false})
	if _, err := os.Stat(outside); err != nil {
		t.Fatal(err)
	}
}

func TestAFileThatWasTakenForALeftOneBeforeItWasLockedIsNoSignOfLife(t *testing.T) {
	s := open(t, newPlace(t), Options{})
	files := s.presence.(*lockFiles)
	wantEqual(t, files.tidy(), nil)
	file, err := os.OpenFile(files.pathOf("new"), os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
	wantEqual(t, err, nil)
	defer func() { _ = file.Close() }()
	left, err := files.left("new")
	wantEqual(t, []any{left, err}, []any{true, nil})
	held, err := lockMade(file)
	wantEqual(t, []any{held, err}, []any{false, nil})
}
