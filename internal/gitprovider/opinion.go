package gitprovider

import "slices"

// Opinions counts the people whose last word is an approval or a request for changes, whatever the order of the reviews. A
// remark, or a review that is not submitted yet, takes nothing back; a dismissal does.
func Opinions(reviews []Review) (approvals, objections int) {
	reviews = slices.Clone(reviews)
	slices.SortStableFunc(reviews, func(a, b Review) int { return a.SubmittedAt.Compare(b.SubmittedAt) })
	last := map[string]ReviewState{}
	for _, r := range reviews {
		switch r.State {
		case ReviewApproved, ReviewChangesRequested, ReviewDismissed:
			last[r.Author] = r.State
		}
	}
	for _, state := range last {
		switch state {
		case ReviewApproved:
			approvals++
		case ReviewChangesRequested:
			objections++
		}
	}
	return approvals, objections
}
