package gitprovider

import (
	"strings"

	"github.com/claudeops/claudeops/internal/fault"
)

// CheckOurs refuses, with invalid_argument, every branch that Claude Ops may not write: one outside BranchPrefix, or that
// no branch can be named.
func CheckOurs(branch string) error {
	if !strings.HasPrefix(branch, BranchPrefix) || CheckBranchName(branch) != nil {
		return fault.New(fault.InvalidArgument, "the branch %.200q is not one of ours; those begin with %s", branch, BranchPrefix)
	}
	return nil
}

// Check holds a request against its own snapshot before anything is written, with the codes that Provider.Commit
// promises. Hosts do not: they overwrite files that exist, follow no rule about links, and make commits that change
// nothing.
func (r CommitRequest) Check() error {
	switch {
	case r.Snapshot == nil || r.Snapshot.BaseCommit == "" || r.Snapshot.Base == "":
		return fault.New(fault.InvalidArgument, "a commit needs the snapshot that the gates approved")
	case r.Changes.Len() == 0:
		return fault.New(fault.InvalidArgument, "the change set is empty; a commit needs at least one approved file")
	}
	if err := CheckOurs(r.Branch); err != nil {
		return err
	}
	for _, c := range r.Changes.changes {
		if err := r.Snapshot.Tree.check(c); err != nil {
			return err
		}
	}
	return nil
}

// check says why a change does not fit the tree, or nil.
func (t Tree) check(c Change) error {
	for _, dir := range c.Path.Ancestors() {
		if above, exists := t[dir]; exists && above.Kind != KindDir {
			return fault.New(fault.Conflict, "%s, above %s, is a %s on the base branch; propose a change in a plain folder",
				dir, c.Path, above.Kind)
		}
	}
	entry, exists := t[c.Path.String()]
	switch {
	case exists && entry.Kind != KindFile:
		return fault.New(fault.Conflict, "%s is a %s on the base branch; propose a change to a plain file", c.Path, entry.Kind)
	case exists && c.Action == ActionCreate:
		return fault.New(fault.Conflict, "the file %s exists on the base branch already; propose an update instead", c.Path)
	case !exists && c.Action != ActionCreate:
		return fault.New(fault.Conflict, "there is no file %s on the base branch; check the path, or create it", c.Path)
	case exists && c.Action == ActionUpdate && BlobID([]byte(c.Content), entry.ID) == entry.ID:
		return fault.New(fault.NoChange, "the file %s has this content on the base branch already; leave it out", c.Path)
	}
	return nil
}
