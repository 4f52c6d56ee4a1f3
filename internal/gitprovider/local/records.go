package local

import (
	"context"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Records keeps what a forge would keep beside a git repository: pull requests and their reviews. internal/store
// implements it. repo is "owner/name" as the folder below the root is spelled. Errors are *fault.Error: not_found for
// an unknown number, internal when the store fails; an error that a callback returns is passed on as it is.
type Records interface {
	// InsertPR records a new open pull request under the repository's next number, starting at 1. If an open one with
	// the same head branch and base exists, that one is returned and nothing is recorded.
	InsertPR(ctx context.Context, repo string, pr gitprovider.PullRequest) (gitprovider.PullRequest, error)
	// PR returns one pull request and its reviews, oldest first.
	PR(ctx context.Context, repo string, number int) (gitprovider.PullRequest, []gitprovider.Review, error)
	// PRs returns every pull request of the repository in the given state ("" for all), oldest first.
	PRs(ctx context.Context, repo string, state gitprovider.State) ([]gitprovider.PullRequest, error)
	// UpdatePR hands the recorded pull request to change within one transaction and records what it left there. If
	// change fails, nothing is recorded.
	UpdatePR(ctx context.Context, repo string, number int, change func(*gitprovider.PullRequest) error) error
	// AddReview appends a review to a pull request.
	AddReview(ctx context.Context, repo string, number int, review gitprovider.Review) error
}
