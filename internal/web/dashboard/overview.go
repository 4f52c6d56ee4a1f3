package dashboard

import (
	"context"
	"net/url"
	"time"

	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/records"
	"github.com/claudeops/claudeops/internal/web/words"
)

// overview is the first page.
type overview struct {
	*renderer
	records  records.Records
	sessions *sessionPages
	toolsets Toolsets
}

// What the overview looks back on.
const (
	chartDays    = 14
	refusalDays  = 7
	dryRunDays   = 30
	firstRows    = 9
	maxOpenPulls = 100
	lastActs     = 6
	maxBars      = 5
)

// overviewParams chooses what of that which waits is shown.
type overviewParams struct {
	Show string `json:"show,omitempty" enum:"all,broken,merge,review,dry"`
}

// overviewPage is the content of the first page.
type overviewPage struct {
	pages.Page
	Numbers  numbers
	Groups   []waitGroup
	Waiting  []waitItem
	More     int64  // that wait beside those that are shown
	Rest     string // the address that shows them, below "/"
	Running  []sessionRow
	Activity []attempt
	Refusals []bar
	Costs    spending
	Chart    chart
	Days     int
}

// numbers are the figures at the top.
type numbers struct {
	Waiting, Merge, Broken int64
	Oldest                 time.Time // since when the oldest waits; zero for none
	Refused                int64     // in 24 hours
	Mostly                 string    // why most were
	Since                  string
	Verified               time.Time // when the records were verified; zero: not yet
	Minded                 int       // parts of the server that are not as they should be, and work
}

func (h *overview) show(req *handler.Request, q overviewParams) (handler.Response, error) {
	view := overviewPage{Page: h.frame(req, "Overview", "/"), Days: chartDays}
	most := firstRows
	if q.Show != "" {
		most = maxOpenPulls
	}
	w, err := h.waits(req, most)
	if err != nil {
		return handler.Response{}, err
	}
	view.Groups = w.groups(q.Show)
	view.Waiting, view.More = w.shown(q.Show)
	if view.Rest = "?show=all"; q.Show != "" {
		view.Rest = "changes?tab=" + string(record.TabWaiting)
	}
	view.Numbers = numbers{
		Waiting: w.all(), Merge: w.counts[waitsMerge], Broken: w.counts[waitsBroken],
		Verified: h.health.LastVerification().At, Minded: len(h.health.Now(req.Context()).Of(doctor.Warning)),
	}
	for _, i := range w.items {
		if !i.At.IsZero() && (view.Numbers.Oldest.IsZero() || i.At.Before(view.Numbers.Oldest)) {
			view.Numbers.Oldest = i.At
		}
	}
	if err := h.lookBack(req, &view); err != nil {
		return handler.Response{}, err
	}
	return h.html("overview", view)
}

// lookBack fills in what has happened.
func (h *overview) lookBack(req *handler.Request, view *overviewPage) (err error) {
	ctx := req.Context()
	rows, err := h.records.Audit.Page(ctx, record.AuditQuery{Limit: lastActs})
	if err != nil {
		return err
	}
	if view.Activity, err = attemptsOf(ctx, h.records.Pulls, h.records.Sessions, rows); err != nil {
		return err
	}
	if err := h.refusals(ctx, view); err != nil {
		return err
	}
	if view.Running, err = h.sessions.running(req); err != nil {
		return err
	}
	if view.Costs, err = costs(ctx, h.sessions.records, h.env.Now()); err != nil {
		return err
	}
	view.Chart, err = h.chart(ctx)
	return err
}

// refusals fills in what was refused, and why.
func (h *overview) refusals(ctx context.Context, view *overviewPage) error {
	now := h.env.Now().UTC()
	day, err := h.records.Summary.RefusalsByCode(ctx, now.AddDate(0, 0, -1))
	if err != nil {
		return err
	}
	for i, c := range day {
		view.Numbers.Refused += int64(c.Count)
		if i == 0 {
			view.Numbers.Mostly = words.Count(c.Count) + " of them: " + lowered(record.CodeText(c.Code))
		}
	}
	view.Numbers.Since = now.AddDate(0, 0, -1).Format(time.DateOnly)
	since := now.AddDate(0, 0, -refusalDays)
	counts, err := h.records.Summary.RefusalsByCode(ctx, since)
	for _, c := range counts[:min(len(counts), maxBars)] {
		q := url.Values{"code": {string(c.Code)}, "tab": {"refused"}, "since": {since.Format(time.DateOnly)}}
		view.Refusals = append(view.Refusals, bar{
			Label: record.CodeText(c.Code), Value: words.Count(c.Count), Link: changesPath + "?" + q.Encode(),
			Width: 100 * c.Count / counts[0].Count,
		})
	}
	return err
}

// needs returns what waits for a person, the most urgent first.
func (h *overview) needs(req *handler.Request) (out []waitItem, err error) {
	for _, f := range h.health.Now(req.Context()).Of(doctor.Problem) {
		out = append(out, partWait(part{f}))
	}
	unfinished, err := h.records.Summary.Unfinished(req.Context())
	if err != nil {
		return nil, err
	}
	for _, p := range unfinished {
		if p.Abandoned || p.State == record.StateUnsettled {
			out = append(out, proposalWait(p, words.Proposal(p.State, p.Abandoned), "Did not finish:",
				" its process ended or gave up; the next proposal settles it"))
		}
	}
	deployments, err := h.toolsets.need()
	if err != nil {
		return nil, err
	}
	out = append(out, deployments...)
	sessions, err := h.sessions.needs(req)
	if err != nil {
		return nil, err
	}
	out = append(out, sessions...)
	return out, nil
}
