package notify

import (
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
)

const (
	// maxAge is the maximum age of a notice that is tried again after a failed attempt.
	maxAge = 24 * time.Hour
	// maxPartial limits the attempts at a target that reached some of its recipients: each attempt notifies those again.
	maxPartial = 3
	// jitter is the fraction by which a wait may be shorter or longer than scheduled, so that attempts that failed
	// together are not repeated together.
	jitter = 0.2
	// spacing is the time between the notices of a target that were put off because another one of it had failed. It is
	// shorter than any wait after a failure, so that the one that failed does not stand before them again: perhaps it
	// is the only one that the target does not take.
	spacing = 5 * time.Second
)

// backoff returns the wait after an attempt that failed at this age of the notice. A notice that is tried from the
// beginning waits 10 s, 1 min, 5 min, 30 min, and then 2 h each time. It goes by age, since not each claim of a notice
// is an attempt.
func backoff(age time.Duration) time.Duration {
	switch {
	case age < 5*time.Second:
		return 10 * time.Second
	case age < 40*time.Second:
		return time.Minute
	case age < 4*time.Minute:
		return 5 * time.Minute
	case age < 25*time.Minute:
		return 30 * time.Minute
	default:
		return 2 * time.Hour
	}
}

// partialBackoff returns the wait after an attempt that told some of those behind a target: the few that are left must
// outlast more than a moment.
func partialBackoff(attempts int) time.Duration {
	if attempts == 0 {
		return 5 * time.Minute
	}
	return 2 * time.Hour
}

// settlement returns the settlement of a notice after an attempt, successful if f is nil. random, in [0,1), chooses
// within the jitter. The last attempt is maxAge after the notice was made, however long a target asked to wait; an
// older notice, which no process was there to send, gets one.
func settlement(n record.PendingNotice, f *failure, now time.Time, random float64) record.NoticeSettlement {
	if f == nil {
		return record.NoticeSettlement{Delivered: true}
	}
	s := record.NoticeSettlement{Error: f.Text}
	last := n.CreatedAt.Add(maxAge)
	if f.Permanent || f.Partial && n.Attempts+1 >= maxPartial || !now.Before(last) {
		s.GiveUp = true
		return s
	}
	wait := backoff(now.Sub(n.CreatedAt))
	if f.Partial {
		wait = partialBackoff(n.Attempts)
	}
	wait = time.Duration(float64(wait) * (1 - jitter + 2*jitter*random))
	s.RetryAt = now.Add(max(wait, f.wait()))
	if s.RetryAt.After(last) {
		s.RetryAt = last
	}
	return s
}
