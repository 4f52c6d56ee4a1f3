package fakegithub

import (
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/forgetest/memhost"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// listed lists the pull requests that the arguments of a connection ask for, in the order that they ask for.
func (p *place) listed(in args) []*memhost.PR {
	states, labels := in.Strings("states"), in.Strings("labels")
	var out []*memhost.PR
	for _, pr := range p.repo.PRs {
		_, head := p.headOf(pr)
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
		slices.SortStableFunc(out, func(a, b *memhost.PR) int { return p.pull(a).updated.Compare(p.pull(b).updated) })
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

// decision is what the reviews come to, or nil if none are needed and none decide.
func (p *place) decision(pr *memhost.PR) any {
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
	case !p.needsReview(pr):
		return nil
	case approved:
		return "APPROVED"
	default:
		return "REVIEW_REQUIRED"
	}
}

func (p *place) needsReview(pr *memhost.PR) bool {
	return p.set.RequireReview && (len(p.set.Protected) == 0 || p.set.protects(pr.Base))
}

// mergeState is why a pull request can be merged, or not; ok is what mergeable said.
func (p *place) mergeState(pr *memhost.PR, ok *bool) string {
	switch {
	case ok == nil:
		return "UNKNOWN"
	case !*ok:
		return "DIRTY"
	case p.pull(pr).draft:
		return "DRAFT"
	case p.needsReview(pr) && p.decision(pr) != "APPROVED":
		return "BLOCKED"
	case !slices.Contains([]string{"", "SUCCESS"}, p.rollup(pr.HeadCommit)):
		return "UNSTABLE"
	default:
		return "CLEAN"
	}
}
