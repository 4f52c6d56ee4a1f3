package change

import (
	"os"
	"path/filepath"
	"slices"
)

// A deployment's folders are removed with it; other folders stay, even empty ones. So a snapshot lists the folders that
// deployments have made, and no other is ever removed.

// removeFolder removes a folder if it is one, and empty.
func (d disk) removeFolder(name string) error {
	if base, _, ok := d.baseOf(name); ok && d.moved(base) != nil {
		return d.moved(base)
	}
	root, rel, err := d.within(name)
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

// made reports whether deployments have made a folder. Snapshots of older versions do not say; all that is empty counts
// then.
func (s *Snapshot) made(dir string) bool {
	return s.Made == nil && s.ID != "" || slices.Contains(s.Made, dir)
}

// makes notes a folder that is made.
func (w *applier) makes(dir string) {
	if !slices.Contains(w.Folders, dir) {
		w.Folders = append(w.Folders, dir)
	}
}

// noteMade adds the folders that are made to those that were, each before those in it.
func (w *applier) noteMade() {
	all := slices.Concat(w.Snapshot.Made, w.Folders)
	slices.Sort(all)
	w.Snapshot.Made = append([]string{}, slices.Compact(all)...) // not nil: it is known that there are none
}
