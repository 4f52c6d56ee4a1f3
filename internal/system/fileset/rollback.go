package fileset

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
)

// Scope says whose files a rollback is about: those of one project, and the user's. All paths are absolute.
type Scope struct {
	Project string
	User    []string // the user's home, and Codex's
}

// covers reports whether a file is in reach. base is the folder that holds its target's folder, "" if that is not
// known; project is the one that it was deployed from.
func (r Scope) covers(base, project, name string) bool {
	switch {
	case base == "":
		return Below(r.Project, name) || !Below(project, name)
	case base == r.Project || slices.Contains(r.User, base):
		return true
	}
	return !Below(project, base) // such as a folder of Codex that the user's configuration names
}

// restoring is a rollback that is planned.
type restoring struct {
	*Plan
	engine *Engine
	snap   Snapshot
	to     *Snapshot
	last   *Snapshot
	reach  Scope
	all    []RootDir // that any of the snapshots knows
	wanted map[string]past
}

// planRollback says what putting back the files of a snapshot changes. It changes nothing.
func (e *Engine) planRollback(ctx context.Context, to *Snapshot, reach Scope) (*restoring, error) {
	last, err := e.state.Last()
	if err != nil {
		return nil, err
	}
	r := &restoring{engine: e, to: to, last: last, reach: reach, all: slices.Concat(to.Roots, last.Roots),
		wanted: map[string]past{}}
	if r.snap, err = e.newSnapshot("rollback", last); err != nil {
		return nil, err
	}
	r.snap.Owner, r.snap.Source, r.snap.Targets, r.snap.RolledBackTo = to.Owner, to.Source, to.Targets, to.ID
	r.snap.Project = reach.Project
	if err := r.collectFiles(); err != nil {
		return nil, err
	}
	owners := map[string]Owner{}
	for _, f := range last.Managed {
		if !r.affected(f) {
			r.snap.Managed = append(r.snap.Managed, f)
			owners[f.Path] = f.Owner
		}
	}
	for _, f := range to.Managed {
		if r.affected(f) {
			r.snap.Managed = append(r.snap.Managed, f)
		}
	}
	near := r.near()
	r.Plan = &Plan{Targets: to.Targets, disk: newDisk(bases(near)...), desired: &Desired{Roots: near}, held: &held{},
		places: map[string]bool{}}
	r.disk.real = realPaths(bases(near))
	if to.Project != reach.Project {
		r.Warnings = append(r.Warnings, "the snapshot is of the project "+to.Project+
			", whose own files stay as they are: roll back there to change them")
	}
	r.disk.opened = openBases{}
	defer func() {
		r.disk.opened.close()
		r.disk.opened = nil
	}()
	for _, name := range slices.Sorted(maps.Keys(r.wanted)) {
		if ctx.Err() != nil {
			return nil, cutOff(ctx.Err())
		}
		p := r.wanted[name]
		if owner, taken := owners[name]; taken && p.hash != "" && owner != to.Owner {
			return nil, ownedByAnother(FileKey{p.target, name}, owner, FileKey{})
		} else if taken {
			continue
		}
		if err := r.restoreFile(name, p); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(r.Changes, func(a, b Change) int {
		return compareKeys(FileKey{a.Target, a.Path},
			FileKey{b.Target, b.Path})
	})
	r.snap.Roots = rootsInUse(&r.snap, r.all,
		slices.DeleteFunc(slices.Clone(near), func(d RootDir) bool { return !r.had(d) }))
	return r, nil
}

// carryOut puts the files back. The lock is held.
func (r *restoring) carryOut(ctx context.Context) (*Done, error) {
	e, kept := r.engine, r.engine.keeper()
	err := eachFile(r.disk, stepPaths(r.snap.Steps), func(d disk, i int) error {
		s := r.snap.Steps[i]
		switch {
		case ctx.Err() != nil:
			return cutOff(ctx.Err())
		case s.Before == "":
			return nil
		}
		return kept.keepCurrent(d, s.Path, s.Before)
	})
	if err != nil {
		return nil, err
	}
	near := r.desired.Roots
	roots := slices.DeleteFunc(slices.Clone(r.snap.Roots),
		func(d RootDir) bool { return !slices.ContainsFunc(near, sameRoot(d)) })
	needed := slices.DeleteFunc(slices.Clone(roots), func(d RootDir) bool {
		return !slices.ContainsFunc(r.snap.Steps,
			func(s Step) bool { return s.After != "" && s.Target == d.Target && s.Root == d.Dir })
	})
	done, err := e.carryOut(ctx, kept, r.snap, nil, needed, roots, r.had)
	if err == nil {
		e.log(event{Kind: "rollback", Owner: r.to.Owner, Project: r.snap.Project, Snapshot: r.snap.ID})
	}
	return done, err
}

// had reports whether the snapshot that is gone back to has files in a folder of a target.
func (r *restoring) had(d RootDir) bool { return slices.ContainsFunc(r.to.Roots, sameRoot(d)) }

// affected reports whether a rollback is about a file.
func (r *restoring) affected(f FileState) bool {
	base := ""
	if i := slices.IndexFunc(r.all, sameRoot(RootDir{Target: f.Target, Dir: f.Root})); i >= 0 {
		base = r.all[i].Base
	}
	return f.Owner == r.to.Owner && r.reach.covers(base, f.Project, f.Path)
}

// near returns the folders of targets that the rollback may write to.
func (r *restoring) near() (out []RootDir) {
	used := map[FileKey]bool{}
	for _, p := range r.wanted {
		used[FileKey{p.target, p.root}] = true
	}
	for _, f := range slices.Concat(r.last.Managed, r.to.Managed) {
		if r.affected(f) {
			used[FileKey{f.Target, f.Root}] = true
		}
	}
	for _, d := range r.all {
		key := FileKey{d.Target, d.Dir}
		own := d.Base == r.reach.Project || slices.Contains(r.reach.User, d.Base)
		if (own || used[key]) && !slices.ContainsFunc(out, sameRoot(d)) {
			out = append(out, d)
		}
	}
	return out
}

// past is a file at the moment of a snapshot.
type past struct {
	target TargetName
	root   string
	hash   string // "" for no file
	mode   uint32
}

// collectFiles finds the files of the moment, by path: those that were deployed and, of all that were changed since,
// the version that the first change found. For files deployed by snapshots that are gone, the ledger of the next
// snapshot has the former contents.
func (r *restoring) collectFiles() error {
	for _, f := range r.to.Managed {
		r.recordWanted(f)
	}
	ids, err := r.engine.state.IDs()
	if err != nil {
		return err
	}
	gap := false
	for _, id := range ids[slices.Index(ids, r.to.ID)+1:] {
		later, err := r.engine.state.Snapshot(id)
		if err != nil { // one that cannot be read is skipped
			gap = true
			continue
		}
		gap = gap || later.Previous != "" && !slices.Contains(ids, later.Previous)
		if later.Owner != r.to.Owner {
			continue
		}
		r.all = append(r.all, later.Roots...)
		if gap {
			r.ledgerOf(later)
			gap = false
		}
		for _, s := range later.Steps {
			r.recordWanted(FileState{Owner: later.Owner, Project: later.Project, Target: s.Target, Root: s.Root, Path: s.Path,
				SHA256: s.Before, Mode: s.BeforeMode})
		}
		for _, f := range later.Managed { // it was there with the same bytes, and became ours
			r.recordWanted(f)
		}
	}
	if gap {
		r.ledgerOf(r.last)
	}
	return nil
}

// recordWanted records the state of a file at the moment, unless it is known already.
func (r *restoring) recordWanted(f FileState) {
	if _, known := r.wanted[f.Path]; !known && r.affected(f) {
		r.wanted[f.Path] = past{f.Target, f.Root, f.SHA256, f.Mode}
	}
}

// ledgerOf notes what stood at the moment where deployments before a snapshot have put files that the one which is gone
// back to did not have: the snapshot has them still, or has changed or removed them.
func (r *restoring) ledgerOf(later *Snapshot) {
	stays, originals := map[FileKey]bool{}, r.engine.state.originals(r.to.Owner)
	for _, f := range later.Managed {
		stays[f.fileKey()] = true
		if f.Owner != r.to.Owner {
			continue
		}
		was := f.Original
		if was == nil {
			if was = originals.lookup(f.Path); was == nil {
				was = &Original{}
			}
		}
		f.SHA256, f.Mode = was.SHA256, was.Mode
		r.recordWanted(f)
	}
	for _, s := range later.Steps {
		if later.Owner != r.to.Owner || s.Before == "" || s.Adopted || stays[FileKey{s.Target, s.Path}] {
			continue
		}
		r.recordWanted(FileState{Owner: later.Owner, Project: later.Project, Target: s.Target, Root: s.Root, Path: s.Path,
			SHA256: s.After, Mode: s.Mode})
	}
}

// restoreFile adds the change that makes a file what it was, if it is not that already.
func (r *restoring) restoreFile(name string, p past) error {
	at, err := r.disk.lstat(name)
	if err != nil {
		return err
	}
	if at.what == aFolder {
		if p.hash == "" {
			return nil
		}
		clear, err := r.disk.onlyHas(name, func(inner string) bool {
			gone, known := r.wanted[inner]
			return known &&
				gone.hash == ""
		}, r.last.madeFolder)
		if err != nil {
			return err
		}
		if clear {
			at = found{}
		}
	}
	switch {
	case at.what != "" && p.hash == "":
		return nil // what somebody has put there instead is not ours to remove
	case at.what != "":
		return inTheWay(name, at.what)
	case at.hash == p.hash && (p.hash == "" || uint32(at.mode) == p.mode):
		return nil
	}
	if dir := filepath.Dir(name); p.hash != "" && !at.exists && !r.places[dir] {
		goes := func(name string) bool { gone, known := r.wanted[name]; return known && gone.hash == "" }
		if err := r.disk.noFolder(name, goes); err != nil {
			return err
		}
		r.places[dir] = true
	}
	if p.hash != "" {
		if _, err := r.engine.state.Kept(p.hash); err != nil {
			return err
		}
	}
	s := Step{Target: p.target, Root: p.root, Path: name, Before: at.hash, BeforeMode: uint32(at.mode), After: p.hash,
		Mode: p.mode}
	r.snap.Steps = append(r.snap.Steps, s)
	r.Changes = append(r.Changes, r.changeOf(s, at))
	return nil
}

// changeOf returns a step as plans show it.
func (r *restoring) changeOf(s Step, at found) Change {
	c := Change{
		Target: s.Target, Op: Update, Path: s.Path, PathPosix: filepath.ToSlash(s.Path), Before: &s.Before, After: &s.After,
		UpdateKind: managedUpdate,
		Reason:     "was other then", before: at,
	}
	switch {
	case s.Before == "":
		c.Op, c.Before, c.UpdateKind, c.Reason = Create, nil, "", "was there then"
	case s.After == "":
		c.Op, c.After, c.UpdateKind, c.Reason = Delete, nil, "", "was not there then"
		return c
	case s.Before == s.After:
		c.Reason = "had other rights then"
	}
	c.after = DesiredFile{Content: Content{hash: s.After,
		read: func() ([]byte, error) { return r.engine.state.Kept(s.After) }}, root: s.Root}
	return c
}
