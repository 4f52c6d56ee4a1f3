package deploy

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// Engine changes the files of targets. Its promise: at every moment, whoever looks finds each file as it was before or as it should be
// after, and enough in the state to finish; nothing that a person had is lost. It keeps it by this order: contents, old and new, into
// the state; the journal; files one by one; manifests; the snapshot; the journal's end.
type Engine struct {
	state State
	disk  disk
	fault func(step string) error // tests end the process here; nil does nothing
}

func (e *Engine) reached(step string) error {
	if e.fault == nil {
		return nil
	}
	return e.fault(step)
}

// Done is what a deployment or a rollback came to.
type Done struct {
	*Snapshot
	Changed []string // files that somebody changed meanwhile; they were left as they are
}

// begin is a new snapshot that follows the last one.
func (e *Engine) begin(kind string) (snap Snapshot, last *Snapshot, err error) {
	ids, err := e.state.IDs()
	if err != nil {
		return snap, nil, err
	}
	if last, err = e.state.Last(); err != nil {
		return snap, nil, err
	}
	snap = Snapshot{
		SchemaVersion: 1, ID: e.state.newID(ids), Kind: kind, CreatedAt: e.state.now().UTC(), Steps: []Step{}, Managed: []FileState{}, Targets: []string{},
	}
	if last != nil {
		snap.Previous = last.ID
	}
	return snap, last, nil
}

// apply deploys a plan. The lock is held.
func (e *Engine) apply(p *Plan) (*Done, error) {
	snap, last, err := e.begin("deploy")
	if err != nil {
		return nil, err
	}
	snap.Roots = p.desired.Roots
	for _, t := range p.Targets {
		snap.Targets = append(snap.Targets, string(t))
	}
	if last != nil {
		snap.keepOthers(last, p.Targets)
	}
	for _, c := range p.Changes {
		step, err := e.stepOf(c)
		if err != nil {
			return nil, err
		}
		snap.Steps = append(snap.Steps, step)
	}
	for key, f := range p.desired.Files {
		if err := e.state.keep(f.Content); err != nil {
			return nil, err
		}
		snap.Managed = append(snap.Managed, FileState{
			Target: key.target, Path: key.path, SHA256: hashOf(f.Content), Mode: modeOf(f.Executable), Modules: f.Modules,
			Root: rootOf(p.desired.Roots, key.target, key.path),
		})
	}
	return e.carryOut(snap)
}

// keepOthers keeps what the snapshot before says of targets that this one is not about.
func (s *Snapshot) keepOthers(last *Snapshot, targets []TargetName) {
	for _, f := range last.Managed {
		if !slices.Contains(targets, f.Target) {
			s.Managed = append(s.Managed, f)
		}
	}
	for _, r := range last.Roots {
		if !slices.Contains(targets, r.Target) {
			s.Roots = append(s.Roots, r)
		}
	}
}

func modeOf(executable bool) uint32 {
	if executable {
		return 0o755
	}
	return 0o644
}

// stepOf is a change with its contents in the state.
func (e *Engine) stepOf(c Change) (Step, error) {
	s := Step{Target: c.Target, Path: c.Path, Mode: modeOf(c.after.Executable), Adopted: c.UpdateKind == adoptUpdate}
	if c.Before != nil {
		s.Before, s.BeforeMode = c.before.hash, uint32(c.before.mode)
		if c.After != nil {
			s.Mode = keptMode(c.before.mode, c.after.Executable)
		}
		if err := e.state.keep(c.before.content); err != nil {
			return s, err
		}
	}
	if c.After != nil {
		s.After = *c.After
		if err := e.state.keep(c.after.Content); err != nil {
			return s, err
		}
	}
	return s, nil
}

// keptMode are the rights of a file that is replaced: those it had, and whether it may be executed as the module says.
func keptMode(before fs.FileMode, executable bool) uint32 {
	mode := uint32(before.Perm())&^0o111 | 0o600
	if executable {
		mode |= mode >> 2 & 0o111 // whoever may read it may execute it
	}
	return mode
}

