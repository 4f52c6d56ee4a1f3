package fileset

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// newSnapshot returns a new snapshot that follows the last one.
func (e *Engine) newSnapshot(kind string, last *Snapshot) (snap Snapshot, err error) {
	ids, err := e.state.IDs()
	if err != nil {
		return snap, err
	}
	return Snapshot{
		SchemaVersion: 1, ID: e.state.newID(ids), Kind: kind, CreatedAt: e.state.now().UTC(), Previous: last.ID,
		Steps: []Step{}, Managed: []FileState{},
		Made: slices.Clone(last.Made),
	}, nil
}

// apply deploys a plan. The lock is held.
func (e *Engine) apply(ctx context.Context, p *Plan, last *Snapshot) (*Done, error) {
	snap, err := e.newSnapshot("deploy", last)
	if err != nil {
		return nil, err
	}
	d := p.desired
	snap.Owner, snap.Source, snap.Project, snap.Targets = d.Owner, d.Source, d.Project, d.Targets
	initial := e.initial(&snap, last)
	disk, kept := newDisk(bases(slices.Concat(d.Roots, last.Roots))...), e.keeper()
	if snap.Steps, err = kept.steps(ctx, disk, p); err != nil {
		return nil, err
	}
	for _, f := range last.Managed {
		if !d.answersFor(f) {
			snap.Managed = append(snap.Managed, f)
		}
	}
	for _, key := range d.keys() {
		if ctx.Err() != nil {
			return nil, cutOff(ctx.Err())
		}
		f := d.Files[key]
		if err := kept.keep(f.Content); err != nil {
			return nil, err
		}
		snap.Managed = append(snap.Managed, FileState{
			Owner: d.Owner, Source: d.Source, Project: d.Project, Target: key.Target, Root: f.root, Path: key.Path,
			SHA256: cmp.Or(p.kept[key], f.Content.SHA256()), Mode: p.modes[key], Modules: f.Modules, Original: p.original[key],
		})
	}
	snap.Roots = rootsInUse(&snap, slices.Concat(d.Roots, last.Roots), d.Roots)
	done, err := e.carryOut(ctx, kept, snap, initial, d.Roots, p.roots(),
		func(r RootDir) bool { return slices.ContainsFunc(d.Roots, sameRoot(r)) })
	if err == nil {
		e.log(event{Kind: "deploy", Owner: d.Owner, Project: d.Project, Snapshot: snap.ID})
	}
	return done, err
}

// initial returns the snapshot of what was there before the first deployment of an owner from a project, which follows
// it; nil if it is not the first. Going back to it gives back what the deployments since have replaced, and removes
// what they brought.
func (e *Engine) initial(snap, last *Snapshot) *Snapshot {
	if slices.ContainsFunc(last.Managed, func(f FileState) bool {
		return f.Owner == snap.Owner &&
			f.Project == snap.Project
	}) {
		return nil
	}
	first := *snap
	first.Kind, first.Roots, first.Managed, first.Made = "initial", slices.Clone(last.Roots), append([]FileState{},
		last.Managed...), slices.Clone(last.Made)
	snap.ID = e.state.newID([]string{first.ID})
	snap.Previous = first.ID
	return &first
}

// rootsInUse returns the roots that are current, or have files or changes in a snapshot.
func rootsInUse(snap *Snapshot, roots, current []RootDir) (out []RootDir) {
	used := map[FileKey]bool{}
	for _, f := range snap.Managed {
		used[FileKey{f.Target, f.Root}] = true
	}
	for _, s := range snap.Steps {
		used[FileKey{s.Target, s.Root}] = true
	}
	for _, r := range current {
		used[FileKey{r.Target, r.Dir}] = true
	}
	for _, r := range roots {
		key := FileKey{r.Target, r.Dir}
		if used[key] {
			out = append(out, r)
			used[key] = false
		}
	}
	return out
}

func modeOf(executable bool) uint32 {
	if executable {
		return 0o755
	}
	return 0o644
}

