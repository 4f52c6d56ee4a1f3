package follow

import (
	"time"

	"github.com/claudeops/claudeops/internal/base/content"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// maxName bounds the name of a person, in runes.
const maxName = 100

// A pull request counts as gone when its provider has not known it at goneLooks looks in a row and for goneAfter: a
// token that loses its access for a moment gets the same answer.
const (
	goneLooks = 3
	goneAfter = time.Hour
)

// next returns the record after the provider's answer, and the action to write to the audit; "" for none. A merged pull
// request stays merged.
func (f *Follower) next(was record.PullRecord, status gitprovider.Status) (now record.PullRecord, action string) {
	t := f.Now()
	now = was
	now.TriedAt, now.SeenAt, now.Misses = t, t, 0
	now.Head, now.Checks = status.HeadCommit, status.Checks.State
	now.Approvals, now.ChangesRequested = gitprovider.Opinions(status.Reviews)
	now.AskedAt = asked(status.Reviews)
	if was.State != gitprovider.StateMerged {
		now.State = status.State
	}
	if now.State != was.State {
		action = f.stateChange(was, &now, status)
	}
	changed := now
	changed.TriedAt, changed.SeenAt, changed.Misses = was.TriedAt, was.SeenAt, was.Misses
	if changed != was {
		now.UpdatedAt = t
	}
	return now, action
}

// asked returns the time of the latest request for changes; zero if there is none.
func asked(reviews []gitprovider.Review) (last time.Time) {
	for _, r := range reviews {
		if r.State == gitprovider.ReviewChangesRequested && r.SubmittedAt.After(last) {
			last = r.SubmittedAt.UTC().Truncate(time.Microsecond) // as records have it
		}
	}
	return last
}

// stateChange fills in what comes with a new state.
func (f *Follower) stateChange(was record.PullRecord, now *record.PullRecord,
	status gitprovider.Status) (action string) {
	if now.Open() {
		now.EndedBy = ""
		if was.State == record.StateGone {
			return record.ActionPullFound
		}
		return record.ActionPullReopened
	}
	now.EndedAt, now.EndedBy = status.ClosedAt, content.Clean(f.Redact(status.MergedBy), maxName)
	if now.EndedAt.IsZero() {
		now.EndedAt = now.SeenAt
	}
	now.EndedAt = now.EndedAt.UTC().Truncate(time.Microsecond) // as records have it
	if now.State == gitprovider.StateMerged {
		return record.ActionPullMerged
	}
	return record.ActionPullClosed
}

// notFound returns the record after the provider has answered that the pull request does not exist.
func (f *Follower) notFound(was record.PullRecord) (now record.PullRecord, action string) {
	t := f.Now()
	now = was
	now.TriedAt = t
	now.Misses++
	known := was.SeenAt
	if known.IsZero() {
		known = was.UpdatedAt
	}
	ended := was.State == record.StateGone || was.State == gitprovider.StateMerged
	if ended || now.Misses < goneLooks || t.Sub(known) < goneAfter {
		return now, ""
	}
	now.State, now.UpdatedAt = record.StateGone, t
	return now, record.ActionPullGone
}
