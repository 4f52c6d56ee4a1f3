package gitprovider

import (
	"slices"
	"strings"
)

// MarkOpening begins the signed mark that Claude Ops puts into the bodies of its pull requests. Whether a mark is true
// only the holder of the key can tell; internal/prflow does.
const MarkOpening = "<!-- claude-ops:"

// MayBeOurs reports whether a pull request may be one of ours: by its label, by its branch, or by a mark. It is the
// measure of Snapshot's Open and Closed; Body must be complete for it.
func MayBeOurs(pr PullRequest) bool {
	return ClearlyOurs(pr) || strings.Contains(pr.Body, MarkOpening)
}

// ClearlyOurs is MayBeOurs without the mark.
func ClearlyOurs(pr PullRequest) bool {
	return slices.Contains(pr.Labels, LabelOurs) || strings.HasPrefix(pr.Branch, BranchPrefix)
}
