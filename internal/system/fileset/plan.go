package fileset

import (
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Op is the kind of change to a file.
type Op string

// The operations.
const (
	Create Op = "create"
	Update Op = "update"
	Delete Op = "delete"
)

// Kinds of updates.
const (
	managedUpdate = "managed_update"
	adoptUpdate   = "adopt_update"
)

// Change is one difference between what should be there and what is.
type Change struct {
	Target     TargetName `json:"target"`
	Op         Op         `json:"op"`
	Path       string     `json:"path"`
	PathPosix  string     `json:"path_posix"`
	Before     *string    `json:"before_sha256"`
	After      *string    `json:"after_sha256"`
	UpdateKind string     `json:"update_kind,omitempty" doc:"managed_update, or adopt_update for a file that nobody deployed"`
	Reason     string     `json:"reason"`

	before found
	after  DesiredFile
	mode   uint32 // that it gets; 0 for what the module says
}

// Content returns the file's new content; the zero value for a file that is removed.
func (c Change) Content() Content { return c.after.Content }

// Adopts reports whether a change replaces a file that was not deployed.
func (c Change) Adopts() bool { return c.UpdateKind == adoptUpdate }

// Plan lists the changes of a deployment. It changes nothing itself.
type Plan struct {
	Targets  []TargetName
	Changes  []Change // by target, then path
	Warnings []string

	disk    disk
	desired *Desired
	held    *held
	places  map[string]bool                   // folders in which new files can be put
	modes   map[FileKey]uint32                // of files that stay as they are
	kept    map[FileKey]string                // the ledger's hashes of files that were changed since, and that stay
	content func(hash string) ([]byte, error) // of what was kept
	// original holds what was there before the wanted files.
	original map[FileKey]*Original
}

// Root returns the folder of the target that a change is in.
func (p *Plan) Root(c Change) string { return rootOf(p.roots(), c.Target, c.Path) }

// Read returns the content of a file of the plan's folders, as it is now.
func (p *Plan) Read(name string) ([]byte, error) {
	at, err := p.disk.read(name)
	return at.content, err
}

// roots returns all folders that the plan has to do with.
func (p *Plan) roots() []RootDir { return slices.Concat(p.desired.Roots, p.held.dropped) }

// Summary counts changes.
type Summary struct {
	Create int `json:"create"`
	Update int `json:"update"`
	Delete int `json:"delete"`
}

// Summary counts the plan's changes.
func (p *Plan) Summary() Summary {
	var s Summary
	for _, c := range p.Changes {
		switch c.Op {
		case Create:
			s.Create++
		case Update:
			s.Update++
		case Delete:
			s.Delete++
		}
	}
	return s
}

// Adopted returns the paths of files that were not deployed and that the plan would replace, sorted.
func (p *Plan) Adopted() []string {
	var out []string
	for _, c := range p.Changes {
		if c.UpdateKind == adoptUpdate {
			out = append(out, c.PathPosix)
		}
	}
	slices.Sort(out)
	return out
}

// Digest names what the plan would do: two plans have the same digest if they change the same files from the same to
// the same bytes.
func (p *Plan) Digest() string {
	var b strings.Builder
	for _, c := range p.Changes {
		fmt.Fprintf(&b, "%s\n%s\n%q\n%s\n%s\n", c.Target, c.Op, c.Path, c.before.hash, c.after.Content.hash)
	}
	return Hash([]byte(b.String()))
}

// makePlan compares the desired files with the present ones. A deployed file that is no longer desired is deleted; a
// file that was not deployed never is.
func makePlan(looks *looker, desired *Desired, last *Snapshot, state State) (*Plan, error) {
	defer looks.close()
	d := looks.disk
	h, err := readHeld(d, desired, last)
	if err != nil {
		return nil, err
	}
	p := &Plan{Targets: desired.Targets, Warnings: h.warnings, disk: d, desired: desired, held: h,
		places: map[string]bool{}, modes: map[FileKey]uint32{}, kept: map[FileKey]string{},
		content: state.Kept, original: map[FileKey]*Original{}}
	for _, key := range desired.keys() {
		if err := p.compareFile(looks, key, desired.Files[key]); err != nil {
			return nil, err
		}
	}
	originals := state.originals(desired.Owner)
	for _, key := range slices.SortedFunc(maps.Keys(h.managed), compareKeys) {
		if _, wanted := desired.Files[key]; !wanted && h.original[key] == nil {
			h.original[key] = originals.lookup(key.Path)
		}
		if err := p.unwanted(looks, key); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(p.Changes, func(a, b Change) int {
		return compareKeys(FileKey{a.Target, a.Path},
			FileKey{b.Target, b.Path})
	})
	return p, nil
}

func (p *Plan) compareFile(looks *looker, key FileKey, want DesiredFile) error {
	if other, taken := p.held.others[key.Path]; taken && p.held.owners[key.Path] != p.desired.Owner {
		return ownedByAnother(key, p.held.owners[key.Path], other)
	}
	at, err := looks.lstat(key.Path)
	if err != nil {
		return err
	}
	hash := want.Content.SHA256()
	_, managed := p.held.managed[key]
	p.original[key] = p.held.original[key]
	if !managed && at.exists && at.what == "" {
		p.original[key] = &Original{SHA256: at.hash, Mode: uint32(at.mode)}
	}
	if at.exists && at.what == "" && at.hash == hash &&
		(runtime.GOOS == "windows" || at.mode&0o100 != 0 == want.Executable) {
		p.modes[key] = uint32(at.mode)
		return nil
	}
	c := Change{
		Target: key.Target, Op: Create, Path: key.Path, PathPosix: filepath.ToSlash(key.Path), After: &hash,
		Reason: "is not there", before: at, after: want,
	}
	if at.what == aFolder {
		clear, err := looks.disk.onlyHas(key.Path, p.goes, p.held.made)
		if err != nil {
			return err
		}
		if clear {
			at = found{} // its files go before the new one comes
			c.before = at
		}
	}
	switch {
	case at.what != "":
		return inTheWay(key.Path, at.what)
	case !at.exists:
		if err := p.placeFor(looks.disk, key.Path); err != nil {
			return err
		}
	default:
		c.Op, c.Before, c.UpdateKind, c.Reason = Update, &at.hash, managedUpdate, "has another content"
		if !managed {
			c.UpdateKind, c.Reason = adoptUpdate, "is there, and was not deployed"
		}
		if at.hash == hash {
			c.Reason = "may be executed, or may not, unlike the module's"
		}
	}
	if at.hash != hash && p.changedSince(key, at) {
		p.modes[key], p.kept[key] = uint32(at.mode), p.held.managed[key]
		return nil
	}
	p.Changes = append(p.Changes, c)
	return nil
}

// placeFor returns the conflict of a new file for which no folder can be made. Each folder is looked at once.
func (p *Plan) placeFor(d disk, name string) error {
	dir := filepath.Dir(name)
	if p.places[dir] {
		return nil
	}
	if err := d.noFolder(name, p.goes); err != nil {
		return err
	}
	p.places[dir] = true
	return nil
}

// changedSince reports, and warns, that somebody has changed a file that then stays as it is.
func (p *Plan) changedSince(key FileKey, at found) bool {
	hash, managed := p.held.managed[key]
	if !managed || !p.desired.KeepChanged || !at.exists || at.hash == hash {
		return false
	}
	p.Warnings = append(p.Warnings, key.Path+" was changed since it was put in place; it was left as it is")
	return true
}

func inTheWay(name, what string) *Error {
	return NewError(Unexpected, "path_in_the_way", []string{"remove_path", "retry_command"},
		"%s is %s where a file has to be; move it away", name, what).With("path", name)
}

func ownedByAnother(key FileKey, by Owner, other FileKey) *Error {
	return NewError(DesiredStateConflict, "owned_by_another", []string{"resolve_desired_state_conflict", "retry_command"},
		"%s was put in place by %s, for %s; have it removed there, or give one of the two another name", key.Path, by,
		other.Target).
		With("target", key.Target).With("path", key.Path).With("owner", by)
}

// goes reports whether a file is deleted by this plan.
func (p *Plan) goes(name string) bool {
	for _, t := range p.Targets {
		key := FileKey{t, name}
		_, managed := p.held.managed[key]
		if _, wanted := p.desired.Files[key]; managed && !wanted {
			return true
		}
	}
	return false
}

func (p *Plan) unwanted(looks *looker, key FileKey) error {
	if p.desired.wants(key.Path) { // for another target
		return nil
	}
	if _, others := p.held.others[key.Path]; others {
		return nil
	}
	at, err := looks.lstat(key.Path)
	if err != nil || !at.exists || at.what != "" || p.changedSince(key, at) {
		return err
	}
	c := Change{
		Target: key.Target, Op: Delete, Path: key.Path, PathPosix: filepath.ToSlash(key.Path), Before: &at.hash,
		Reason: "was deployed, and no module has it any more",
		before: at,
	}
	if p.comesBack(&c, p.held.original[key]) {
		return nil
	}
	p.Changes = append(p.Changes, c)
	return nil
}

// comesBack has a file that goes become what stood there before, if that was a person's. done says that it is that
// already.
func (p *Plan) comesBack(c *Change, was *Original) (done bool) {
	if was == nil {
		return false
	}
	if was.SHA256 == c.before.hash && was.Mode == uint32(c.before.mode) {
		return true
	}
	_, err := p.content(was.SHA256)
	for dir := filepath.Dir(c.Path); err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if p.desired.wants(dir) {
			err = fmt.Errorf("%s becomes a file", dir)
		}
	}
	if err != nil {
		p.Warnings = append(p.Warnings,
			fmt.Sprintf("%s is deleted; what was there before it was deployed cannot come back: %s", c.Path, pathlessError(err)))
		return false
	}
	read := p.content
	c.Op, c.After, c.UpdateKind, c.Reason, c.mode = Update, &was.SHA256, managedUpdate, "no module has it any more: "+
		"what was there before comes back", was.Mode
	c.after = DesiredFile{Content: Content{hash: was.SHA256, read: func() ([]byte, error) { return read(was.SHA256) }},
		Executable: was.Mode&0o100 != 0}
	return false
}
