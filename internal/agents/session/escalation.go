package session

import (
	"fmt"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

// maxTier returns the tier that a session may escalate to at most, and why.
func (r *Runner) maxTier(ceiling gitprovider.Tier) (gitprovider.Tier, string) {
	if ceiling != 0 && ceiling < r.Settings.MaxTier {
		return ceiling, fmt.Sprintf("the person who started it may start tier %s at most", ceiling)
	}
	return r.Settings.MaxTier, fmt.Sprintf("CLAUDEOPS_MAX_TIER is %s", r.Settings.MaxTier)
}

// decideEscalation decides whether the handoff starts another session, and gives that session its id.
func (r *Runner) decideEscalation(record *sessions.Record, ceiling gitprovider.Tier) {
	h := record.Handoff
	if h == nil {
		if record.HandoffProblem != "" {
			record.Escalation = "not escalated: the handoff cannot be used"
		}
		return
	}
	record.Open = withoutResolved(record.Open, *h)
	if len(h.Findings) == 0 {
		return
	}
	highest, why := r.maxTier(ceiling)
	next := min(gitprovider.Tier(h.RecommendedTier), highest, gitprovider.TierRemediate)
	switch {
	case h.RecommendedTier <= int(record.Tier):
		record.Escalation = fmt.Sprintf("not escalated: the handoff recommends tier %d, which is not higher",
			h.RecommendedTier)
	case record.State != sessions.StateSucceeded:
		record.Escalation = "not escalated: the session did not succeed"
	case record.DryRun:
		record.Escalation = "not escalated: a dry run never escalates"
	case next <= record.Tier:
		record.Escalation = fmt.Sprintf("not escalated: the handoff recommends tier %d, and %s", h.RecommendedTier, why)
	default:
		fresh, held := unheld(record.Open, h.Findings, next)
		if len(fresh) == 0 {
			record.Escalation = "not escalated: " + held
			return
		}
		record.Next = r.NewID()
		record.Open = withEscalated(record.Open, fresh, next, record.Next, record.EndedAt)
		record.Escalation = fmt.Sprintf("escalated to tier %s", next)
		if int(next) < h.RecommendedTier {
			record.Escalation += fmt.Sprintf(": the handoff recommends tier %d, and %s", h.RecommendedTier, why)
		}
	}
}

// nextSpec returns the session that a record escalates to.
func (r *Runner) nextSpec(record sessions.Record, ceiling gitprovider.Tier) Spec {
	highest, _ := r.maxTier(ceiling)
	return Spec{
		ID: record.Next, Tier: min(gitprovider.Tier(record.Handoff.RecommendedTier), highest), Ceiling: ceiling,
		Trigger: sessions.TriggerEscalation, Starter: record.Actor, Parent: record.ID, Handoff: record.Handoff,
	}
}
