package deploy

import (
	"slices"
)

// rollback puts back the files of a snapshot, byte for byte: what was deployed then, and what stood where something was deployed since.
// What is on disk now is kept first. The lock is held.
func (e *Engine) rollback(to *Snapshot) (*Done, error) {
	snap, last, err := e.begin("rollback")
	if err != nil {
		return nil, err
	}
	snap.RolledBackTo, snap.Targets = to.ID, to.Targets
	snap.Roots, snap.Managed = slices.Clone(to.Roots), slices.Clone(to.Managed)
	if last != nil {
		for _, r := range last.Roots {
			if !slices.Contains(snap.Roots, r) {
				snap.Roots = append(snap.Roots, r)
			}
		}
	}
	wanted, err := e.wanted(to)
	if err != nil {
		return nil, err
	}
	for _, name := range sortedKeys(wanted) {
		step, differs, err := e.stepTo(name, wanted[name])
		if err != nil {
			return nil, err
		}
		if differs {
			snap.Steps = append(snap.Steps, step)
		}
	}
	return e.carryOut(snap)
}

// past is a file at the moment of a snapshot.
type past struct {
	target TargetName
	hash   string // "" for no file
	mode   uint32
}

// wanted are the files of a moment, by path: those that were deployed, and, of all that was changed since, what the first change found.
func (e *Engine) wanted(to *Snapshot) (map[string]past, error) {
	out := map[string]past{}
	for _, f := range to.Managed {
		out[f.Path] = past{f.Target, f.SHA256, f.Mode}
	}
	ids, err := e.state.IDs()
	if err != nil {
		return nil, err
	}
	after := ids[slices.Index(ids, to.ID)+1:]
	for _, id := range after {
		later, err := e.state.Snapshot(id)
		if err != nil {
			continue // one that cannot be read stops nobody
		}
		for _, s := range later.Steps {
			if _, known := out[s.Path]; !known {
				out[s.Path] = past{s.Target, s.Before, s.BeforeMode}
			}
		}
		for _, f := range later.Managed {
			if _, known := out[f.Path]; !known { // it was there with the same bytes, and became ours
				out[f.Path] = past{f.Target, f.SHA256, f.Mode}
			}
		}
	}
	return out, nil
}

// stepTo is the change that makes a file what it was; differs is false if it is that already.
func (e *Engine) stepTo(name string, p past) (s Step, differs bool, err error) {
	at, err := e.disk.look(name)
	if err != nil {
		return s, false, err
	}
	if at.what != "" && at.what != "a folder" {
		return s, false, newError(Unexpected, "path_in_the_way", []string{"remove_path", "retry_command"}, "%s is %s where a file has to be; move it away", name, at.what).with("path", name)
	}
	if at.what == "a folder" {
		at = found{}
		if p.hash == "" {
			return s, false, nil
		}
	}
	if at.hash == p.hash && (p.hash == "" || uint32(at.mode) == p.mode) {
		return s, false, nil
	}
	if p.hash != "" {
		if _, err := e.state.kept(p.hash); err != nil {
			return s, false, err
		}
	}
	if at.exists {
		if err := e.state.keep(at.content); err != nil {
			return s, false, err
		}
	}
	return Step{Target: p.target, Path: name, Before: at.hash, BeforeMode: uint32(at.mode), After: p.hash, Mode: p.mode}, true, nil
}
