package change

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// left reports whether there is still a journal.
func (e *Engine) left() bool {
	j, err := e.state.pending()
	return j != nil || err != nil
}

// leaveMoved removes from a journal the parts in folders that lead elsewhere by now, and names them: what was begun
// there is neither finished nor reverted.
func (w *applier) leaveMoved() (said string) {
	j := w.journal
	w.disk.real = maps.Clone(j.Real)
	var moved []string
	for _, base := range w.disk.bases {
		if w.disk.moved(base) != nil {
			moved = append(moved, base)
		}
	}
	if len(moved) == 0 {
		return ""
	}
	in := func(name string) bool {
		base, _, ok := w.disk.baseOf(name)
		return ok && slices.Contains(moved, base)
	}
	j.Snapshot.Steps = slices.DeleteFunc(j.Snapshot.Steps, func(s Step) bool { return in(s.Path) })
	j.Folders = slices.DeleteFunc(j.Folders, in)
	for _, texts := range []map[string]string{j.Manifests, j.Before} {
		maps.DeleteFunc(texts, func(name, _ string) bool { return in(name) })
	}
	return "; left as they are, since they lead elsewhere now: " + strings.Join(moved, ", ")
}

// recover finishes what a killed process began, or takes it back if it cannot be finished. said tells it; "" if there
// was nothing. The lock is held.
func (e *Engine) recover() (said string, err error) {
	j, err := e.state.pending()
	if err != nil || j == nil {
		return "", err
	}
	w := &applier{engine: e, disk: newDisk(bases(j.Snapshot.Roots)...), journal: j}
	left := w.leaveMoved()
	if left != "" {
		defer func() {
			if said != "" {
				said += left
			}
		}()
	}
	for _, step := range j.Snapshot.Steps { // the killed process may have been trying whether a folder can be written
		_ = w.disk.remove(filepath.Join(filepath.Dir(step.Path), temporary+j.Snapshot.ID))
	}
	what := fmt.Sprintf("a %s that was cut off (snapshot %s)", j.Snapshot.Kind, j.Snapshot.ID)
	if j.Undo {
		if err := w.undo(); err != nil {
			return "", NewError(Unexpected, "unfinished", []string{"fix_permissions", "retry_command"},
				"%s cannot be taken back: %s", what, err).Because(err)
		}
		return what + " was taken back", nil
	}
	changed, err := w.finish()
	if err != nil {
		if e.died(err) {
			return "", err
		}
		cause := err
		if err := w.takeBack(cause); e.left() {
			return "", err
		}
		return fmt.Sprintf("%s could not be finished (%s) and was taken back", what, cause), nil
	}
	if err := e.state.endJournal(); err != nil {
		return "", err
	}
	said = what + " was finished"
	if len(changed) > 0 {
		said += "; left as they are, since somebody changed them meanwhile: " + strings.Join(changed, ", ")
	}
	return said, nil
}
