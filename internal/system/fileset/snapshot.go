package fileset

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/system/files"
)

// Snapshot records what was in place after a deployment or a rollback, and how that came about. The newest is the
// ledger of the owner of each file.
type Snapshot struct {
	SchemaVersion int    `json:"schema_version"`
	ID            string `json:"id"`
	// deploy, rollback, or initial: what was there before the first deployment from a project
	Kind         string       `json:"kind"`
	CreatedAt    time.Time    `json:"created_at"`
	Owner        Owner        `json:"owner"`
	Source       string       `json:"source"`
	Project      string       `json:"project"`
	Targets      []TargetName `json:"targets"`
	RolledBackTo string       `json:"rolled_back_to,omitempty"`
	Previous     string       `json:"previous,omitempty"` // id of the snapshot before
	Roots        []RootDir    `json:"roots"`
	Managed      []FileState  `json:"managed_files"` // of all owners and projects
	Steps        []Step       `json:"changes"`
	// that deployments of all owners made and that are there, each before those in it
	Made []string `json:"made_folders"`
}

// FileState is a file at one moment.
type FileState struct {
	Owner   Owner      `json:"owner"`
	Source  string     `json:"source"`
	Project string     `json:"project"` // that it was deployed from; the file may be one of the user's
	Target  TargetName `json:"target"`
	Root    string     `json:"root"`
	Path    string     `json:"path"`
	SHA256  string     `json:"sha256"`
	Mode    uint32     `json:"mode"`
	Modules []string   `json:"module_ids"`
	// Original is the file that was there before and was not deployed; it comes back when the deployed file is removed.
	// Snapshots of older versions have none.
	Original *Original `json:"original,omitempty"`
}

// Original is a person's file that a deployed one has taken the place of.
type Original struct {
	SHA256 string `json:"sha256"`
	Mode   uint32 `json:"mode"`
}

func (f FileState) fileKey() FileKey { return FileKey{f.Target, f.Path} }

// Step is one change of a file.
type Step struct {
	Target     TargetName `json:"target"`
	Root       string     `json:"root"`
	Path       string     `json:"path"`
	Before     string     `json:"before_sha256"` // "" for no file
	After      string     `json:"after_sha256"`  // "" for no file
	Mode       uint32     `json:"mode"`
	BeforeMode uint32     `json:"before_mode,omitempty"` // of the file that was there
	Adopted    bool       `json:"adopted,omitempty"`     // the file that was there was not deployed
	// Staged is the path at which the new file waits before it takes its place.
	Staged string `json:"staged,omitempty"`
}

// undone returns the step that takes a step back.
func (s Step) undone() Step {
	s.Before, s.After, s.Mode, s.BeforeMode = s.After, s.Before, s.BeforeMode, s.Mode
	return s
}

// validID reports whether a text can be a snapshot's id: some digits.
func validID(id string) bool {
	return id != "" && len(id) <= 30 && strings.Trim(id, "0123456789") == ""
}

// IDs lists the snapshots, oldest first.
func (s State) IDs() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, "snapshots"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, IOError(filepath.Join(s.dir, "snapshots"), err)
	}
	var out []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".json"); ok && validID(id) {
			out = append(out, id)
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return out, nil
}

// Snapshot reads a snapshot. E_SNAPSHOT_NOT_FOUND for an id that is none.
func (s State) Snapshot(id string) (*Snapshot, error) {
	if !validID(id) {
		return nil, noSnapshot(id)
	}
	var snap Snapshot
	if err := s.readSnapshot(id, &snap); err != nil {
		return nil, err
	}
	return &snap, nil
}

// readSnapshot decodes a snapshot, or of it what a value has fields for.
func (s State) readSnapshot(id string, into any) error {
	name := filepath.Join(s.dir, snapshotFile(id))
	text, _, err := files.ReadPath(name, maxStateBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return noSnapshot(id)
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return NewError(Unexpected, "state_damaged", []string{"restore_state"}, "the snapshot %s cannot be read: %s", id,
			pathlessError(err)).With("path", name).Because(err)
	}
	return nil
}

// originals finds the persons' files that an owner's files have taken the place of. It is for what versions have put in
// place that did not note it with the file. It reads the snapshots once, when it is first asked.
type originals struct {
	state State
	owner Owner
	known map[string]*Original // by path; nil for a file that took nobody's place
}

func (s State) originals(owner Owner) *originals { return &originals{state: s, owner: owner} }

// lookup returns the person's file that the owner's file at a path has taken the place of; nil if there was none.
func (o *originals) lookup(name string) *Original {
	if o.known == nil {
		o.known = map[string]*Original{}
		o.collectOrigins()
	}
	return o.known[name]
}

// collectOrigins goes through the snapshots, the newest first: the first one that tells where a file comes from counts.
func (o *originals) collectOrigins() {
	ids, err := o.state.IDs()
	if err != nil {
		return
	}
	for _, id := range slices.Backward(ids) {
		var snap struct { // without the managed files, which are the most of it
			Owner Owner  `json:"owner"`
			Kind  string `json:"kind"`
			Steps []Step `json:"changes"`
		}
		if o.state.readSnapshot(id, &snap) != nil || snap.Owner != o.owner {
			continue
		}
		for _, step := range snap.Steps {
			if _, known := o.known[step.Path]; known {
				continue
			}
			switch {
			case step.Adopted:
				o.known[step.Path] = &Original{SHA256: step.Before, Mode: step.BeforeMode}
			case step.Before == "" && snap.Kind == "deploy":
				o.known[step.Path] = nil
			}
		}
	}
}

func noSnapshot(id string) error {
	return NewError(SnapshotNotFound, "snapshot_not_found", []string{"list_snapshots", "retry_command"},
		"there is no snapshot %q", Short(id)).With("snapshot_id", Short(id))
}

// cachedSnapshot is Snapshot for one that is read often: callers must not change the result.
func (s State) cachedSnapshot(id string) (*Snapshot, error) {
	info, err := os.Stat(filepath.Join(s.dir, snapshotFile(id)))
	if err != nil {
		return s.Snapshot(id)
	}
	known, ok := identify(info)
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	if snap := s.seen.snapshot; ok && snap != nil && snap.ID == id && s.seen.id == known {
		return snap, nil
	}
	snap, err := s.Snapshot(id)
	if err == nil {
		s.seen.id, s.seen.snapshot = known, snap
	}
	return snap, err
}

// Last returns the newest snapshot; an empty one if there is none. One that cannot be read is passed over.
func (s State) Last() (*Snapshot, error) {
	ids, err := s.IDs()
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Backward(ids) {
		if snap, err := s.cachedSnapshot(id); err == nil {
			return snap, nil
		}
	}
	return &Snapshot{}, nil
}

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
	work := func() error { return p.removeSnapshots(max(keep, 1)) }
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

// removeSnapshots removes snapshots, the oldest first, and then contents. The lock is held.
func (p *pruning) removeSnapshots(keep int) error {
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
		if err := p.removeFile(snapshotFile(id)); err != nil {
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
		if err := p.removeFile(filepath.Join("objects", e.Name())); err != nil {
			return err
		}
		p.out.Objects++
	}
	return nil
}

func (p *pruning) removeFile(name string) error {
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
