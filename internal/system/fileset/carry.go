package fileset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Done is the result of a deployment or a rollback.
type Done struct {
	*Snapshot
	Changed []string // files that somebody changed meanwhile; they were left as they are
}

// applier executes a journal. The caller holds the lock.
type applier struct {
	*journal
	engine *Engine
	disk   disk
	mu     sync.Mutex      // guards gone
	gone   map[string]bool // staged files that wait no longer
	halted bool            // the call's time ended halfway: the next call goes on
}

// placed notes that a staged file no longer waits.
func (w *applier) placed(s Step) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone == nil {
		w.gone = map[string]bool{}
	}
	w.gone[s.Staged] = true
}

// carryOut does what a snapshot says, and finishes with it in the state. What cannot be done whole is taken back, and
// is an error. kept has the contents. needed are the roots whose bases have to be there, roots those that may have a
// manifest.
func (e *Engine) carryOut(ctx context.Context, kept *keeper, snap Snapshot, initial *Snapshot, needed, roots []RootDir,
	keep func(RootDir) bool) (*Done, error) {
	made, err := e.makeBases(&snap, needed)
	if err != nil {
		return nil, err
	}
	real := realPaths(bases(slices.Concat(needed, roots)))
	w := &applier{engine: e, disk: newDisk(bases(snap.Roots)...),
		journal: &journal{Snapshot: snap, Before: map[string]string{}, Folders: made, Real: real, Initial: initial}}
	w.disk.real, w.disk.opened = real, openBases{}
	defer w.disk.opened.close()
	err = w.decideWrites(roots, keep)
	if err == nil {
		err = kept.settle()
	}
	if err == nil {
		err = e.reached("kept")
	}
	if err == nil {
		err = e.state.WriteJSON("journal.json", w.journal)
	}
	if err != nil {
		return nil, e.notBegun(journal{Snapshot: snap, Folders: made}, err)
	}
	err = e.reached("journal")
	if err == nil {
		err = w.stage(ctx)
	}
	if err != nil { // only what waits has to go, also where the time is over
		return nil, w.takeBack(context.WithoutCancel(ctx), err)
	}
	changed, err := w.finishJournal(ctx)
	if w.halted {
		return nil, err
	}
	if err != nil {
		return nil, w.takeBack(ctx, err)
	}
	if err := e.reached("end"); err != nil {
		return nil, err
	}
	_ = e.state.endJournal() // with the snapshot on disk it is done; the next call tries again to remove the journal
	return &Done{&w.Snapshot, changed}, nil
}

// decideWrites decides everything that is written: where files wait, which folders are made, what the manifests have.
func (w *applier) decideWrites(roots []RootDir, keep func(RootDir) bool) (err error) {
	snap, d := &w.Snapshot, w.disk
	slices.SortFunc(snap.Managed, func(a, b FileState) int { return compareKeys(a.fileKey(), b.fileKey()) })
	has := func(r RootDir) bool {
		at, err := d.lstat(ManifestPath(r.Dir, r.Target))
		return err == nil && at.exists
	}
	if w.Manifests, err = manifests(snap, roots, has, keep, w.engine.state.now()); err != nil {
		return NewError(Unexpected, "", nil, "the manifests cannot be written").Because(err)
	}
	if err := w.standAll(); err != nil {
		return err
	}
	for name := range w.Manifests {
		at, err := d.read(name)
		if err != nil {
			return err
		}
		w.Before[name] = string(at.content)
	}
	w.noteMade()
	return nil
}

// standAll decides where the new files wait, and which folders are made. It looks at each folder once.
func (w *applier) standAll() error {
	stands, made := map[string]string{}, map[string]bool{}
	for _, folder := range w.Folders {
		made[folder] = true
	}
	for i := range w.Snapshot.Steps {
		s := &w.Snapshot.Steps[i]
		if s.After == "" {
			continue
		}
		dir, known := stands[filepath.Dir(s.Path)]
		if !known {
			deepest, missing, err := w.stand(s.Path)
			if err != nil {
				return err
			}
			dir, stands[filepath.Dir(s.Path)] = deepest, deepest
			for _, folder := range missing {
				if !made[folder] {
					made[folder] = true
					w.Folders = append(w.Folders, folder)
				}
			}
		}
		s.Staged = filepath.Join(dir, fmt.Sprintf("%s%s-%d", temporary, w.Snapshot.ID, i))
	}
	return nil
}

