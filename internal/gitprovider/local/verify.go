package local

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// difference is one entry of a raw diff.
type difference struct {
	oldMode, newMode string
	newID            string
	status           string // A, M, D or T
}

// verify holds the new commit against the change set: every approved file differs from the base in the approved way, in
// bytes and mode, and no other file differs. Only then may a reference point to the commit.
func (w *workspace) verify(ctx context.Context, req gitprovider.CommitRequest, commit string) error {
	out, _, err := w.run(ctx, nil, nil, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index",
		req.Snapshot.BaseCommit, commit)
	if err != nil {
		return err
	}
	found, err := parseRawDiff(out)
	if err != nil {
		return err
	}
	for _, c := range req.Changes.Changes() {
		path := c.Path.String()
		if err := checkDifference(c, found[path], commit); err != nil {
			return err
		}
		delete(found, path)
	}
	for path := range found {
		return fault.Wrap(fmt.Errorf("%q differs as well", path), fault.Internal,
			"the commit would have changed a file that nobody approved, so it was not made")
	}
	return nil
}

// parseRawDiff reads ":<old mode> <new mode> <old id> <new id> <status>" and path, in turn.
func parseRawDiff(out []byte) (map[string]difference, error) {
	found := map[string]difference{}
	fields := splitZ(out)
	for ; len(fields) >= 2; fields = fields[2:] {
		parts := strings.Fields(strings.TrimPrefix(fields[0], ":"))
		if len(parts) != 5 {
			break
		}
		found[fields[1]] = difference{oldMode: parts[0], newMode: parts[1], newID: parts[3], status: parts[4]}
	}
	if len(fields) > 0 {
		return nil, fault.Wrap(errors.New("malformed raw diff"), fault.Internal, "git answered something else than a diff")
	}
	return found, nil
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
