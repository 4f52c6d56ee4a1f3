package change

import (
	"cmp"
	"io/fs"
	"slices"
)

// begin returns a new snapshot that follows the last one.
func (e *Engine) begin(kind string, last *Snapshot) (snap Snapshot, err error) {
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
func (e *Engine) apply(p *Plan, last *Snapshot) (*Done, error) {
	snap, err := e.begin("deploy", last)
	if err != nil {
		return nil, err
	}
	d := p.desired
	snap.Owner, snap.Source, snap.Project, snap.Targets = d.Owner, d.Source, d.Project, d.Targets
	initial := e.initial(&snap, last)
	disk := newDisk(bases(slices.Concat(d.Roots, last.Roots))...)
	for _, c := range p.Changes {
		step, err := e.stepOf(disk, p, c)
		if err != nil {
			return nil, err
		}
		snap.Steps = append(snap.Steps, step)
		if c.After != nil {
			p.modes[FileKey{c.Target, c.Path}] = step.Mode
		}
	}
	for _, f := range last.Managed {
		if !d.answersFor(f) {
			snap.Managed = append(snap.Managed, f)
		}
	}
	for _, key := range d.keys() {
		f := d.Files[key]
		if err := e.state.keep(f.Content); err != nil {
			return nil, err
		}
		snap.Managed = append(snap.Managed, FileState{
			Owner: d.Owner, Source: d.Source, Project: d.Project, Target: key.Target, Root: f.root, Path: key.Path,
			SHA256: cmp.Or(p.kept[key], f.Content.SHA256()), Mode: p.modes[key], Modules: f.Modules, Original: p.original[key],
		})
	}
	snap.Roots = rootsInUse(&snap, slices.Concat(d.Roots, last.Roots), d.Roots)
	done, err := e.carryOut(snap, initial, d.Roots, p.roots(),
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

// stepOf returns a change with its contents in the state.
func (e *Engine) stepOf(d disk, p *Plan, c Change) (Step, error) {
	s := Step{
		Target: c.Target, Path: c.Path, Root: rootOf(p.roots(), c.Target, c.Path), Mode: modeOf(c.after.Executable),
		Adopted: c.UpdateKind == adoptUpdate,
	}
	if c.Before != nil {
		s.Before, s.BeforeMode = c.before.hash, uint32(c.before.mode)
		if c.After != nil {
			s.Mode = cmp.Or(c.mode, keptMode(c.before.mode, c.after.Executable))
		}
		if err := e.keepCurrent(d, c.Path, s.Before); err != nil {
			return s, err
		}
	}
	if c.After == nil {
		s.Mode = 0
		return s, nil
	}
	s.After = *c.After
	return s, e.state.keep(c.after.Content)
}

// keepCurrent keeps the content of a file, which has a hash.
func (e *Engine) keepCurrent(d disk, name, hash string) error {
	return e.state.keep(Content{hash: hash, read: func() ([]byte, error) {
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
