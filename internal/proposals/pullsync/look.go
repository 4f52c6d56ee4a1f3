package pullsync

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
)

// maxContended limits how often a look is repeated because another process recorded one meanwhile.
const maxContended = 5

// closeLease is how long a process that began to close a pull request has it for itself: it has given up by then, and
// nothing that it sent arrives any more.
const closeLease = lookTimeout + gitprovider.ForgeLateness

// Look asks the provider about a pull request of ours and records the answer, closes it if nobody acts on it for as
// long as the policy says, and records that; by is what made us look. Errors are those of the provider and of the
// records; conflict if others kept recording it.
func (f *Follower) Look(ctx context.Context, key record.PullKey, by record.Door) error {
	if err := f.see(ctx, key, by); err != nil {
		return err
	}
	tried, failure := f.closeStale(ctx, key)
	if !tried {
		return failure
	}
	err := f.see(ctx, key, by) // what a failed close has done all the same is recorded, too
	if failure == nil {
		return err
	}
	f.Log.Warn("a stale pull request may not be closed yet", "provider", key.Provider, "repo", key.Owner+"/"+key.Repo,
		"number", key.Number, "error", f.Redact(fault.From(failure).Message))
	if fault.CodeOf(failure) == fault.RateLimited {
		return failure
	}
	return err
}

// closeStale closes a pull request if it is due and no other process is about to. tried is false if nothing was written
// at its provider.
func (f *Follower) closeStale(ctx context.Context, key record.PullKey) (tried bool, err error) {
	after, now := f.Closer.After(), f.Now()
	if after <= 0 {
		return false, nil
	}
	r, found, err := f.Records.FindPull(ctx, key)
	if err != nil || !found || !r.Expired(now, f.RemindAfter(), after) {
		return false, err
	}
	if r.ClosingAt.After(r.WaitsSince()) && now.Sub(r.ClosingAt) < closeLease {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout) // closeLease counts on it, in every process that looks
	defer cancel()
	err = f.Closer.Close(ctx, prflow.Stale{
		Pull: r, After: after,
		Claim: func(ctx context.Context) (bool, error) {
			claimed := r
			claimed.ClosingAt = f.Now()
			mine, err := f.Records.SeePull(ctx, claimed, nil)
			tried = mine && err == nil
			return mine, err
		},
		Judge: func(status gitprovider.Status) bool {
			marked, err := f.Closer.Marked(r, status.PullRequest)
			next, _ := f.nextRecord(r, status, marked)
			return err == nil && next.Expired(f.Now(), f.RemindAfter(), after) && next.WaitsSince().Equal(r.WaitsSince())
		},
	})
	if code := fault.CodeOf(err); code == fault.Paused || code == fault.ReadOnly {
		return tried, nil
	}
	return tried, err
}

// see asks the provider about a pull request of ours and records the answer; by is what made us look. An answer that
// was read before another process recorded its own is discarded, so that an old answer never replaces a newer one and
// an end is recorded by one process only. Errors are those of the provider and of the records; conflict if others kept
// recording it.
func (f *Follower) see(ctx context.Context, key record.PullKey, by record.Door) error {
	for range maxContended {
		was, found, err := f.Records.FindPull(ctx, key)
		if err != nil || !found {
			return err
		}
		status, err := f.Status(ctx, was.Provider, was.Owner, was.Repo, was.Number)
		var now record.PullRecord
		var action string
		switch {
		case err == nil:
			marked, err := f.Closer.Marked(was, status.PullRequest)
			if err != nil {
				return err
			}
			now, action = f.nextRecord(was, status, marked)
		case fault.CodeOf(err) == fault.NotFound:
			now, action = f.notFound(was)
		default:
			return err
		}
		now.SeenBy = by
		if done, err := f.recordPull(ctx, was, now, action); err != nil || done {
			return err
		}
	}
	return fault.New(fault.Conflict, "other processes kept recording the same pull request")
}

// recordPull replaces was by now. done is false if was is not what is recorded any more.
func (f *Follower) recordPull(ctx context.Context, was, now record.PullRecord, action string) (done bool, err error) {
	if action == "" {
		return f.Records.SeePull(ctx, now, nil)
	}
	a := f.attempt(now, action)
	var notices []record.Notice
	if event := eventOf(action); event == record.EventStale || event != "" && isNewEnd(was, now) {
		notices = f.Notifier.Notices(event, a)
	}
	done, err = f.Records.SeePull(ctx, now, &a, notices...)
	if done && err == nil {
		f.Log.Info("pull request changed", "action", action, "provider", now.Provider, "repo", now.Owner+"/"+now.Repo,
			"number", now.Number, "seen_by", now.SeenBy)
		f.Notifier.Kick(ctx)
	}
	return done, err
}

// isNewEnd reports whether people must be notified of an end. They were already if an outdated answer made the pull
// request look reopened in between.
func isNewEnd(was, now record.PullRecord) bool { return !now.EndedAt.Equal(was.EndedAt) }

// attempt returns the audit row for a change in a pull request's state.
func (f *Follower) attempt(r record.PullRecord, action string) record.Attempt {
	a := record.Attempt{
		Time: r.UpdatedAt, RequestID: f.NewID(), Actor: record.Actor{Door: r.SeenBy}, Door: r.SeenBy, Action: action,
		Provider: r.Provider, Owner: r.Owner,
		Repo: r.Repo,
		Base: r.Base, Branch: r.Branch, Title: f.Redact(r.Title), Outcome: record.OutcomeDone, PRNumber: r.Number,
		PRURL: r.URL,
	}
	switch action {
	case record.ActionPullStale:
		a.Actor.System = record.SystemServe
	case record.ActionPullExpired:
		a.Actor.System = record.SystemServe
		a.Message = "nobody had acted on it since " + r.WaitsSince().UTC().Format(time.RFC3339) +
			"; it may be reopened, or proposed again without a cooldown"
	}
	if !r.Open() {
		a.Actor.Client, a.Caller = r.EndedBy, r.EndedBy
	}
	return a
}

