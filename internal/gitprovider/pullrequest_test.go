package gitprovider_test

import (
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

func TestTheLastWordOfEachReviewerCounts(t *testing.T) {
	said := func(author string, state gitprovider.ReviewState, minute int) gitprovider.Review {
		return gitprovider.Review{Author: author, State: state,
			SubmittedAt: time.Date(2026, 11, 20, 12, minute, 0, 0, time.UTC)}
	}
	const approved, against = gitprovider.ReviewApproved, gitprovider.ReviewChangesRequested
	for name, tt := range map[string]struct {
		reviews               []gitprovider.Review
		approvals, objections int
	}{
		"nobody":                      {nil, 0, 0},
		"two people":                  {[]gitprovider.Review{said("ann", approved, 1), said("bob", against, 2)}, 1, 1},
		"one who changed their mind":  {[]gitprovider.Review{said("ann", against, 1), said("ann", approved, 2)}, 1, 0},
		"the same in the other order": {[]gitprovider.Review{said("ann", approved, 2), said("ann", against, 1)}, 1, 0},
		"a remark takes nothing back": {[]gitprovider.Review{said("ann", against, 1),
			said("ann", gitprovider.ReviewCommented, 2)}, 0, 1},
		"nor does one not yet sent": {[]gitprovider.Review{said("ann", approved, 1),
			said("ann", gitprovider.ReviewPending, 2)}, 1, 0},
		"a dismissal takes it back": {[]gitprovider.Review{said("ann", against, 1),
			said("ann", gitprovider.ReviewDismissed, 2)}, 0, 0},
		"a remark alone is no opinion": {[]gitprovider.Review{said("ann", gitprovider.ReviewCommented, 1)}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if a, o := gitprovider.Opinions(tt.reviews); a != tt.approvals || o != tt.objections {
				t.Errorf("%d approvals and %d objections, want %d and %d", a, o, tt.approvals, tt.objections)
			}
		})
	}
}
