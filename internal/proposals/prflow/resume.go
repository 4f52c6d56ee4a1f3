package prflow

import (
	"context"
	"errors"

	"github.com/claudeops/claudeops/internal/records/record"
)

// Settled is a proposal that a process had left unfinished, and what became of it.
type Settled struct {
	RequestID string `json:"request_id"`
	Repo      string `json:"repo"` // provider:owner/name
	Branch    string `json:"branch"`
	// Live says that another process still works on it; it was left alone.
	Live bool `json:"live"`
	// Late is until when what its process had sent may still arrive (RFC 3339, UTC): it was left alone, unless its pull
	// request was there. "" if that is past, or was.
	Late  string `json:"late_until,omitempty"`
	Error string `json:"error,omitempty"` // why it could not be settled now
	// Number is that of the pull request that it became or was added to; 0 for none.
	Number int            `json:"number,omitempty"`
	Key    record.PullKey `json:"-"`
}

// Resume settles every proposal that a process which ended has left, or whose provider gave no clear answer: an open
// pull request is recorded, a branch without one is removed if it still is ours, once nothing can arrive any more that
// was sent for it. It goes on after a failure, which is told in the entry.
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

// resumeOnce settles what was left before the first creation of this process. A failure is no reason to refuse: the
// files of what could not be settled stay reserved, and whoever proposes them settles it then.
func (s *Service) resumeOnce(ctx context.Context) {
	if !s.CurrentAuthority().mayWrite() || !s.resumed.CompareAndSwap(false, true) {
		return
	}
	if _, err := s.Resume(ctx); err != nil {
		s.log().warn("unfinished proposals not looked for", err)
	}
}
