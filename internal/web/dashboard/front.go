package dashboard

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

// Front is what the overview says first, for the command line.
type Front struct {
	Mode    string       `json:"mode"` // whether changes are opened, and up to which tier
	Waiting FrontWaiting `json:"waiting"`
	Broken  []FrontItem  `json:"broken"`
	Running []FrontItem  `json:"running"` // sessions
}

// FrontWaiting counts what waits for a person.
type FrontWaiting struct {
	All     int64       `json:"all"`
	Broken  int64       `json:"broken"`
	Merge   int64       `json:"merge"`
	Review  int64       `json:"review"`
	DryRuns int64       `json:"dry_runs"`
	Oldest  time.Time   `json:"oldest,omitzero"`
	First   []FrontItem `json:"first"` // the most urgent, as the overview lists them
}

// FrontItem is one thing that waits, is broken or runs. Titles and repositories are untrusted.
type FrontItem struct {
	Title  string    `json:"title"`
	Why    string    `json:"why,omitempty"`
	Repo   string    `json:"repo,omitempty"`
	Number int       `json:"number,omitempty"`
	Path   string    `json:"path,omitempty"` // of its page
	Since  time.Time `json:"since,omitzero"`
}

// maxRunningListed bounds the sessions that run, of which more are rare.
const maxRunningListed = 100

// Front reads what the overview shows, by the functions that it has.
func (d *Dashboard) Front(ctx context.Context) (Front, error) {
	h := d.overview
	out := Front{Mode: h.standing(ctx).Mode, Broken: []FrontItem{}, Running: []FrontItem{}}
	counts, err := h.records.Summary.FrameCounts(ctx)
	if err != nil {
		return out, err
	}
	w, err := h.waits(ctx, counts, firstRows)
	if err != nil {
		return out, err
	}
	out.Waiting = FrontWaiting{All: w.all(), Broken: w.counts[waitsBroken], Merge: w.counts[waitsMerge],
		Review: w.counts[waitsReview], DryRuns: w.counts[waitsDryRun], Oldest: w.oldest(), First: []FrontItem{}}
	rows, _ := w.groupRows("")
	for _, i := range rows {
		out.Waiting.First = append(out.Waiting.First,
			FrontItem{i.Title, i.Why + i.More, i.Repository, i.Number, i.Link, i.At})
	}
	for _, f := range h.health.Now(ctx).Of(doctor.Problem) {
		p := healthPart{f}
		out.Broken = append(out.Broken,
			FrontItem{Title: p.Title(), Why: p.Detail() + " " + p.Remedy(), Since: p.Moment()})
	}
	running, err := h.records.Sessions.Sessions(ctx,
		sessions.Query{State: sessions.StateRunning, Limit: maxRunningListed})
	for _, r := range running {
		out.Running = append(out.Running, FrontItem{Title: "A session of tier " + r.Tier.String(), Why: r.ID,
			Path: sessionPath(r.ID), Since: r.StartedAt})
	}
	return out, err
}
