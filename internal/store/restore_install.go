package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/claudeops/claudeops/internal/fault"
)

// Names in the state folder while records are restored.
const (
	restoreDraft = "restore.new"   // being prepared; worthless after a kill
	restoreReady = "restore.ready" // decided: what is in it takes the place of what is there
	asideName    = "aside"         // in restore.ready: name of the folder for former records
)

func (p place) in(name string) string { return filepath.Join(p.dir, name) }

// databaseFiles are the files that one database may consist of, itself last.
func databaseFiles() []string {
	return []string{databaseName + "-wal", databaseName + "-shm", databaseName + "-journal", databaseName}
}

// installing reports whether a restore was decided and is not done.
func (p place) installing() (bool, error) {
	_, err := os.Lstat(p.in(restoreReady))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// FinishRestore does what a killed restore of the records in dir has left to do. Opening the records does it, too; whoever
// reads another file of the folder calls it first.
func FinishRestore(ctx context.Context, dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	return place{dir: abs, path: filepath.Join(abs, databaseName)}.finishRestore(ctx)
}

func (p place) finishRestore(ctx context.Context) error {
	if decided, err := p.installing(); err != nil || !decided { // no folder, or none that can be read: what follows says so
		return nil
	}
	unlock, err := p.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	_, err = p.install()
	return err
}

// install does what a decided restore asks for, from where a killed process left it, and returns the folder that former
// records are in, "" for none. Nothing decided is nothing to do. The caller holds the lock of the folder. The database comes
// last, so that as long as it is not there, former files are what they were.
func (p place) install() (aside string, err error) {
	if decided, err := p.installing(); err != nil || !decided {
		return "", p.unfinished(err)
	}
	ready := p.in(restoreReady)
	name, err := os.ReadFile(filepath.Join(ready, asideName))
	if errors.Is(err, fs.ErrNotExist) { // killed between the last two steps
		return "", p.unfinished(os.Remove(ready))
	}
	if err != nil || string(name) != filepath.Base(string(name)) {
		return "", p.unfinished(errors.Join(err, fs.ErrInvalid))
	}
	aside = p.in(string(name))
	names, err := plainFiles(ready)
	if err != nil {
		return "", p.unfinished(err)
	}
	for _, name := range inOrder(names) {
		if err := p.swap(name, aside); err != nil {
			return "", p.unfinished(err)
		}
	}
	// The mark goes first: without files that is all that makes the folder a decision.
	if err := errors.Join(os.Remove(filepath.Join(ready, asideName)), os.Remove(ready), syncDir(p.dir)); err != nil {
		return "", p.unfinished(err)
	}
	if _, err := os.Stat(aside); err != nil {
		return "", nil
	}
	return aside, nil
}

// swap moves a former file of the name aside, with its journals if it is the database, and the new one in.
func (p place) swap(name, aside string) error {
	former := []string{name}
	if name == databaseName {
		former = databaseFiles()
	}
	for _, old := range former {
		if _, err := os.Lstat(p.in(old)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.MkdirAll(aside, dirMode); err != nil {
			return err
		}
		if err := os.Rename(p.in(old), filepath.Join(aside, old)); err != nil {
			return err
		}
	}
	if _, err := os.Stat(aside); err == nil {
		if err := syncDir(aside); err != nil {
			return err
		}
	}
	return errors.Join(os.Rename(filepath.Join(p.in(restoreReady), name), p.in(name)), syncDir(p.dir))
}

func (p place) unfinished(err error) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(err, fault.Internal, "a restore was decided and cannot be finished in the state folder %s (%s); "+
		"correct that, and start claudeops again: it goes on", p.dir, FileReason(err))
}

// inOrder puts the database last and leaves the note out.
func inOrder(names []string) []string {
	out := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == databaseName || n == asideName })
	if slices.Contains(names, databaseName) {
		out = append(out, databaseName)
	}
	return out
}

// plainFiles are the names in a folder that holds plain files only.
func plainFiles(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			return nil, fmt.Errorf("%s is no plain file", entry.Name())
		}
		names = append(names, entry.Name())
	}
	return names, err
}

// sameOthers refuses to replace other files than the database by different ones, unless that is what was asked for.
func (p place) sameOthers(names []string, replace bool) error {
	for _, name := range names {
		if name == databaseName {
			continue
		}
		there, err := os.ReadFile(p.in(name))
		if errors.Is(err, fs.ErrNotExist) || err == nil && replace {
			continue
		}
		if err != nil {
			return err
		}
		comes, err := os.ReadFile(filepath.Join(p.in(restoreDraft), name))
		if err != nil {
			return err
		}
		if !bytes.Equal(there, comes) {
			return fault.New(fault.Conflict, "%s is there and differs from that of the backup; move it aside with --replace", p.in(name))
		}
	}
	return nil
}

// keepOnly removes what opening the database has left beside the files of those names.
func (p place) keepOnly(names []string) error {
	entries, err := os.ReadDir(p.dir)
	for _, entry := range entries {
		if !slices.Contains(names, entry.Name()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(p.dir, entry.Name())))
		}
	}
	return err
}

// freeName is the first of name, name-2, name-3... that is not there.
func (p place) freeName(name string) (string, error) {
	free := name
	for n := 2; ; n++ {
		_, err := os.Lstat(p.in(free))
		if errors.Is(err, fs.ErrNotExist) {
			return free, nil
		}
		if err != nil {
			return "", err
		}
		free = fmt.Sprintf("%s-%d", name, n)
	}
}
