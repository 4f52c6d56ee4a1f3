package local

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// difference describes how a file differs between two trees, in the terms of git diff-tree --raw.
type difference struct {
	oldMode, newMode string
	newID            string
	status           string // A, M, D or T
}

// verify reads the new commit back from the repository and holds it against the change set: every approved file differs
// from the base in the approved way, in bytes and mode, and no other file differs. Only then may a reference point to
// the commit.
func (d draft) verify(o *objects, req gitprovider.CommitRequest, idLen int) error {
	body, err := o.contents(d.id)
	if err != nil {
		return err
	}
	if !bytes.Equal(body, d.body) {
		return fault.Wrap(fmt.Errorf("commit %s is not what was written", d.id), fault.Internal,
			"git has another commit than was written")
	}
	c := treeComparison{o, idLen, map[string]difference{}}
	if err := c.compare("", d.base, d.tree); err != nil {
		return err
	}
	for _, change := range req.Changes.Changes() {
		path := change.Path.String()
		if err := checkDifference(change, c.found[path], d.id); err != nil {
			return err
		}
		if change.Action != gitprovider.ActionDelete {
			if blob, err := o.info(c.found[path].newID); err != nil || blob.kind != "blob" ||
				blob.size != int64(len(change.Content)) {
				return cmp.Or(err, fmt.Errorf("%s is %+v", path, blob))
			}
		}
		delete(c.found, path)
	}
	for path := range c.found {
		return fault.Wrap(fmt.Errorf("%q differs as well", path), fault.Internal,
			"the commit would have changed a file that nobody approved, so it was not made")
	}
	return nil
}

// treeComparison finds the files in which two trees differ, by reading both.
type treeComparison struct {
	objects *objects
	idLen   int
	found   map[string]difference // by path
}

// compare compares two trees; "" is an empty one.
func (c treeComparison) compare(dir, before, after string) error {
	was, err := c.entries(before)
	if err != nil {
		return err
	}
	is, err := c.entries(after)
	if err != nil {
		return err
	}
	names := maps.Collect(maps.All(was))
	maps.Copy(names, is)
	for name := range names {
		if err := c.entry(join(dir, name), was[name], is[name]); err != nil {
			return err
		}
	}
	return nil
}

// entry compares what two trees have under one name.
func (c treeComparison) entry(path string, was, is treeEntry) error {
	if was.id == is.id && canonical(was.mode) == canonical(is.mode) {
		return nil
	}
	if was.isFolder() || is.isFolder() {
		before, after := "", ""
		if was.isFolder() {
			before, was = was.id, treeEntry{}
		}
		if is.isFolder() {
			after, is = is.id, treeEntry{}
		}
		if err := c.compare(path, before, after); err != nil {
			return err
		}
	}
	d := difference{oldMode: canonical(was.mode), newMode: canonical(is.mode), newID: is.id}
	switch {
	case was.id == "" && is.id == "":
		return nil
	case was.id == "":
		d.status = "A"
	case is.id == "":
		d.status = "D"
	case d.oldMode[:3] != d.newMode[:3]:
		d.status = "T"
	default:
		d.status = "M"
	}
	c.found[path] = d
	return nil
}

func (c treeComparison) entries(tree string) (map[string]treeEntry, error) {
	if tree == "" {
		return nil, nil
	}
	return readEntries(c.objects, tree, c.idLen)
}

// checkDifference compares one approved change with what the commit does to the file. sample is any object id.
func checkDifference(c gitprovider.Change, d difference, sample string) error {
	path := c.Path.String()
	blob := gitprovider.BlobID([]byte(c.Content), sample)
	switch {
	case c.Action == gitprovider.ActionCreate && (d.status == "M" || d.status == "T" || d.status == ""):
		return fault.New(fault.Conflict, "the file %s exists in the base already; propose an update instead", path)
	case c.Action != gitprovider.ActionCreate && d.status == "A", c.Action == gitprovider.ActionDelete && d.status == "":
		return fault.New(fault.Conflict, "there is no file %s in the base; check the path, or create it", path)
	case c.Action == gitprovider.ActionUpdate && d.status == "":
		return fault.New(fault.NoChange, "the file %s has this content in the base already; leave it out", path)
	case d.status == "T" || d.status == "D" && !strings.HasPrefix(d.oldMode, "100"):
		return fault.New(fault.Conflict, "%s is not a regular file in the base; leave it to a person", path)
	}
	asApproved := false
	switch c.Action {
	case gitprovider.ActionCreate:
		asApproved = d.status == "A" && d.newMode == "100644" && d.newID == blob
	case gitprovider.ActionUpdate:
		asApproved = d.status == "M" && d.newMode == d.oldMode && d.newID == blob
	case gitprovider.ActionDelete:
		asApproved = d.status == "D"
	}
	if !asApproved {
		return fault.Wrap(fmt.Errorf("%s %q became %+v", c.Action, path, d), fault.Internal,
			"the commit would have changed a file otherwise than approved, so it was not made")
	}
	return nil
}
