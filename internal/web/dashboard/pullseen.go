package dashboard

import (
	"context"

	"github.com/claudeops/claudeops/internal/record"
	"github.com/claudeops/claudeops/internal/web/pages"
)

// seenView is what was last seen of the pull request that a proposal became; nil if there is none.
func (h *proposalPages) seenView(ctx context.Context, p record.Proposal) (*pages.PullSeen, error) {
	if p.PRNumber < 1 {
		return nil, nil
	}
	key := p.PullKey()
	found, err := h.pulls.PullRecords(ctx, []record.PullKey{key})
	r, ours := found[key]
	if err != nil || !ours {
		return nil, err
	}
	view := &pages.PullSeen{
		State: string(r.State), AsOf: pages.WhenOf(r.SeenAt, h.env.Now()), SeenBy: seenBy(r.SeenBy), Approvals: r.Approvals,
		Objections: r.ChangesRequested, Checks: h.env.Line(string(r.Checks)),
	}
	if !r.Open() {
		view.Ended, view.EndedBy = pages.WhenOf(r.EndedAt, h.env.Now()), h.env.Line(r.EndedBy)
	}
	return view, nil
}

// seenBy says what made us look.
func seenBy(door record.Door) string {
	switch door {
	case record.DoorWebhook:
		return "after a webhook"
	case record.DoorPoll:
		return "by the poll"
	}
	return "when a person ended it here"
}