// eventOf returns the event to notify people of; "" for none.
func eventOf(action string) record.Event {
	switch action {
	case record.ActionPullMerged:
		return record.EventMerged
	case record.ActionPullClosed, record.ActionPullExpired:
		return record.EventClosed
	case record.ActionPullStale:
		return record.EventStale
	}
	return ""
}

// maxName bounds the name of a person, in runes.
const maxName = 100

// A pull request counts as gone when its provider has not known it at goneLooks looks in a row and for goneAfter: a
// token that loses its access for a moment gets the same answer.
const (
	goneLooks = 3
	goneAfter = time.Hour
)

// nextRecord returns the record after the provider's answer, and the action to write to the audit; "" for none. A
// merged pull request stays merged. marked: we closed it in its time of waiting; if it is open, somebody has reopened
// it.
func (f *Follower) nextRecord(was record.PullRecord, status gitprovider.Status, marked bool) (now record.PullRecord,
	action string) {
	t := f.Now()
	now = was
	now.TriedAt, now.SeenAt, now.Misses = t, t, 0
	now.Head, now.Checks = status.HeadCommit, status.Checks.State
	now.Approvals, now.ChangesRequested = gitprovider.Opinions(status.Reviews)
	now.AskedAt = lastChangesRequested(status.Reviews)
	if now.ReviewedAt.IsZero() {
		now.ReviewedAt = firstReviewed(status.Reviews, t)
	}
	if was.State != gitprovider.StateMerged {
		now.State = status.State
	}
	now.ActedAt, now.LabelsDigest = lastAct(was, status, t), labelsDigest(status.Labels)
	if now.State != was.State {
		action = f.stateChange(was, &now, status)
	}
	switch {
	case marked && now.Open():
		now.ActedAt = t
	case marked && action == record.ActionPullClosed:
		now.ActedAt, now.ExpiredAt, now.EndedBy, action = was.ActedAt, now.EndedAt, "", record.ActionPullExpired
	}
	if action == "" && now.Stale(t, f.RemindAfter()) && !now.Reminded() {
		now.RemindedAt, action = t, record.ActionPullStale
	}
	changed := now
	changed.TriedAt, changed.SeenAt, changed.Misses = was.TriedAt, was.SeenAt, was.Misses
	if changed != was {
		now.UpdatedAt = t
	}
	return now, action
}

// lastAct returns when a person last acted on a pull request: commented, reviewed, took a review back, set or took a
// label, pushed, or opened it again. What a forge gives no time for counts from the look that found it.
func lastAct(was record.PullRecord, status gitprovider.Status, now time.Time) (last time.Time) {
	last = was.ActedAt
	seen := !was.SeenAt.IsZero()
	pushed := status.HeadCommit != was.Head && was.Head != "" && !was.RevisedAt.After(was.SeenAt)
	if seen && (pushed || labelsDigest(status.Labels) != was.LabelsDigest || was.State != status.State) {
		last = now
	}
	for _, r := range status.Reviews {
		at := r.SubmittedAt.UTC().Truncate(time.Microsecond)
		byPerson := !r.Program && !strings.HasSuffix(r.Author, "[bot]") && !isAnswer(r)
		if byPerson && r.State != gitprovider.ReviewPending && at.After(last) {
			last = at
		}
	}
	approvals, objections := gitprovider.Opinions(status.Reviews)
	fewer := approvals < was.Approvals || objections < was.ChangesRequested
	if seen && fewer && last.Equal(was.ActedAt) { // a review that is dismissed keeps its time
		last = now
	}
	return last
}

// isAnswer reports whether a review or comment is one of ours. Plain git shows them among those of people.
func isAnswer(r gitprovider.Review) bool {
	return gitprovider.Remark{Body: r.Body, Lines: r.Comments}.IsAnswer()
}

// labelsDigest tells sets of labels apart, whatever their order.
func labelsDigest(labels []string) string {
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(labels)), "\n")))
	return hex.EncodeToString(sum[:8])
}

// lastChangesRequested returns the time of the latest request for changes; zero if there is none.
func lastChangesRequested(reviews []gitprovider.Review) (last time.Time) {
	for _, r := range reviews {
		if r.State == gitprovider.ReviewChangesRequested && r.SubmittedAt.After(last) {
			last = r.SubmittedAt.UTC().Truncate(time.Microsecond) // as records have it
		}
	}
	return last
}

// firstReviewed returns the time of the first review that somebody has sent; now where the provider does not say when,
// and zero if there is none.
func firstReviewed(reviews []gitprovider.Review, now time.Time) (first time.Time) {
	for _, r := range reviews {
		if r.State == gitprovider.ReviewPending || isAnswer(r) {
			continue
		}
		at := r.SubmittedAt
		if at.IsZero() {
			at = now
		}
		if first.IsZero() || at.Before(first) {
			first = at.UTC().Truncate(time.Microsecond) // as records have it
		}
	}
	return first
}

// stateChange fills in what comes with a new state.
func (f *Follower) stateChange(was record.PullRecord, now *record.PullRecord,
	status gitprovider.Status) (action string) {
	if now.Open() {
		now.EndedBy, now.ClosingAt, now.ExpiredAt = "", time.Time{}, time.Time{}
		if was.State == record.StateGone {
			return record.ActionPullFound
		}
		return record.ActionPullReopened
	}
	now.EndedAt, now.EndedBy = status.ClosedAt, textscan.Clean(f.Redact(status.MergedBy), maxName)
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
