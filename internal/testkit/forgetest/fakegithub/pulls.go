package fakegithub

import (
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// listed lists the pull requests that the arguments of a connection ask for, in the order that they ask for.
func (r *pullRules) listed(in args) []*memhost.PR {
	states, labels := in.Strings("states"), in.Strings("labels")
	var out []*memhost.PR
	for _, pr := range r.at.repo.PRs {
		_, head := r.at.headOf(pr)
		switch {
		case len(states) > 0 && !slices.Contains(states, strings.ToUpper(string(pr.State))),
			len(labels) > 0 && !hasOneOf(pr.Labels, labels),
			in.Has("headRefName") && head != in.String("headRefName"),
			in.Has("headRefOid") && pr.HeadCommit != in.String("headRefOid"),
			in.Has("baseRefName") && pr.Base != in.String("baseRefName"):
		default:
			out = append(out, pr)
		}
	}
	order := in.Object("orderBy")
	if order.String("field") == "UPDATED_AT" {
		slices.SortStableFunc(out, func(a, b *memhost.PR) int { return r.at.pull(a).updated.Compare(r.at.pull(b).updated) })
	}
	if order.String("direction") == "DESC" {
		slices.Reverse(out)
	}
	return out
}

// hasOneOf reports whether one of the wanted labels is there, letter case aside.
func hasOneOf(have, wanted []string) bool {
	return slices.ContainsFunc(have, func(a string) bool {
		return slices.ContainsFunc(wanted, func(b string) bool { return lower(a) == lower(b) })
	})
}

// decision returns the overall result of the reviews, or nil if none are needed and none decide.
func (r *pullRules) decision(pr *memhost.PR) any {
	last := map[string]gitprovider.ReviewState{}
	for _, r := range pr.Reviews {
		if r.State == gitprovider.ReviewApproved || r.State == gitprovider.ReviewChangesRequested ||
			r.State == gitprovider.ReviewDismissed {
			last[r.Author] = r.State
		}
	}
	approved := false
	for _, state := range last {
		if state == gitprovider.ReviewChangesRequested {
			return "CHANGES_REQUESTED"
		}
		approved = approved || state == gitprovider.ReviewApproved
	}
	switch {
	case !r.needsReview(pr):
		return nil
	case approved:
		return "APPROVED"
	default:
		return "REVIEW_REQUIRED"
	}
}

func (r *pullRules) needsReview(pr *memhost.PR) bool {
	return r.at.set.Protection.RequireReview && (len(r.at.set.Protection.Protected) == 0 || r.at.set.protects(pr.Base))
}

// mergeState explains why a pull request can be merged, or not; ok is the value of mergeable.
func (r *pullRules) mergeState(pr *memhost.PR, ok *bool) string {
	switch {
	case ok == nil:
		return "UNKNOWN"
	case !*ok:
		return "DIRTY"
	case r.at.pull(pr).draft:
		return "DRAFT"
	case r.needsReview(pr) && r.decision(pr) != "APPROVED":
		return "BLOCKED"
	case !slices.Contains([]string{"", "SUCCESS"}, r.at.rollup(pr.HeadCommit)):
		return "UNSTABLE"
	default:
		return "CLEAN"
	}
}
