package prflow

import (
	"context"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// This file handles pull requests that people merge or close between our look and our commit of a revision. A forge
// accepts the commit all the same: it is then on the branch, but in no open pull request.

func hasEnded(state gitprovider.State) bool {
	return state == gitprovider.StateMerged || state == gitprovider.StateClosed
}

// stateNow returns the state of a pull request; "" if it cannot be seen.
func stateNow(ctx context.Context, p gitprovider.Provider, repo gitprovider.RepoRef,
	pr gitprovider.PullRequest) gitprovider.State {
	found, err := p.FindByHead(ctx, repo, pr.Branch)
	if err != nil || found == nil || found.Number != pr.Number {
		return ""
	}
	return found.State
}

// tookIn reports whether a pull request that has ended has brought the changes onto its base branch. How it was merged
// does not matter: by a merge commit, squashed or rebased.
func tookIn(ctx context.Context, p gitprovider.Provider, repo gitprovider.RepoRef, base string, state gitprovider.State,
	changes []gitprovider.Change) (
	bool, error) {
	if state != gitprovider.StateMerged {
		return false, nil
	}
	return branchHolds(ctx, p, repo, base, changes)
}

// endedBefore refuses a revision of which nothing was written.
func endedBefore(number int, state gitprovider.State) *fault.Error {
	e := fault.New(fault.Conflict, "#%d was %s since it was read a moment ago; nothing was added to it", number, state)
	e.Next = afterEnd
	return e
}

// missed refuses a revision whose commit came after the end of the pull request.
func missed(pr gitprovider.PullRequest, state gitprovider.State, commit string) *fault.Error {
	e := fault.New(fault.Conflict,
		"#%d was %s while the revision was on its way, and without it: the commit %s is on the branch %s and nowhere "+
			"else, and nothing was commented", pr.Number, state, short(commit), clean(pr.Branch, maxTitle))
	e.Next = afterEnd
	return e
}

// afterEnd advises the caller after a pull request has ended.
const afterEnd = "read it (get_pr_status); what is still missing may be proposed as a change of its own, without revises"
