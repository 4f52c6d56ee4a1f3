package deploy

import (
	"path/filepath"
	"slices"
	"strings"
)

// Op is what a change does to a file.
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
	UpdateKind string     `json:"update_kind,omitempty"` // managed_update, or adopt_update for a file that nobody deployed
	Reason     string     `json:"reason"`

	before found
	after  TreeFile
}

// Plan is what a deployment would change. It changes nothing.
type Plan struct {
	Targets  []TargetName
	Changes  []Change // by target, then path
	Warnings []string

	desired *Desired
	managed map[fileKey]manifestFile
	missing []RootDir // roots without a manifest
}

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

// adopted are the paths of files that nobody deployed and that the plan would replace, sorted.
func (p *Plan) adopted() []string {
	var out []string
	for _, c := range p.Changes {
		if c.UpdateKind == adoptUpdate {
			out = append(out, c.PathPosix)
		}
	}
	slices.Sort(out)
	return out
}

// makePlan compares what should be there with what is. A file that was deployed and should not be there any more is deleted; a file that
// nobody deployed never is.
func makePlan(d disk, desired *Desired, targets []TargetName) (*Plan, error) {
	p := &Plan{Targets: targets, desired: desired}
	var err error
	if p.managed, p.missing, p.Warnings, err = readManaged(d, desired.Roots); err != nil {
		return nil, err
	}
	for key, want := range desired.Files {
		if err := p.compare(d, key, want); err != nil {
			return nil, err
		}
	}
	for key := range p.managed {
		if _, wanted := desired.Files[key]; !wanted {
			if err := p.unwanted(d, key); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(p.Changes, func(a, b Change) int {
		if a.Target != b.Target {
			return strings.Compare(string(a.Target), string(b.Target))
		}
		return strings.Compare(a.Path, b.Path)
	})
	return p, nil
}

func (p *Plan) compare(d disk, key fileKey, want DesiredFile) error {
	at, err := d.look(key.path)
	if err != nil {
		return err
	}
	hash := hashOf(want.Content)
	if at.exists && at.what == "" && at.hash == hash && at.mode&0o100 != 0 == want.Executable {
		return nil
	}
	c := Change{
		Target: key.target, Op: Create, Path: key.path, PathPosix: filepath.ToSlash(key.path), After: &hash, Reason: "is not there", before: at,
		after: TreeFile{Content: want.Content, Executable: want.Executable},
	}
	if at.what == "a folder" && p.onlyManaged(key.path) {
		at.exists, at.what = false, "" // its files go before the new one comes
	}
	switch {
	case at.what != "":
		return newError(Unexpected, "path_in_the_way", []string{"remove_path", "retry_command"}, "%s is %s where a file has to be; move it away", key.path, at.what).
			with("path", key.path)
	case at.exists:
		c.Op, c.Before, c.UpdateKind, c.Reason = Update, &at.hash, managedUpdate, "has another content"
		if _, managed := p.managed[key]; !managed {
			c.UpdateKind, c.Reason = adoptUpdate, "is there, and was not deployed"
		}
		if at.hash == hash {
			c.Reason = "may be executed, or may not, unlike the module's"
		}
	}
	p.Changes = append(p.Changes, c)
	return nil
}

// onlyManaged reports whether files below a path were deployed, which all go.
func (p *Plan) onlyManaged(dir string) bool {
	for key := range p.managed {
		_, wanted := p.desired.Files[key]
		if strings.HasPrefix(key.path, dir+string(filepath.Separator)) && !wanted {
			return true
		}
	}
	return false
}

func (p *Plan) unwanted(d disk, key fileKey) error {
	at, err := d.look(key.path)
	if err != nil || !at.exists || at.what != "" {
		return err
	}
	p.Changes = append(p.Changes, Change{
		Target: key.target, Op: Delete, Path: key.path, PathPosix: filepath.ToSlash(key.path), Before: &at.hash, Reason: "was deployed, and no module has it any more",
		before: at,
	})
	return nil
}
