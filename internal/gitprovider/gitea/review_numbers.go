package gitea

import (
	"context"
	"slices"
	"sync/atomic"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/system/transport"
)

// reviewNumbers finds out which pull requests of a list may have a submitted review. Some servers leave the number of
// reviews out where it is 0, others do not know it.
type reviewNumbers struct {
	api   *api
	known *atomic.Bool // the server is known to know the number
}

// fewUnknown limits the pull requests without a review count whose reviews are read directly: for so few, that costs
// less than reading the server's description of its API.
const fewUnknown = 5

// of gives what tells whether a pull request may have a review. A server that gives the number for any of the list
// leaves out nothing but zeros, and so does one whose description of its API has it. Otherwise only a pull request to
// which nothing has happened since it was opened counts as one without: a review is a change of it.
func (n reviewNumbers) of(ctx context.Context, list []*gitea.PullRequest) func(*gitea.PullRequest) bool {
	unsure := 0
	for _, pr := range list {
		if pr.ReviewComments == unknownReviews && !isUntouched(pr) {
			unsure++
		}
	}
	told := slices.ContainsFunc(list, func(pr *gitea.PullRequest) bool { return pr.ReviewComments != unknownReviews })
	if told || !n.known.Load() && unsure > fewUnknown && n.described(ctx) {
		n.known.Store(true)
	}
	knows := n.known.Load()
	return func(pr *gitea.PullRequest) bool {
		if pr.ReviewComments == unknownReviews {
			return !knows && !isUntouched(pr)
		}
		return pr.ReviewComments > 0
	}
}

func isUntouched(pr *gitea.PullRequest) bool {
	return pr.Created != nil && pr.Updated != nil && pr.Updated.Equal(*pr.Created)
}

// described reports whether the server's description of its API has the number. Servers may be set to have no
// description.
func (n reviewNumbers) described(ctx context.Context) bool {
	var description struct {
		Definitions struct {
			PullRequest struct {
				Properties struct {
					Number *struct{} `json:"review_comments"`
				} `json:"properties"`
			} `json:"PullRequest"` //nolint:tagliatelle // the server's
		} `json:"definitions"`
	}
	_, err := n.api.get(ctx, transport.URL(n.api.base, "swagger.v1.json"), nil, &description)
	return err == nil && description.Definitions.PullRequest.Properties.Number != nil
}
