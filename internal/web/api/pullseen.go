package api

import (
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/handler"
)

// PullSeen is the last known state of a pull request at its provider. It is for people: GET /prs/{number} asks the
// provider.
type PullSeen struct {
	State            string     `json:"state" enum:"open,closed,merged,gone" doc:"gone: the provider does not know it any more"`
	AsOf             *time.Time `json:"as_of,omitempty" doc:"When the provider said so; absent if it was not asked since the pull request was opened"`
	SeenBy           string     `json:"seen_by,omitempty" doc:"webhook, poll, or the way in of the person who ended it: cli, rest or web"`
	Head             string     `json:"head,omitempty" doc:"Head commit"`
	Approvals        int        `json:"approvals" doc:"People whose last word is an approval"`
	ChangesRequested int        `json:"changes_requested" doc:"People whose last word is a request for changes"`
	Checks           string     `json:"checks,omitempty" doc:"Combined state of CI; absent if not known"`
	EndedAt          *time.Time `json:"ended_at,omitempty" doc:"When it was merged or closed"`
	EndedBy          string     `json:"ended_by,omitempty" doc:"Who did, as far as the provider says"`
}

func (h *proposals) pullSeen(r record.PullRecord) *PullSeen {
	out := &PullSeen{
		State: string(r.State), AsOf: moment(r.SeenAt), SeenBy: string(r.SeenBy), Head: r.Head, Approvals: r.Approvals,
		ChangesRequested: r.ChangesRequested, Checks: string(r.Checks),
	}
	if !r.Open() {
		out.EndedAt, out.EndedBy = moment(r.EndedAt), handler.CleanLine(h.env.Redact(r.EndedBy))
	}
	return out
}

// moment returns a time that may be absent.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
