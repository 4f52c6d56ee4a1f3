package web

import (
	"context"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/record"
	"github.com/claudeops/claudeops/internal/web/pages"
)

// PullSeen is what was last seen of a pull request at its provider. It is for people: GET /prs/{number} asks the provider.
type PullSeen struct {
	State            string     `json:"state" enum:"open,closed,merged,gone" doc:"gone: the provider does not know it any more"`
	AsOf             *time.Time `json:"as_of,omitempty" doc:"When the provider said so; absent if it was not asked since the pull request was opened"`
	SeenBy           string     `json:"seen_by,omitempty" doc:"webhook, poll, or the door of the person who ended it"`
	Head             string     `json:"head,omitempty" doc:"Head commit"`
	Approvals        int        `json:"approvals" doc:"People whose last word is an approval"`
	ChangesRequested int        `json:"changes_requested" doc:"People whose last word is a request for changes"`
	Checks           string     `json:"checks,omitempty" doc:"Combined state of CI; absent if not known"`
	EndedAt          *time.Time `json:"ended_at,omitempty" doc:"When it was merged or closed"`
	EndedBy          string     `json:"ended_by,omitempty" doc:"Who did, as far as the provider says"`
}

func (s *Server) pullSeen(r record.PullRecord) *PullSeen {
	out := &PullSeen{
		State: string(r.State), AsOf: moment(r.SeenAt), SeenBy: string(r.SeenBy), Head: r.Head, Approvals: r.Approvals,
		ChangesRequested: r.ChangesRequested, Checks: string(r.Checks),
	}
	if !r.Open() {
		out.EndedAt, out.EndedBy = moment(r.EndedAt), line(s.Redact(r.EndedBy))
	}
	return out
}

// moment is a time that may be absent.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// pullsSeen is what was last seen of the pull requests that attempts are about, those that are ours.
func (s *Server) pullsSeen(ctx context.Context, rows []record.RecordedAttempt) (map[record.PullKey]record.PullRecord, error) {
	var keys []record.PullKey
	for _, r := range rows {
		if key := pullKey(r); r.PRNumber > 0 && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	return s.Pulls.PullRecords(ctx, keys)
}

// addPulls tells what was last seen of the pull requests that attempts are about. entry gives the entry of a row.
func (s *Server) addPulls(ctx context.Context, rows []record.RecordedAttempt, entry func(i int) *ProposalEntry) error {
	seen, err := s.pullsSeen(ctx, rows)
	if err != nil {
		return err
	}
	for i, r := range rows {
		if record, found := seen[pullKey(r)]; found {
			entry(i).Pull = s.pullSeen(record)
		}
	}
	return nil
}

func pullKey(r record.RecordedAttempt) record.PullKey {
	return record.PullKey{Provider: r.Provider, Owner: r.Owner, Repo: r.Repo, Number: r.PRNumber}
}

// seenView is what was last seen of the pull request that a proposal became; nil if there is none.
func (s *Server) seenView(ctx context.Context, p record.Proposal) (*pages.PullSeen, error) {
	if p.PRNumber < 1 {
		return nil, nil
	}
	key := record.PullKey{Provider: p.Provider, Owner: p.Owner, Repo: p.Repo, Number: p.PRNumber}
	found, err := s.Pulls.PullRecords(ctx, []record.PullKey{key})
	r, ours := found[key]
	if err != nil || !ours {
		return nil, err
	}
	view := &pages.PullSeen{
		State: string(r.State), AsOf: pages.WhenOf(r.SeenAt, s.Now()), SeenBy: seenBy(r.SeenBy), Approvals: r.Approvals,
		Objections: r.ChangesRequested, Checks: s.words(string(r.Checks)),
	}
	if !r.Open() {
		view.Ended, view.EndedBy = pages.WhenOf(r.EndedAt, s.Now()), s.words(r.EndedBy)
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
