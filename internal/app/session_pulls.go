package app

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/store"
)

// Bounds of what is read of pull requests before a session.
const (
	recentPulls     = 14 * 24 * time.Hour // how long sessions read about those that have ended
	mostPulls       = 20
	mostPullsRead   = 10 // of which the provider is asked
	pullsTime       = 20 * time.Second
	pullsSideBySide = 4
	mostToAnswer    = 3        // of which files and difference are shown
	toAnswerRoom    = 32 << 10 // bytes of JSON, for each
)

// sessionPulls implements session.Pulls: pull requests as the records have them, with what their providers say now.
type sessionPulls struct {
	store *store.Store
	flow  *prflow.Service
	now   func() time.Time
}

func newSessionPulls(p *Parts) sessionPulls {
	return sessionPulls{p.Store.Store, p.Flow, time.Now}
}

// Recent implements session.Pulls.
func (s sessionPulls) Recent(ctx context.Context, tier gitprovider.Tier) ([]session.Pull, error) {
	records, err := s.store.Pulls.RecentPulls(ctx, s.now().Add(-recentPulls), mostPulls)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, pullsTime)
	defer cancel()
	pulls := make([]session.Pull, len(records))
	var reads sync.WaitGroup
	turns := make(chan struct{}, pullsSideBySide)
	var toAnswer atomic.Int32
	for i, r := range records {
		pulls[i].PullRecord = r
		if i >= mostPullsRead {
			pulls[i].Unread = "too many pull requests to read them all"
			continue
		}
		reads.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			s.read(ctx, &pulls[i], tier, &toAnswer)
		})
	}
	reads.Wait()
	return pulls, nil
}

// read adds what the provider says now, and of one whose review waits for an answer what is needed to answer it.
func (s sessionPulls) read(ctx context.Context, p *session.Pull, tier gitprovider.Tier, toAnswer *atomic.Int32) {
	status, err := s.flow.Reader().StatusAt(ctx, p.Provider, p.Owner, p.Repo, p.Number)
	if err != nil {
		p.Unread = fault.From(err).Message
		return
	}
	if p.State = status.State; !status.ClosedAt.IsZero() {
		p.EndedAt = status.ClosedAt
	}
	p.Title, p.URL, p.Checks, p.Reviews = status.Title, status.URL, status.Checks.State, status.Reviews
	asks := len(status.Reviews) > 0 || status.Checks.State == gitprovider.ChecksFailure
	if !asks || toAnswer.Load() >= mostToAnswer {
		return
	}
	asked, err := s.flow.ToAnswer(ctx, tier, p.PullKey, status, toAnswerRoom)
	if err != nil || asked == nil || toAnswer.Add(1) > mostToAnswer {
		return // the agent can still ask for it; the log has the error
	}
	if text, err := json.Marshal(asked); err == nil {
		p.ToAnswer = text
	}
}

// OfSessions implements session.Pulls.
func (s sessionPulls) OfSessions(ctx context.Context, ids []string) (map[record.PullKey]time.Time, error) {
	out := map[record.PullKey]time.Time{}
	for _, id := range ids {
		attempts, err := s.store.History.Attempts(ctx, record.AttemptQuery{Session: id, Limit: record.MaxAttemptLimit})
		if err != nil {
			return nil, err
		}
		for _, a := range attempts {
			if key := a.PullKey(); a.PRNumber > 0 && a.Time.After(out[key]) {
				out[key] = a.Time
			}
		}
	}
	return out, nil
}
