package prflow

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/record"
)

// cooldownGate denies what a person has rejected lately: it does not come straight back.
func cooldownGate() gate {
	return gate{
		Name: record.GateCooldown, Phase: phasePulls,
		Asks:  "whether a pull request on one of the files, or with one of the texts, was closed without merging lately",
		Judge: judgeCooldown,
	}
}

func judgeCooldown(ctx context.Context, on rules, r *request, e *evidence) (ruling, error) {
	if err := e.rememberPaths(ctx); err != nil {
		return ruling{}, err
	}
	left := func(pr gitprovider.PullRequest) time.Duration {
		return pr.ClosedAt.Add(on.Policy.Limits.Cooldown).Sub(r.started)
	}
	var latest *gitprovider.PullRequest
	var what string
	for i, pr := range e.snapshot.Closed {
		if left(pr) <= 0 || latest != nil && !pr.ClosedAt.After(latest.ClosedAt) {
			continue
		}
		rejected, err := e.rejected(ctx, r, pr)
		if err != nil {
			return ruling{}, err
		}
		if rejected != "" {
			latest, what = &e.snapshot.Closed[i], rejected
		}
	}
	if latest == nil {
		return ruling{}, nil
	}
	overlap := r.overlap(latest.Paths)
	denial := fault.New(fault.CooldownActive, "#%d (%s), which %s, was closed without merging; it may be proposed again in %s",
		latest.Number, latest.URL, what, left(*latest).Round(time.Second))
	denial.RetryAfter = left(*latest)
	denial.Existing = &fault.ExistingPR{
		Number: latest.Number, URL: latest.URL, Title: clean(latest.Title, maxTitle), Paths: overlap,
		LastReview: e.lastRemark(ctx, latest.Number),
	}
	return deny(denial), nil
}

// rejected says what of a request a pull request had that a person has closed; "" for nothing. What is moved to another file stays rejected.
func (e *evidence) rejected(ctx context.Context, r *request, pr gitprovider.PullRequest) (what string, err error) {
	if overlap := r.overlap(pr.Paths); len(overlap) > 0 {
		what = "changed " + listed(overlap)
	} else {
		moved, err := e.sameTexts(ctx, r, pr)
		if err != nil || len(moved) == 0 {
			return "", err
		}
		what = "brought the same text as " + listed(moved) + " in " + listed(canonical(pr.Paths))
	}
	byUs, err := e.closedByUs(ctx, pr)
	if err != nil || byUs {
		return "", err
	}
	return what, nil
}
