package prflow

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Settled reports on a proposal that a process had left unfinished.
type Settled struct {
	RequestID string `json:"request_id"`
	Repo      string `json:"repo"` // provider:owner/name
	Branch    string `json:"branch"`
	// Live says that another process still works on it; it was left alone.
	Live bool `json:"live"`
	// Late is the time until which writes of its process may still arrive (RFC 3339, UTC): it was left alone, unless its
	// pull request was there. "" if that time is past, or the pull request was there.
	Late  string `json:"late_until,omitempty"`
	Error string `json:"error,omitempty"` // why it could not be settled now
	// Number is the number of the pull request that it became or was added to; 0 for none.
	Number int            `json:"number,omitempty"`
	Key    record.PullKey `json:"-"`
}

// Resume settles every proposal that a process which ended has left, or whose provider gave no clear answer: an open
// pull request is recorded, a branch without one is removed if it still is ours, once nothing can arrive any more that
// was sent for it. It goes on after a failure, which the entry reports.
func (s *Service) Resume(ctx context.Context) ([]Settled, error) {
	settler := s.settler()
	left, err := s.History.Unfinished(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Settled, 0, len(left))
	for _, p := range left {
		entry := Settled{RequestID: p.ID, Repo: p.Provider + ":" + p.Owner + "/" + p.Repo, Branch: p.Branch}
		if entry.Live = !settler.abandoned(p); !entry.Live {
			var late *lateError
			if err := settler.settle(ctx, p); errors.As(err, &late) {
				entry.Late = timestamp(late.until)
			} else if err != nil {
				entry.Error = settler.log.shown(err)
				settler.log.error("proposal not settled", err, "request_id", p.ID)
			} else if now, err := s.History.Proposal(ctx, p.ID); err == nil && now.State == record.StateOpened {
				entry.Key = record.PullKey{Provider: now.Provider, Owner: now.Owner, Repo: now.Repo, Number: now.PRNumber}
				entry.Number = now.PRNumber
			}
		}
		out = append(out, entry)
	}
	return out, nil
}

// settleBudget bounds how long a proposal waits for what others have left in its repository.
const settleBudget = 5 * time.Second

// settleIn settles what processes that ended have left in a repository, whatever its files, and begins no more after
// settleBudget. found reports whether there was any. What could not be settled keeps its files reserved; a caller that
// proposes them settles it then, and so does a round of a server.
func (s *settler) settleIn(ctx context.Context, provider string, repo gitprovider.RepoRef) (found bool) {
	unfinished, err := s.history.Unfinished(ctx)
	if err != nil {
		s.log.warn("unfinished proposals not looked for", err)
	}
	began := s.clock.Now()
	for _, p := range unfinished {
		here := p.Provider == provider && strings.EqualFold(p.Owner+"/"+p.Repo, repo.String())
		if !here || !s.abandoned(p) {
			continue
		}
		if s.clock.Now().Sub(began) > settleBudget || ctx.Err() != nil {
			break
		}
		found = true
		var late *lateError // what was sent may still arrive: not known yet, and nothing to warn of
		if err := s.settle(ctx, p); err != nil && !errors.As(err, &late) {
			s.log.warn("proposal not settled", err, "request_id", p.ID)
		}
	}
	return found
}

// resumeOnce settles what was left in the repository of the creation before the first one there of this process reads
// it. A failure does not make the creation fail.
func (c *creation) resumeOnce(ctx context.Context) {
	if !c.service.CurrentAuthority().mayWrite() {
		return
	}
	provider, repo := c.evidence.resolution.Provider.Name(), c.request.repo
	if _, before := c.service.resumed.LoadOrStore(provider+":"+strings.ToLower(repo.String()), true); !before {
		c.evidence.settler.settleIn(ctx, provider, repo)
	}
}
