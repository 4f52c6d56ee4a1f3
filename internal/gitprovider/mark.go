package gitprovider

import (
	"slices"
	"strings"
)

// MarkOpening begins the signed mark that Claude Ops puts into the bodies of its pull requests. Whether a mark is true
// only the holder of the key can tell; internal/prflow does.
const MarkOpening = "<!-- claude-ops:"

// MayBeOurs reports whether a pull request may be one of ours: by its label, by its branch, or by a mark, and never if its
// head is in a fork. It is the measure of Snapshot's Open and Closed; Body must be complete for it.
func MayBeOurs(pr PullRequest) bool {
	return ClearlyOurs(pr) || HasMark(pr)
}

// ClearlyOurs is MayBeOurs without the mark.
func ClearlyOurs(pr PullRequest) bool {
	return !pr.Fork && (slices.Contains(pr.Labels, LabelOurs) || strings.HasPrefix(pr.Branch, BranchPrefix))
}

// HasMark reports whether a pull request of the repository's own branches has a mark, true or not.
func HasMark(pr PullRequest) bool { return !pr.Fork && strings.Contains(pr.Body, MarkOpening) }

// Listed is the measure of ListOpen: a pull request of the repository's own branches with the label or with a mark.
func Listed(pr PullRequest, label string) bool {
	return !pr.Fork && (slices.Contains(pr.Labels, label) || HasMark(pr))
}
