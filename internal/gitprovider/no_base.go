package gitprovider

import "github.com/claudeops/claudeops/internal/base/fault"

// NoBase is the error for a base branch that does not exist: not_found, with the branch to use instead. defaultBranch
// is the repository's, "" if that is not known.
func NoBase(repo RepoRef, branch, defaultBranch string) error {
	if defaultBranch == "" {
		return fault.New(fault.NotFound, "the repository %s has no branch %.200q; name an existing base branch", repo, branch)
	}
	return fault.New(fault.NotFound,
		"the repository %s has no branch %.200q; leave base_branch out for its default branch %.200q", repo, branch,
		defaultBranch)
}
