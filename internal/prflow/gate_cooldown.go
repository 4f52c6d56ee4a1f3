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
		Asks:  "whether a pull request on one of the files was closed without merging lately",
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
	for i, pr := range e.snapshot.Closed {
		if left(pr) <= 0 || len(r.overlap(pr.Paths)) == 0 || latest != nil && !pr.ClosedAt.After(latest.ClosedAt) {
			continue
		}
		byUs, err := e.closedByUs(ctx, pr)
		if err != nil {
			return ruling{}, err
		}
		if !byUs {
			latest = &e.snapshot.Closed[i]
		}
	}
	if latest == nil {
		return ruling{}, nil
	}
	overlap := r.overlap(latest.Paths)
	denial := fault.New(fault.CooldownActive,
		"#%d (%s), which changed %s, was closed without merging; these files may be proposed again in %s",
		latest.Number, latest.URL, listed(overlap), left(*latest).Round(time.Second))
	denial.RetryAfter = left(*latest)
	denial.Existing = &fault.ExistingPR{
		Number: latest.Number, URL: latest.URL, Title: clean(latest.Title, maxTitle), Paths: overlap,
		LastReview: e.lastRemark(ctx, latest.Number),
	}
	return deny(denial), nil
}
