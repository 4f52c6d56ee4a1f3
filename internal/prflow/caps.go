package prflow

import (
	"context"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/policy"
	"github.com/claudeops/claudeops/internal/record"
)

// This file is gate 9: how much an agent may ask of its reviewers. It is decided by the transaction that reserves, so that
// callers side by side, in whatever process, never pass a cap together.

// capWindow is the time of which the cap on creations speaks.
const capWindow = time.Hour

const (
	// waitForPending is how long a caller is told to wait when proposals that are being written fill a cap.
	waitForPending = 30 * time.Second
	// waitForReview is how long one is told to wait when open pull requests do: people have to look at them.
	waitForReview = time.Hour
)

// reserveWithinCaps reserves if gate 9 passes, and notes its ruling. What processes that ended have left in this repository is
// settled before it counts against a caller.
func (c *creation) reserveWithinCaps(ctx context.Context) (taken *record.Proposal, err error) {
	for _, last := range []bool{false, true} {
		var usage record.Usage
		caps := c.Policy.CapsFor(c.Tier)
		claim := c.claim()
		claim.Admit = func(u record.Usage) error {
			usage = u
			return c.checkCaps(caps, u)
		}
		taken, err = c.Ledger.Reserve(ctx, c.proposal(record.StateReserved), claim)
		denied := fault.CodeOf(err) == fault.LimitReached
		switch {
		case denied && !last && usage.Pending > 0 && c.settleLeft(ctx):
			continue
		case denied:
			return nil, c.deny(record.GateCaps, fault.From(err))
		case err == nil && taken == nil:
			c.rule(record.GateCaps, nil, usedOf(caps, usage))
		}
		break
	}
	return taken, err
}

// previewCaps asks gate 9 for a dry run, which reserves nothing.
func (c *creation) previewCaps(ctx context.Context) error {
	repo, caps := c.snapshot.Repo, c.Policy.CapsFor(c.Tier)
	usage, err := c.History.Usage(ctx, c.resolution.Provider.Name(), repo.Owner, repo.Name, c.claim())
	if err != nil {
		return err
	}
	if err := c.checkCaps(caps, usage); err != nil {
		return c.deny(record.GateCaps, fault.From(err))
	}
	c.rule(record.GateCaps, nil, usedOf(caps, usage))
	return nil
}

func (c *creation) claim() record.Claim {
	claim := record.Claim{Seen: c.seen, Since: c.Now().Add(-capWindow)}
	for _, pr := range c.snapshot.Open {
		claim.Open = append(claim.Open, record.OpenPull{Number: pr.Number, Head: pr.HeadCommit, Request: c.marks[pr.Number].Request})
	}
	return claim
}

// checkCaps is limit_reached if one more pull request would be one too many.
func (c *creation) checkCaps(caps policy.Caps, u record.Usage) error {
	if u.Open >= caps.OpenPRs {
		e := fault.New(fault.LimitReached, "%s has %d open pull requests of ours%s; the policy allows %d. Wait until some are reviewed",
			c.snapshot.Repo, u.Open, pendingClause(u), caps.OpenPRs)
		e.RetryAfter = waitForReview
		if u.Open-u.Pending < caps.OpenPRs {
			e.RetryAfter = waitForPending
		}
		return e
	}
	created := len(u.Made) + u.Pending
	if created < caps.CreationsPerHour {
		return nil
	}
	e := fault.New(fault.LimitReached, "%d pull requests were opened in %s within the last hour%s; the policy allows %d",
		created, c.snapshot.Repo, pendingClause(u), caps.CreationsPerHour)
	switch leaving := created - caps.CreationsPerHour; { // so many have to grow older than the window, and one more
	case leaving < len(u.Made):
		e.RetryAfter = max(u.Made[leaving].Add(capWindow).Sub(c.Now()), time.Second)
	case caps.CreationsPerHour > 0:
		e.RetryAfter = waitForPending
	default:
		e.RetryAfter = capWindow
	}
	return e
}

// pendingClause is the part of a message that says how many are being made.
func pendingClause(u record.Usage) string {
	if u.Pending == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d of them are being made)", u.Pending)
}

// usedOf says for people how far the caps are used.
func usedOf(caps policy.Caps, u record.Usage) string {
	return fmt.Sprintf("%d of %d open, %d of %d in the last hour",
		u.Open, caps.OpenPRs, len(u.Made)+u.Pending, caps.CreationsPerHour)
}

// settleLeft settles what processes that ended have left in this repository, whatever its files. It reports whether there was
// any; what could not be settled goes on to count.
func (c *creation) settleLeft(ctx context.Context) bool {
	unfinished, err := c.History.Unfinished(ctx)
	if err != nil {
		c.Log.Warn("unfinished proposals not looked for", "request_id", c.requestID, "error", logText(c.Service, err))
		return false
	}
	found := false
	for _, p := range unfinished {
		here := p.Provider == c.resolution.Provider.Name() && p.Owner == c.snapshot.Repo.Owner && p.Repo == c.snapshot.Repo.Name
		if !here || !c.abandoned(p) {
			continue
		}
		found = true
		if err := c.settle(ctx, p); err != nil {
			c.Log.Warn("proposal not settled", "request_id", p.ID, "error", logText(c.Service, err))
		}
	}
	return found
}
