package gitprovider

import "context"

// MaxReviewStates limits the pull requests of one call of ReviewStates.
const MaxReviewStates = 50

// ReviewLister is an optional ability of a Provider: it tells the state of the reviews of several pull requests. Every
// adapter here has it.
type ReviewLister interface {
	// ReviewStates returns, by number, changes_requested for a pull request whose changes somebody still asks for, and
	// approved for one that somebody approves otherwise. Only those count who may write to the repository. A pull request
	// with neither is left out, and so is a number that does not exist. At most MaxReviewStates numbers are asked about.
	ReviewStates(ctx context.Context, repo RepoRef, numbers []int) (map[int]ReviewState, error)
}

// StateOfReview returns the overall state of the reviews: changes_requested, approved or "". Only reviewers who may
// write count.
func StateOfReview(remarks []Remark) ReviewState {
	var reviews []Review
	for _, r := range remarks {
		if r.State != "" && r.MayWrite {
			reviews = append(reviews, Review{Author: r.Author, State: r.State, SubmittedAt: r.At})
		}
	}
	switch approvals, objections := Opinions(reviews); {
	case objections > 0:
		return ReviewChangesRequested
	case approvals > 0:
		return ReviewApproved
	}
	return ""
}
