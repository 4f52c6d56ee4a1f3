package prflow

import (
	"context"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// lastRemark is what somebody who may decide about the pull request said last, in a review or a comment: "comment and close"
// is how most are rejected. nil if nobody did, or if it cannot be read: the cooldown holds without it.
func (c *creation) lastRemark(ctx context.Context, number int) *fault.Quote {
	reader, can := c.resolution.Provider.(gitprovider.RemarkReader)
	if !can {
		return nil
	}
	last, err := reader.LastRemark(ctx, c.snapshot.Repo, number)
	if err != nil {
		c.Log.Warn("remarks not read", "request_id", c.requestID, "pr", number, "error", logText(c.Service, err))
	}
	if err != nil || last == nil {
		return nil
	}
	return &fault.Quote{
		Author: clean(last.Author, maxName), Text: clean(last.Body, maxReview), Untrusted: untrustedQuote,
	}
}