// stand returns the folder where a new file waits: the deepest one above it that is there, and stays.
func (w *applier) stand(name string) (dir string, missing []string, err error) {
	dir, missing, where, what, err := w.disk.ground(name)
	if err != nil || what == "" {
		return dir, missing, err
	}
	goes := slices.ContainsFunc(w.Snapshot.Steps, func(s Step) bool { return s.Path == where && s.After == "" })
	if !goes {
		return "", nil, NewError(Unexpected, "path_in_the_way", []string{"remove_path", "retry_command"},
			"%s is %s; move it away", where, what).With("path", where)
	}
	dir, missing, err = w.stand(where)
	return dir, append(missing, where), err
}

// stage puts all new files on disk before the first of them takes its place, so that a full disk or a folder that
// cannot be written is found while nothing has changed.
func (w *applier) stage(ctx context.Context) error {
	together, probes := w.engine.gather(), firstInFolder(w.Snapshot.Steps)
	err := eachFile(w.disk, stepPaths(w.Snapshot.Steps), func(d disk, i int) error {
		s := w.Snapshot.Steps[i]
		if err := w.engine.reached(fmt.Sprintf("stage %d", i)); err != nil {
			return err
		}
		switch {
		case ctx.Err() != nil: // what waits is removed again
			return cutOff(ctx.Err())
		case s.After != "":
			return w.stageFile(d, s, together)
		case probes[i]:
			return d.writable(filepath.Dir(s.Path), w.Snapshot.ID)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return together.flush()
}

func (w *applier) stageFile(d disk, s Step, together *gathering) error {
	content, err := w.engine.state.Kept(s.After)
	if err == nil {
		err = d.stage(s.Staged, content, fs.FileMode(s.Mode), together)
	}
	return err
}

// firstInFolder returns the first step of each folder that removes a file.
func firstInFolder(steps []Step) map[int]bool {
	out, seen := map[int]bool{}, map[string]bool{}
	for i, s := range steps {
		if dir := filepath.Dir(s.Path); s.After == "" && !seen[dir] {
			seen[dir], out[i] = true, true
		}
	}
	return out
}

func stepPaths(steps []Step) []string {
	out := make([]string, len(steps))
	for i, s := range steps {
		out[i] = s.Path
	}
	return out
}

// stageAgain puts on disk the new files of a journal that were not given their place before the process was killed.
// What it cannot stage, put writes to its place. It ends with ctx; the next call syncs what waits.
func (w *applier) stageAgain(ctx context.Context) {
	together := w.engine.gather()
	over := eachFile(w.disk, stepPaths(w.Snapshot.Steps), func(d disk, i int) error {
		s := w.Snapshot.Steps[i]
		if ctx.Err() != nil || s.After == "" || s.Staged == "" {
			return ctx.Err()
		}
		if at, err := d.lstat(s.Path); err != nil || at.hash == s.After {
			return nil //nolint:nilerr // do finds it, too
		}
		if waits(d, s) && d.syncFile(s.Staged, together) == nil {
			return nil
		}
		if w.stageFile(d, s, together) != nil {
			_ = d.remove(s.Staged)
		}
		return nil
	})
	if over != nil {
		return
	}
	if together.flush() != nil {
		w.removeStaged()
	}
}

// removeStaged removes the files that still wait.
func (w *applier) removeStaged() {
	for _, s := range w.Snapshot.Steps {
		if s.Staged != "" && !w.gone[s.Staged] {
			_ = w.disk.remove(s.Staged)
		}
	}
}

// waits reports whether a file waits whole beside its place.
func waits(d disk, s Step) bool {
	if s.Staged == "" {
		return false
	}
	waiting, err := d.lstat(s.Staged)
	return err == nil && waiting.hash == s.After && uint32(waiting.mode) == s.Mode
}

// finishJournal does the rest of a journal up to its snapshot, from wherever it was left. changed are files that
// somebody changed meanwhile: they are left as they are, as drift. If ctx ends, the next call goes on.
func (w *applier) finishJournal(ctx context.Context) (changed []string, err error) {
	if changed, err = w.applySteps(ctx, w.Snapshot.Steps); err != nil {
		return changed, err
	}
	if err := w.writeManifests(w.Manifests); err != nil {
		return changed, err
	}
	w.cleanUp()
	if err := w.engine.reached("folders"); err != nil {
		return changed, err
	}
	w.leaveFolders()
	if err := w.engine.reached("snapshot"); err != nil {
		return changed, err
	}
	if w.Initial != nil {
		if err := w.engine.state.WriteJSON(snapshotFile(w.Initial.ID), w.Initial); err != nil {
			return changed, err
		}
		if err := w.engine.reached("initial"); err != nil {
			return changed, err
		}
	}
	if err := w.engine.state.WriteJSON(snapshotFile(w.Snapshot.ID), w.Snapshot); err != nil {
		return changed, err
	}
	return changed, nil
}

// applySteps makes the steps: files that go before those that come, since one may have to make room for another's
// folder. It halts when ctx ends.
func (w *applier) applySteps(ctx context.Context, steps []Step) (changed []string, err error) {
	for _, removing := range []bool{true, false} {
		theirs := make([]bool, len(steps))
		err := eachFile(w.disk, stepPaths(steps), func(d disk, i int) error {
			if (steps[i].After == "") != removing {
				return nil
			}
			if err := w.engine.reached(fmt.Sprintf("step %d", i)); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			ours, err := w.do(d, steps[i])
			theirs[i] = err == nil && !ours
			return err
		})
		for i, s := range steps {
			if theirs[i] {
				changed = append(changed, s.Path)
			}
		}
		switch {
		case err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()):
			return changed, w.halt(err)
		case err != nil:
			return changed, err
		}
	}
	return changed, nil
}

// halt leaves the journal to the next call, since the time of this one is over.
func (w *applier) halt(because error) error {
	w.halted = true
	return NewError(Unexpected, "unfinished", []string{"retry_command"}, "the call was ended while files were put in place; "+
		"the next call goes on where it was").Because(because)
}

func (w *applier) writeManifests(texts map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if err := w.engine.reached("manifest " + filepath.Base(name)); err != nil {
			return err
		}
		if texts[name] == "" {
			if err := w.disk.remove(name); err != nil {
				return err
			}
			continue
		}
		if at, err := w.disk.read(name); err == nil && at.what == "" && string(at.content) == texts[name] {
			continue // what is taken back needs no room on a disk that is full
		}
		if err := w.disk.write(name, []byte(texts[name]), 0o644, w.Snapshot.ID); err != nil {
			return err
		}
	}
	return nil
}

// cleanUp removes what still waits, and puts the folders that were changed on disk.
func (w *applier) cleanUp() {
	w.removeStaged()
	names := slices.Collect(maps.Keys(w.Manifests))
	for _, s := range w.Snapshot.Steps {
		names = append(names, s.Path)
	}
	w.disk.sync(append(names, w.Folders...))
}

// do makes one step, unless it was made. ours is false for a file that is neither as before nor as after.
func (w *applier) do(d disk, s Step) (ours bool, err error) {
	at, err := d.lstat(s.Path)
	if err != nil {
		return false, err
	}
	switch {
	case at.hash == s.After && at.exists == (s.After != "") && at.what == "" &&
		(s.After == "" || uint32(at.mode) == s.Mode):
		return true, nil
	case at.what == aFolder && s.After != "":
		if err := d.removeEmpty(s.Path); err != nil {
			return false, nil //nolint:nilerr // somebody has put files into it
		}
	case at.what != "" || at.exists && at.hash != s.Before && at.hash != s.After || !at.exists && s.Before != "" &&
		s.After != "":
		return false, nil
	}
	if s.After == "" {
		return true, d.remove(s.Path)
	}
	return true, w.placeFile(d, s)
}

// placeFile gives a file its place, from where it waits, or else from the state.
func (w *applier) placeFile(d disk, s Step) (err error) {
	if waits(d, s) {
		if err = d.moveIntoPlace(s.Staged, s.Path); err == nil {
			w.placed(s)
		}
	} else {
		var content []byte
		if content, err = w.engine.state.Kept(s.After); err == nil {
			err = d.write(s.Path, content, fs.FileMode(s.Mode), w.Snapshot.ID)
		}
	}
	if err != nil {
		return err
	}
	back, err := d.lstat(s.Path)
	if err == nil && back.hash != s.After {
		err = NewError(Unexpected, "read_back", []string{"retry_command"}, "%s reads back other than it was written",
			s.Path).With("path", s.Path)
	}
	return err
}

// takeBack undoes what was done of a journal, because of an error, which it returns. If ctx ends, the next call goes
// on.
func (w *applier) takeBack(ctx context.Context, because error) error {
	if w.engine.died(because) {
		return because
	}
	w.Undo = true
	// there may be no room; a process that is killed now is finished instead
	_ = w.engine.state.WriteJSON("journal.json", w.journal)
	err := w.undo(ctx)
	if err == nil {
		return because
	}
	return NewError(Unexpected, "unfinished", []string{"fix_permissions", "retry_command"},
		"%s. What was done before that could not be taken back (%s); the next call tries it again", because,
		err).Because(because)
}

// undo takes back what was done of a journal, from wherever it was left.
func (w *applier) undo(ctx context.Context) error {
	back := make([]Step, 0, len(w.Snapshot.Steps))
	for _, s := range slices.Backward(w.Snapshot.Steps) {
		back = append(back, s.undone())
	}
	if _, err := w.applySteps(ctx, back); err != nil {
		return err
	}
	if err := w.writeManifests(w.Before); err != nil {
		return err
	}
	for _, s := range w.Snapshot.Steps {
		if s.Staged != "" {
			if err := w.disk.remove(s.Staged); err != nil {
				return err
			}
			w.placed(s)
		}
	}
	w.removeMade(w.Folders)
	w.cleanUp()
	if w.Initial != nil { // nothing followed it
		if err := w.engine.state.removeFile(snapshotFile(w.Initial.ID)); err != nil {
			return err
		}
	}
	return w.engine.state.endJournal()
}

// A deployment's folders are removed with it; other folders stay, even empty ones. So a snapshot lists the folders that
// deployments have made, and no other is ever removed.

// removeFolder removes a folder if it is one, and empty.
func (d disk) removeFolder(name string) error {
	if base, _, ok := d.baseOf(name); ok && d.moved(base) != nil {
		return d.moved(base)
	}
	root, rel, err := d.openBase(name)
	if err != nil || rel == "." { // a folder that holds the others, or one above it
		if info, err := os.Lstat(name); err != nil || !info.IsDir() {
			return err
		}
		return os.Remove(name)
	}
	defer func() { _ = root.Close() }()
	if info, err := root.Lstat(rel); err != nil || !info.IsDir() {
		return err
	}
	return root.Remove(rel)
}

// makeBases makes the folders that hold roots and are not there, such as a CODEX_HOME, and returns those that it made,
// the outer ones first. A journal says so before, in case that the process is killed.
func (e *Engine) makeBases(snap *Snapshot, roots []RootDir) (made []string, err error) {
	for _, base := range bases(roots) {
		var missing []string
		for dir := base; !Exists(dir) && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			missing = append(missing, dir)
		}
		for _, dir := range slices.Backward(missing) {
			if !slices.Contains(made, dir) {
				made = append(made, dir)
			}
		}
	}
	if len(made) == 0 {
		return nil, nil
	}
	intent := journal{Snapshot: Snapshot{ID: snap.ID, Kind: snap.Kind, Roots: roots}, Folders: made, Undo: true}
	if err := e.state.WriteJSON("journal.json", intent); err != nil {
		return nil, err
	}
	for _, dir := range made {
		if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) { //nolint:gosec // a folder of the user's, as other programs make it
			return nil, e.notBegun(intent, IOError(dir, err))
		}
	}
	if err := e.reached("bases"); err != nil {
		return nil, e.notBegun(intent, err)
	}
	return made, nil
}

