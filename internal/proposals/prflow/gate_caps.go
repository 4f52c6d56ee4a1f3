package prflow

import (
	"context"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// capsGate denies more than an agent may ask of its reviewers. The transaction that reserves asks it, so that callers
// side by side, in whatever process, never pass a cap together.
func capsGate() gate {
	return gate{
		Name: record.GateCaps, Phase: phaseReserve,
		Asks: "how many pull requests are open, and were made within an hour",
		Judge: func(_ context.Context, on rules, r *request, e *evidence) (ruling, error) {
			if r.asked.Revises > 0 {
				return ruling{detail: "a revision opens no pull request"}, nil
			}
			caps := on.Policy.CapsFor(on.Tier)
			if denial := checkCaps(e.snapshot.Repo, caps, e.usage, e.settler.clock.Now()); denial != nil {
				return deny(denial), nil
			}
			return ruling{detail: usedOf(caps, e.usage)}, nil
		},
	}
}

const (
	// waitForPending is the retry delay reported when proposals that are being written fill a cap.
	waitForPending = 30 * time.Second
	// waitForReview is the retry delay reported when open pull requests fill a cap: people have to review them.
	waitForReview = time.Hour
)

// checkCaps returns limit_reached if one more pull request would exceed a cap.
func checkCaps(repo gitprovider.RepoRef, caps policy.Caps, u record.Usage, now time.Time) *fault.Error {
	if u.Open >= caps.OpenPRs {
		e := fault.New(fault.LimitReached,
			"%s has %d open pull requests of ours%s; the policy allows %d. Wait until some are reviewed",
			repo, u.Open, pendingClause(u), caps.OpenPRs)
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
	e := fault.New(fault.LimitReached, "pull requests opened in %s within the last hour: %d%s; the policy allows %d",
		repo, created, pendingClause(u), caps.CreationsPerHour)
	switch over := created - caps.CreationsPerHour; { // enough must leave the window to make room for one more
	case over < len(u.Made):
		e.RetryAfter = max(u.Made[over].Add(capWindow).Sub(now), time.Second)
	case caps.CreationsPerHour > 0:
		e.RetryAfter = waitForPending
	default:
		e.RetryAfter = capWindow
	}
	return e
}

// pendingClause returns the part of a message that says how many are being made.
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