// steps returns the changes of a plan, with their contents in the state.
func (k *keeper) steps(ctx context.Context, d disk, p *Plan) ([]Step, error) {
	out, names := make([]Step, len(p.Changes)), make([]string, len(p.Changes))
	for i, c := range p.Changes {
		names[i] = c.Path
	}
	err := eachFile(d, names, func(d disk, i int) (err error) {
		if ctx.Err() != nil {
			return cutOff(ctx.Err())
		}
		out[i], err = k.stepOf(d, p, p.Changes[i])
		return err
	})
	for i, c := range p.Changes {
		if c.After != nil {
			p.modes[FileKey{c.Target, c.Path}] = out[i].Mode
		}
	}
	return out, err
}

// stepOf returns a change with its contents in the state.
func (k *keeper) stepOf(d disk, p *Plan, c Change) (Step, error) {
	s := Step{
		Target: c.Target, Path: c.Path, Root: rootOf(p.roots(), c.Target, c.Path), Mode: modeOf(c.after.Executable),
		Adopted: c.UpdateKind == adoptUpdate,
	}
	if c.Before != nil {
		s.Before, s.BeforeMode = c.before.hash, uint32(c.before.mode)
		if c.After != nil {
			s.Mode = cmp.Or(c.mode, keptMode(c.before.mode, c.after.Executable))
		}
		if err := k.keepCurrent(d, c.Path, s.Before); err != nil {
			return s, err
		}
	}
	if c.After == nil {
		s.Mode = 0
		return s, nil
	}
	s.After = *c.After
	return s, k.keep(c.after.Content)
}

// keepCurrent keeps the content of a file, which has a hash.
func (k *keeper) keepCurrent(d disk, name, hash string) error {
	return k.keep(Content{hash: hash, read: func() ([]byte, error) {
		at, err := d.read(name)
		if err == nil && at.hash != hash {
			err = NewError(Unexpected, "changed_meanwhile", []string{"retry_command"},
				"%s is being changed by somebody; try again", name).With("path", name)
		}
		return at.content, err
	}})
}

// keptMode returns the rights of a file that is replaced: those it had, and whether it may be executed as the module
// says.
func keptMode(before fs.FileMode, executable bool) uint32 {
	mode := uint32(before.Perm())&^0o111 | 0o400
	if executable {
		mode |= mode >> 2 & 0o111 // all who may read it may execute it
	}
	return mode
}

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
func (e *Engine) recover(ctx context.Context) (said string, err error) {
	j, err := e.state.pending()
	if err != nil || j == nil {
		return "", err
	}
	w := &applier{engine: e, disk: newDisk(bases(j.Snapshot.Roots)...), journal: j}
	left := w.leaveMoved()
	w.disk.opened = openBases{}
	defer w.disk.opened.close()
	if left != "" {
		defer func() {
			if said != "" {
				said += left
			}
		}()
	}
	probed := map[string]bool{}
	for _, step := range j.Snapshot.Steps { // the killed process may have been trying whether a folder can be written
		if dir := filepath.Dir(step.Path); !probed[dir] {
			probed[dir] = true
			_ = w.disk.remove(filepath.Join(dir, temporary+j.Snapshot.ID))
		}
	}
	what := fmt.Sprintf("a %s that was cut off (snapshot %s)", j.Snapshot.Kind, j.Snapshot.ID)
	if j.Undo {
		if err := w.undo(ctx); w.halted {
			return "", err
		} else if err != nil {
			return "", NewError(Unexpected, "unfinished", []string{"fix_permissions", "retry_command"},
				"%s cannot be taken back: %s", what, err).Because(err)
		}
		return what + " was taken back", nil
	}
	w.stageAgain(ctx)
	changed, err := w.finishJournal(ctx)
	if err != nil {
		if e.died(err) || w.halted {
			return "", err
		}
		cause := err
		if err := w.takeBack(ctx, cause); e.left() {
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
