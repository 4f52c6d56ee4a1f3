package gitprovider_test

import (
	"strings"
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
		"a remark alone is not an opinion": {[]gitprovider.Review{said("ann", gitprovider.ReviewCommented, 1)}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if a, o := gitprovider.Opinions(tt.reviews); a != tt.approvals || o != tt.objections {
				t.Errorf("%d approvals and %d objections, want %d and %d", a, o, tt.approvals, tt.objections)
			}
		})
	}
}

func TestTheConversationStandsAmongTheReviewsWithoutOurAnswers(t *testing.T) {
	at := func(minute int) time.Time { return time.Unix(int64(60*minute), 0) }
	got := gitprovider.AndConversation(
		[]gitprovider.Review{{Author: "ann", Body: "first", SubmittedAt: at(1)}, {Author: "cid", Body: "draft"}},
		[]gitprovider.Remark{{Author: "bob", Body: "second", At: at(2)}, {Author: "bob", Body: " \n", At: at(3)},
			{Author: "ops", Body: gitprovider.AnswerOpening + "0123456 (request x).", At: at(4)}})
	var said []string
	for _, r := range got {
		said = append(said, r.Author+" "+r.Body)
	}
	if want := "ann first, bob second, cid draft"; strings.Join(said, ", ") != want {
		t.Errorf("%q, want %q", said, want)
	}
}
