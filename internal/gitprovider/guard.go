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
		v := r.Snapshot.Tree.Mismatch(c)
		switch {
		case v == nil:
		case v.Code == fault.NoChange && c.Action == ActionUpdate:
			return fault.New(fault.NoChange, "%s; %s", v.Message, v.Suggestion)
		default: // the gates have approved this path, so it is the base that does not fit
			return fault.New(fault.Conflict, "%s; %s", v.Message, v.Suggestion)
		}
	}
	return nil
}
