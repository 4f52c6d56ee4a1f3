package github

import (
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// checkCommit holds a request against its own snapshot before anything is written. createCommitOnBranch would write over
// a file that exists, follow no rule about links, and make a commit that changes nothing.
func checkCommit(req gitprovider.CommitRequest) error {
	switch {
	case req.Snapshot == nil || req.Snapshot.BaseCommit == "" || req.Snapshot.Base == "":
		return fault.New(fault.InvalidArgument, "a commit needs the snapshot that the gates approved")
	case req.Changes.Len() == 0:
		return fault.New(fault.InvalidArgument, "the change set is empty; a commit needs at least one approved file")
	}
	if err := checkOurs(req.Branch); err != nil {
		return err
	}
	for _, c := range req.Changes.Changes() {
		if err := checkFile(req.Snapshot, c); err != nil {
			return err
		}
	}
	return nil
}

func checkFile(snapshot *gitprovider.Snapshot, c gitprovider.Change) error {
	path := c.Path.String()
	for _, dir := range c.Path.Ancestors() {
		if above, exists := snapshot.Tree[dir]; exists && above.Kind != gitprovider.KindDir {
			return fault.New(fault.Conflict, "%s is no folder in the base but a %s; leave it to a person", dir, above.Kind)
		}
	}
	entry, exists := snapshot.Tree[path]
	switch {
	case c.Action == gitprovider.ActionCreate && exists:
		return fault.New(fault.Conflict, "the file %s exists in the base already; propose an update instead", path)
	case c.Action == gitprovider.ActionCreate:
		return nil
	case !exists:
		return fault.New(fault.Conflict, "there is no file %s in the base; check the path, or create it", path)
	case entry.Kind != gitprovider.KindFile:
		return fault.New(fault.Conflict, "%s is not a regular file in the base but a %s; leave it to a person", path, entry.Kind)
	case c.Action == gitprovider.ActionUpdate && gitprovider.BlobID([]byte(c.Content), entry.ID) == entry.ID:
		return fault.New(fault.NoChange, "the file %s has this content in the base already; leave it out", path)
	}
	return nil
}

// mustKeepMode reports whether an executable file is updated: createCommitOnBranch makes every file that it writes an
// ordinary one.
func mustKeepMode(req gitprovider.CommitRequest) bool {
	for _, c := range req.Changes.Changes() {
		if c.Action == gitprovider.ActionUpdate && req.Snapshot.Tree[c.Path.String()].Executable {
			return true
		}
	}
	return false
}