// carryOut does what a snapshot says, and finishes with it in the state.
func (e *Engine) carryOut(snap Snapshot) (*Done, error) {
	slices.SortFunc(snap.Managed, func(a, b FileState) int {
		return strings.Compare(string(a.Target)+"\x00"+a.Path, string(b.Target)+"\x00"+b.Path)
	})
	texts, err := manifests(snap, e.hasManifest, e.state.now())
	if err != nil {
		return nil, newError(Unexpected, "", nil, "the manifests cannot be written").because(err)
	}
	if err := e.reached("kept"); err != nil {
		return nil, err
	}
	if err := e.state.writeJSON("journal.json", journal{snap, texts}); err != nil {
		return nil, err
	}
	if err := e.reached("journal"); err != nil {
		return nil, err
	}
	changed, err := e.finish(journal{snap, texts})
	if err != nil {
		return nil, err
	}
	return &Done{&snap, changed}, nil
}

func (e *Engine) hasManifest(r RootDir) bool {
	at, err := e.disk.look(manifestPath(r.Dir, r.Target))
	return err == nil && at.exists
}

// finish does the rest of a journal, from wherever it was left. changed are files that somebody changed meanwhile: they are left
// as they are, as drift.
func (e *Engine) finish(j journal) (changed []string, err error) {
	for _, removing := range []bool{true, false} { // a file may have to go before another of its name's folder can come
		for i, s := range j.Snapshot.Steps {
			if (s.After == "") != removing {
				continue
			}
			if err := e.reached(fmt.Sprintf("step %d", i)); err != nil {
				return changed, err
			}
			ours, err := e.do(s, j.Snapshot.ID)
			if err != nil {
				return changed, err
			}
			if !ours {
				changed = append(changed, s.Path)
			}
		}
	}
	for _, name := range sortedKeys(j.Manifests) {
		if err := e.reached("manifest " + filepath.Base(name)); err != nil {
			return changed, err
		}
		if err := e.disk.write(name, []byte(j.Manifests[name]), 0o644, j.Snapshot.ID); err != nil {
			return changed, err
		}
	}
	if err := e.reached("snapshot"); err != nil {
		return changed, err
	}
	if err := e.state.writeJSON(filepath.Join("snapshots", j.Snapshot.ID+".json"), j.Snapshot); err != nil {
		return changed, err
	}
	if err := e.reached("end"); err != nil {
		return changed, err
	}
	return changed, e.state.endJournal()
}

// do makes one step, unless it was made. ours is false for a file that is neither as before nor as after.
func (e *Engine) do(s Step, id string) (ours bool, err error) {
	at, err := e.disk.look(s.Path)
	if err != nil {
		return false, err
	}
	switch {
	case at.hash == s.After && at.exists == (s.After != "") && at.what == "" && (s.After == "" || uint32(at.mode) == s.Mode):
		return true, nil
	case at.what == "a folder" && s.After != "":
		if err := e.disk.removeEmpty(s.Path); err != nil {
			return false, nil //nolint:nilerr // somebody has put files into it
		}
	case at.what != "" || at.exists && at.hash != s.Before && at.hash != s.After || !at.exists && s.Before != "" && s.After != "":
		return false, nil
	}
	if s.After == "" {
		return true, e.disk.remove(s.Path)
	}
	content, err := e.state.kept(s.After)
	if err != nil {
		return false, err
	}
	if err := e.disk.write(s.Path, content, fs.FileMode(s.Mode), id); err != nil {
		return false, err
	}
	back, err := e.disk.look(s.Path)
	if err == nil && back.hash != s.After {
		err = newError(Unexpected, "read_back", []string{"retry_command"}, "%s reads back other than it was written", s.Path).with("path", s.Path)
	}
	return true, err
}

// Recover finishes what a killed process began. said tells it; "" if there was nothing. The lock is held.
func (e *Engine) Recover() (said string, err error) {
	j, err := e.state.pending()
	if err != nil || j == nil {
		return "", err
	}
	changed, err := e.finish(*j)
	if err != nil {
		return "", err
	}
	said = fmt.Sprintf("a %s that was cut off (snapshot %s) was finished", j.Snapshot.Kind, j.Snapshot.ID)
	if len(changed) > 0 {
		said += "; left as they are, since somebody changed them meanwhile: " + strings.Join(changed, ", ")
	}
	return said, nil
}
