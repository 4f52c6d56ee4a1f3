package change

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Pruned counts what was removed, or what would be.
type Pruned struct {
	DryRun    bool  `json:"dry_run"`
	Kept      int   `json:"snapshots_kept"`
	Snapshots int   `json:"snapshots_removed"`
	Objects   int   `json:"contents_removed"`
	Commits   int   `json:"commits_removed"` // of the caller's cache
	Bytes     int64 `json:"bytes"`           // of snapshots and contents
}

// Prune removes all snapshots except the newest keep, at least one, and the contents that no snapshot needs any more.
// With dryRun it only counts.
func (e *Engine) Prune(ctx context.Context, keep int, dryRun bool) (out Pruned, err error) {
	p := pruning{state: e.state, out: Pruned{DryRun: dryRun}}
	work := func() error { return p.run(max(keep, 1)) }
	if dryRun {
		_, err = e.Look(ctx, work)
	} else {
		_, err = e.changing(ctx, work)
	}
	return p.out, err
}

type pruning struct {
	state State
	out   Pruned
}

// run removes snapshots, the oldest first, and then contents. The lock is held.
func (p *pruning) run(keep int) error {
	ids, err := p.state.IDs()
	if err != nil {
		return err
	}
	needed, old, precedes := map[string]bool{}, []string{}, map[string]bool{}
	for _, id := range ids {
		snap, err := p.state.Snapshot(id)
		if err != nil {
			return err // what it needs is not known, so that nothing can be removed
		}
		if adopted := slices.ContainsFunc(snap.Steps, func(s Step) bool { return s.Adopted }); adopted {
			precedes[id], precedes[snap.Previous] = true, true // what was replaced comes back by going to the one before
		}
	}
	for i, id := range ids {
		snap, err := p.state.Snapshot(id)
		if err != nil {
			return err
		}
		if i < len(ids)-keep && !precedes[id] {
			old = append(old, id)
			continue
		}
		snap.needs(needed)
	}
	p.out.Kept = len(ids) - len(old)
	for _, id := range old {
		if err := p.remove(snapshotFile(id)); err != nil {
			return err
		}
		p.out.Snapshots++
	}
	return p.objects(needed)
}

// needs adds the contents that a rollback to a snapshot, or past it, may put back.
func (s *Snapshot) needs(hashes map[string]bool) {
	for _, f := range s.Managed {
		hashes[f.SHA256] = true
		if f.Original != nil {
			hashes[f.Original.SHA256] = true
		}
	}
	for _, step := range s.Steps {
		hashes[step.Before], hashes[step.After] = true, true
	}
}

func (p *pruning) objects(needed map[string]bool) error {
	entries, err := os.ReadDir(filepath.Join(p.state.dir, "objects"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return IOError(filepath.Join(p.state.dir, "objects"), err)
	}
	for _, e := range entries {
		if needed[e.Name()] || !e.Type().IsRegular() {
			continue
		}
		if err := p.remove(filepath.Join("objects", e.Name())); err != nil {
			return err
		}
		p.out.Objects++
	}
	return nil
}

func (p *pruning) remove(name string) error {
	name = filepath.Join(p.state.dir, name)
	info, err := os.Lstat(name)
	if err == nil && !p.out.DryRun {
		err = os.Remove(name)
	}
	if err != nil {
		return IOError(name, err)
	}
	p.out.Bytes += info.Size()
	return nil
}
