package prflow

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
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
	out := ruling{}
	for i, pr := range e.snapshot.Closed {
		if left(pr) <= 0 || latest != nil && !pr.ClosedAt.After(latest.ClosedAt) {
			continue
		}
		rejected, err := e.rejected(ctx, r, pr)
		if err != nil {
			return ruling{}, err
		}
		lifted, err := e.lifted(ctx, on, pr)
		if err != nil {
			return ruling{}, err
		}
		switch {
		case rejected != "" && lifted != "":
			out.detail = lifted
		case rejected != "":
			latest, what = &e.snapshot.Closed[i], rejected
		}
	}
	if latest == nil {
		return out, nil
	}
	overlap := r.overlap(latest.Paths)
	denial := fault.New(fault.CooldownActive,
		"#%d (%s), which %s, was closed without merging; it may be proposed again in %s",
		latest.Number, latest.URL, what, left(*latest).Round(time.Second))
	denial.RetryAfter = left(*latest)
	denial.Existing = &fault.ExistingPR{
		Number: latest.Number, URL: latest.URL, Title: clean(latest.Title, maxTitle), Paths: overlap,
		LastReview: e.lastRemark(ctx, latest.Number),
	}
	return deny(denial), nil
}

// rejected says what of a request a pull request had that a person has closed; "" for nothing. What is moved to another
// file stays rejected.
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

// lifted says who has lifted the cooldown of a closed pull request; "" if it still applies.
func (e *evidence) lifted(ctx context.Context, on rules, pr gitprovider.PullRequest) (string, error) {
	isLabel := func(l string) bool { return strings.EqualFold(l, on.Policy.Limits.CooldownLabel) }
	if on.Policy.Limits.CooldownLabel != "" && slices.ContainsFunc(pr.Labels, isLabel) {
		return fmt.Sprintf("the cooldown of #%d was lifted by its label %s", pr.Number, on.Policy.Limits.CooldownLabel), nil
	}
	repo := e.snapshot.Repo
	key := record.PullKey{Provider: e.resolution.Provider.Name(), Owner: repo.Owner, Repo: repo.Name, Number: pr.Number}
	by, when, err := e.history.CooldownLifted(ctx, key)
	if err != nil || by == "" || when.Before(pr.ClosedAt) { // or it was closed again since
		return "", err
	}
	return fmt.Sprintf("the cooldown of #%d was lifted by %s", pr.Number, clean(by, maxName)), nil
}
