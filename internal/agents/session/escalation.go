package session

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
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

// openFor is how long after its handover a finding starts no further session. After that another session may examine
// it, whatever the result of the first.
const openFor = 7 * 24 * time.Hour

// lastOf returns the last session that it started.
func lastOf(e sessions.Escalated) string {
	if len(e.Sessions) == 0 {
		return ""
	}
	return e.Sessions[len(e.Sessions)-1]
}

// openText says in a few words why it is open.
func openText(e sessions.Escalated) string {
	text := fmt.Sprintf("%s (tier %s since %s, session %s", e.Key, e.Tier, e.At.UTC().Format(time.RFC3339), lastOf(e))
	if len(e.Pulls) > 0 {
		text += ", pull request " + strings.Join(e.Pulls, ", ")
	}
	return text + ")"
}

// unheld returns the keys of the findings that may start a session of the tier: those that have not started one of it
// or a higher one yet. why explains the state of the others.
func unheld(open []sessions.Escalated, findings []sessions.Found, next gitprovider.Tier) (fresh []string, why string) {
	var held []string
	for _, f := range findings {
		at := slices.IndexFunc(open, func(e sessions.Escalated) bool { return e.Key == f.Key && e.Tier >= next })
		if at < 0 {
			fresh = append(fresh, f.Key)
		} else if text := openText(open[at]); !slices.Contains(held, text) {
			held = append(held, text)
		}
	}
	return fresh, "what it found was escalated before and is still open: " + strings.Join(held, "; ")
}

// withEscalated returns the list with findings that start a session now.
func withEscalated(open []sessions.Escalated, keys []string, tier gitprovider.Tier, session string,
	now time.Time) []sessions.Escalated {
	open = slices.Clone(open)
	for _, key := range keys {
		at := slices.IndexFunc(open, func(e sessions.Escalated) bool { return e.Key == key })
		if at < 0 {
			open = append(open, sessions.Escalated{Key: key})
			at = len(open) - 1
		}
		e := &open[at]
		e.Tier, e.At = tier, now
		if !slices.Contains(e.Sessions, session) {
			e.Sessions = append(slices.Clone(e.Sessions), session)
		}
	}
	return open
}

// withoutResolved returns the list without the findings that a session says are gone.
func withoutResolved(open []sessions.Escalated, h sessions.Handoff) []sessions.Escalated {
	return slices.DeleteFunc(slices.Clone(open), func(e sessions.Escalated) bool {
		seen := slices.ContainsFunc(h.Findings, func(f sessions.Found) bool { return f.Key == e.Key })
		return slices.Contains(h.Resolved, e.Key) && !seen
	})
}

// stillOpen returns those findings of the session before that are still open. One that cannot be checked stays open.
func (r *Runner) stillOpen(ctx context.Context, current *sessions.Record, pulls []Pull) (open []sessions.Escalated) {
	for _, e := range current.Open {
		if lastOf(e) == current.ID {
			open = append(open, e)
			continue
		}
		if r.Now().Sub(e.At) > openFor {
			continue
		}
		ids, worked := r.startedBy(ctx, e)
		if worked && !r.settled(ctx, &e, ids, pulls) {
			open = append(open, e)
		}
	}
	return open
}

// startedBy returns the sessions that a finding started, and those that they handed over to. worked reports whether the
// last one has looked at it, as far as anybody knows: it was not ended from outside, and did not fail.
func (r *Runner) startedBy(ctx context.Context, e sessions.Escalated) (ids []string, worked bool) {
	ids = slices.Clone(e.Sessions)
	for id := lastOf(e); len(ids) < len(e.Sessions)+maxChain; {
		s, err := r.Records.Session(ctx, id)
		if err != nil {
			return ids, id != lastOf(e) || fault.CodeOf(err) != fault.NotFound
		}
		if worked = s.State != sessions.StateFailed && s.State != sessions.StateInterrupted &&
			s.State != sessions.StateCancelled; s.Next == "" || !worked {
			return ids, worked
		}
		id = s.Next
		ids = append(ids, id)
	}
	return ids, true
}

// settled reports whether the pull requests that came of a finding have all ended, or one was reviewed after the last
// attempt at it: then the next move is not a person's. It notes the pull requests.
func (r *Runner) settled(ctx context.Context, e *sessions.Escalated, ids []string, pulls []Pull) bool {
	if r.Pulls == nil {
		return false
	}
	touched, err := r.Pulls.OfSessions(ctx, ids)
	if err != nil {
		r.Log.Warn("the pull requests of sessions cannot be read", "error", fault.From(err).Message)
		return false
	}
	e.Pulls = nil
	ended, earlier := 0, 0
	for key, last := range touched {
		e.Pulls = append(e.Pulls, fmt.Sprintf("%s/%s#%d", key.Owner, key.Repo, key.Number))
		at := slices.IndexFunc(pulls, func(p Pull) bool { return p.PullKey == key })
		switch {
		case at < 0: // not known: it may be open
		case !pulls[at].Open() && pulls[at].EndedAt.Before(last): // it had ended when an attempt met it, as a cooldown does
			earlier++
		case !pulls[at].Open():
			ended++
		case pulls[at].reviewedSince(last):
			return true
		}
	}
	slices.Sort(e.Pulls)
	return ended > 0 && ended+earlier == len(touched)
}

// Pull is a pull request that sessions read about.
type Pull struct {
	record.PullRecord
	Reviews []gitprovider.Review // untrusted
	Unread  string               // why its reviews are not known; "" if they are
	// ToAnswer is the pull request with its files, difference and comments, as get_pr_status gives them, if a review
	// waits for an answer that the session may give. Untrusted. nil if none does.
	ToAnswer json.RawMessage
}

// reviewedSince reports whether somebody has asked for changes or said something after the time.
func (p Pull) reviewedSince(last time.Time) bool {
	return slices.ContainsFunc(p.Reviews, func(r gitprovider.Review) bool {
		return r.SubmittedAt.After(last) && (r.State == gitprovider.ReviewChangesRequested ||
			r.State == gitprovider.ReviewCommented)
	})
}

// Pulls reads the records of pull requests of sessions. Errors are faults.
type Pulls interface {
	// Recent returns those that are open, and those that have ended in the last days, newest first, with their reviews,
	// for a session of a tier.
	Recent(ctx context.Context, tier gitprovider.Tier) ([]Pull, error)
	// OfSessions returns those that sessions opened, changed or found in their way, and when an attempt was last made at
	// each.
	OfSessions(ctx context.Context, ids []string) (map[record.PullKey]time.Time, error)
}