// notBegun removes the folders that were made for what could not be begun, because of an error, which it returns.
func (e *Engine) notBegun(j journal, because error) error {
	if e.died(because) || len(j.Folders) == 0 {
		return because
	}
	w := &applier{engine: e, disk: newDisk(bases(j.Snapshot.Roots)...), journal: &j}
	w.removeMade(j.Folders)
	_ = e.state.endJournal()
	return because
}

// removeMade removes those of some folders that are empty. The outer ones come first.
func (w *applier) removeMade(folders []string) {
	for _, dir := range slices.Backward(folders) {
		_ = w.disk.removeFolder(dir) // one that somebody has put files into stays
	}
}

// leaveFolders removes the folders that deployments made and that something went from, if they are empty now, and notes
// which are left.
func (w *applier) leaveFolders() {
	left := map[string]bool{} // folders that something went from
	went := func(name string) {
		for dir := filepath.Dir(name); !left[dir] && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			left[dir] = true
		}
	}
	for _, s := range w.Snapshot.Steps {
		if s.After == "" {
			went(s.Path)
		}
	}
	for name, text := range w.Manifests {
		if text == "" {
			went(name)
		}
	}
	var emptied []string
	for _, dir := range w.Snapshot.Made {
		if left[dir] {
			emptied = append(emptied, dir)
		}
	}
	w.removeMade(emptied)
	w.disk.sync(emptied)
	w.Snapshot.Made = slices.DeleteFunc(w.Snapshot.Made, func(dir string) bool { return !Exists(dir) })
}

// madeFolder reports whether deployments have made a folder. Snapshots of older versions do not say; all that is empty
// counts then.
func (s *Snapshot) madeFolder(dir string) bool {
	return s.Made == nil && s.ID != "" || slices.Contains(s.Made, dir)
}

// noteMade adds the folders that are made to those that were, each before those in it.
func (w *applier) noteMade() {
	all := slices.Concat(w.Snapshot.Made, w.Folders)
	slices.Sort(all)
	w.Snapshot.Made = append([]string{}, slices.Compact(all)...) // not nil: it is known that there are none
}
