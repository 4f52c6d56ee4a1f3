package deploy

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// KeepSnapshots is how many snapshots Prune keeps where nobody says it.
const KeepSnapshots = 100

// keepCommits is how long the files of a commit of another repository are kept after they were used last. They can be fetched again.
const keepCommits = 30 * 24 * time.Hour

// Pruned is what was removed, or would have been.
type Pruned struct {
	DryRun    bool  `json:"dry_run"`
	Kept      int   `json:"snapshots_kept"`
	Snapshots int   `json:"snapshots_removed"`
	Objects   int   `json:"contents_removed"`
	Commits   int   `json:"commits_removed"` // of the cache
	Bytes     int64 `json:"bytes"`           // of snapshots and contents
}

// Prune removes the oldest snapshots but so many, at least one, and the contents that no snapshot needs any more: every snapshot that is
// left can be rolled back to, byte for byte. A snapshot of a deployment that replaced a person's file stays, with the file, however old it
// is. With dryRun it only counts. One that is killed is finished by the next.
func (s *Service) Prune(ctx context.Context, keep int, dryRun bool) (out Pruned, err error) {
	if err := s.ready(); err != nil {
		return out, faultOf(err)
	}
	if why := s.engine.noWriting; why != "" && !dryRun {
		return out, faultOf(newError(NotAllowed, "read_only", []string{"ask_operator"}, "nothing is removed: %s", why))
	}
	p := pruning{state: s.engine.state, out: Pruned{DryRun: dryRun}}
	work := func() error { return p.run(max(keep, 1)) }
	if dryRun {
		_, err = s.engine.looking(ctx, work)
	} else {
		_, err = s.engine.changing(ctx, work)
	}
	if err == nil {
		err = p.commits(s.setup.Git.cache)
	}
	return p.out, faulted(err)
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
	needed, old := map[string]bool{}, []string{}
	for i, id := range ids {
		snap, err := p.state.Snapshot(id)
		if err != nil {
			return err // what it needs is not known, so that nothing can be removed
		}
		adopted := slices.ContainsFunc(snap.Steps, func(s Step) bool { return s.Adopted })
		if i < len(ids)-keep && !adopted {
			old = append(old, id)
			continue
		}
		snap.needs(needed)
	}
	p.out.Kept = len(ids) - len(old)
	for _, id := range old {
		if err := p.remove(filepath.Join("snapshots", id+".json")); err != nil {
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
	}
	for _, step := range s.Steps {
		hashes[step.Before], hashes[step.After] = true, true
	}
}

func (p *pruning) objects(needed map[string]bool) error {
	entries, err := os.ReadDir(filepath.Join(p.state.dir, "objects"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return ioError(filepath.Join(p.state.dir, "objects"), err)
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
		return ioError(name, err)
	}
	p.out.Bytes += info.Size()
	return nil
}

// commits removes commits of other repositories that nobody has used for a while, and what killed processes left beside them.
func (p *pruning) commits(cache string) error {
	old, err := filepath.Glob(filepath.Join(cache, "*", "*"))
	if err != nil {
		return err
	}
	left, err := filepath.Glob(filepath.Join(cache, ".checkout-*"))
	if err != nil {
		return err
	}
	for _, name := range slices.Concat(old, left) {
		info, err := os.Lstat(name)
		if err != nil || p.state.now().Sub(info.ModTime()) < keepCommits || strings.HasPrefix(filepath.Base(filepath.Dir(name)), ".") && filepath.Dir(name) != cache {
			continue
		}
		if !p.out.DryRun {
			if err := os.RemoveAll(name); err != nil {
				return ioError(name, err)
			}
		}
		p.out.Commits++
	}
	return nil
}
