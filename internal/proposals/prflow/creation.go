package prflow

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
)

// creation holds the state of one call that proposes.
type creation struct {
	service  *Service
	log      redactedLog
	call     operation.Call
	rules    rules
	request  request
	evidence evidence
	verdicts verdicts
	draft    draft    // zero until the gates that need no draft have passed
	warnings []string // of what came after the gates

	reserved bool   // the record of this proposal still holds the files
	writing  bool   // there is a proposal, or was, which has the files
	commit   string // of the branch; "" until it is certain that both exist
	recorded bool   // the audit has the attempt
	admits   bool   // the door has let the caller in once more, so that it may write
}

// draft is a pull request as it leaves. Nothing else makes the texts of one.
type draft struct {
	branch, title, body string
	digest              string // of the change at its place
	head                string // of the audit, as the mark has it; see markHead
	answers             []record.ReviewAnswer
	posted              int // of the answers
}

// writes tells the caller of a phase in which the provider is waited for.
func (c *creation) writes(phase string, at gitprovider.Provider) {
	c.call.Progress(phase + " at " + at.Name())
}

// admitted asks the door, once, whether the caller may still propose: after all waiting, and before the first write.
// See operation.Caller.
func (c *creation) admitted(ctx context.Context) error {
	if c.admits {
		return nil
	}
	err := c.call.Caller.Admitted(ctx)
	c.admits = err == nil
	return err
}

// recordTimeout is the time for the record of an attempt whose caller has gone.
const recordTimeout = 15 * time.Second

// leaveUnsettled marks the proposal unsettled: its files stay reserved until its outcome is known.
func (c *creation) leaveUnsettled(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout) // the time for writing may be over
	defer cancel()
	c.reserved = false
	if err := c.advance(ctx, record.Progress{State: record.StateUnsettled, Commit: c.commit}); err != nil {
		c.log.error("unsettled proposal not marked", err)
	}
}

// advance records a step of this proposal.
func (c *creation) advance(ctx context.Context, to record.Progress) error {
	return c.service.Ledger.Advance(ctx, c.request.id, to)
}
