package deploy

import (
	"maps"
	"slices"
)

// rollback puts back the files of a snapshot. The lock is held.
func (e *Engine) rollback(to *Snapshot) (*Done, error) {
	last, err := e.state.Last()
	if err != nil {
		return nil, err
	}
	snap, err := e.begin("rollback", last)
	if err != nil {
		return nil, err
	}
	snap.Owner, snap.Source, snap.Project, snap.Targets, snap.RolledBackTo = to.Owner, to.Source, to.Project, to.Targets, to.ID
	affected := func(f FileState) bool { return f.Owner == to.Owner && to.inReach(f.Project, f.Path) }
	owners := map[string]Owner{}
	for _, f := range last.Managed {
		if !affected(f) {
			snap.Managed = append(snap.Managed, f)
			owners[f.Path] = f.Owner
		}
	}
	for _, f := range to.Managed {
		if affected(f) {
			snap.Managed = append(snap.Managed, f)
		}
	}
	wanted, err := e.wanted(to, affected)
	if err != nil {
		return nil, err
	}
	roots := slices.Concat(to.Roots, last.Roots)
	d := newDisk(bases(roots)...)
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		p := wanted[name]
		if owner, taken := owners[name]; taken && p.hash != "" && owner != to.Owner {
			return nil, ownedByAnother(FileKey{p.target, name}, owner, FileKey{})
		} else if taken {
			continue
		}
		step, differs, err := e.stepTo(d, name, p, wanted, last)
		if err != nil {
			return nil, err
		}
		if differs {
			snap.Steps = append(snap.Steps, step)
		}
	}
	snap.Roots = rootsInUse(&snap, roots, to.Roots)
	hadFiles := func(r RootDir) bool { return slices.ContainsFunc(to.Roots, sameRoot(r)) }
	done, err := e.carryOut(snap, snap.Roots, snap.Roots, hadFiles)
	if err == nil {
		e.log(event{Kind: "rollback", Owner: to.Owner, Project: to.Project, Snapshot: snap.ID})
	}
	return done, err
}

// past is a file at the moment of a snapshot.
type past struct {
	target TargetName
	root   string
	hash   string // "" for no file
	mode   uint32
}

// wanted are the files of a moment, by path: those that were deployed, and, of all that was changed since, what the first change found.
func (e *Engine) wanted(to *Snapshot, affected func(FileState) bool) (map[string]past, error) {
	out := map[string]past{}
	note := func(f FileState) {
		if _, known := out[f.Path]; !known && affected(f) {
			out[f.Path] = past{f.Target, f.Root, f.SHA256, f.Mode}
		}
	}
	for _, f := range to.Managed {
		note(f)
	}
	ids, err := e.state.IDs()
	if err != nil {
		return nil, err
	}
	for _, id := range ids[slices.Index(ids, to.ID)+1:] {
		later, err := e.state.Snapshot(id)
		if err != nil || later.Owner != to.Owner {
			continue // one that cannot be read stops nobody
		}
		for _, s := range later.Steps {
			note(FileState{Owner: later.Owner, Project: later.Project, Target: s.Target, Root: s.Root, Path: s.Path, SHA256: s.Before, Mode: s.BeforeMode})
		}
		for _, f := range later.Managed { // it was there with the same bytes, and became ours
			note(f)
		}
	}
	return out, nil
}

// stepTo is the change that makes a file what it was; differs is false if it is that already.
func (e *Engine) stepTo(d disk, name string, p past, wanted map[string]past, last *Snapshot) (s Step, differs bool, err error) {
	at, err := d.look(name)
	if err != nil {
		return s, false, err
	}
	if at.what == aFolder {
		if p.hash == "" {
			return s, false, nil
		}
		clear, err := d.onlyHas(name, func(inner string) bool { gone, known := wanted[inner]; return known && gone.hash == "" }, last.made)
		if err != nil {
			return s, false, err
		}
		if clear {
			at = found{}
		}
	}
	switch {
	case at.what != "" && p.hash == "":
		return s, false, nil // what somebody has put there instead is not ours to remove
	case at.what != "":
		return s, false, inTheWay(name, at.what)
	case at.hash == p.hash && (p.hash == "" || uint32(at.mode) == p.mode):
		return s, false, nil
	}
	if p.hash != "" {
		if _, err := e.state.kept(p.hash); err != nil {
			return s, false, err
		}
	}
	if at.exists {
		if err := e.keepCurrent(d, name, at.hash); err != nil {
			return s, false, err
		}
	}
	return Step{Target: p.target, Root: p.root, Path: name, Before: at.hash, BeforeMode: uint32(at.mode), After: p.hash, Mode: p.mode}, true, nil
}
