package dashboard

import (
	"context"
	"html/template"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/views"
)

// overview is the first page.
type overview struct {
	*renderer
	records  views.Records
	sessions *sessionPages
	toolsets Toolsets
	policy   func() (policy.Policy, error)
}

// What the overview looks back on.
const (
	chartDays    = 14
	refusalDays  = 7
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
	Figures  []figure
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

// figure is a number at the top, with a note below it: two texts and, between them, how long ago something was.
type figure struct {
	Link, Label, Value string        // Link is below "/"
	Tone, Icon         string        // "" for none
	Line               template.HTML // drawn beside the number; "" for none
	Before, After      string
	At                 time.Time // zero for none
	Since              bool      // "4 min ago" rather than "4 min"
}

// Key implements pages.Part: it is the whole.
func (f figure) Key() any { return f }

// Moment implements pages.Part.
func (f figure) Moment() time.Time { return f.At }

func (h *overview) showOverview(req *httpx.Request, q overviewParams) (httpx.Response, error) {
	req = req.WithShortReads()
	view := overviewPage{Page: h.frame(req, "Overview", "/"), Days: chartDays}
	most := firstRows
	if q.Show != "" {
		most = maxOpenPulls
	}
	w, err := h.waits(req.Context(), view.Counts, most)
	if err != nil {
		return httpx.Response{}, err
	}
	w.showTo(req.Principal.Scopes.Has(access.Review))
	view.Groups = w.groups(q.Show)
	view.Waiting, view.More = w.groupRows(q.Show)
	if view.Rest = "?show=all"; q.Show != "" {
		view.Rest = "changes?tab=" + string(record.TabWaiting)
	}
	refused, err := h.refusals(req.Context(), &view)
	if err != nil {
		return httpx.Response{}, err
	}
	if err := h.lookBack(req, &view); err != nil {
		return httpx.Response{}, err
	}
	view.Figures = []figure{w.figure(view.WaitsFor()), w.brokenFigure(), refused,
		{Link: "sessions", Label: "Cost, 7 days", Value: view.Costs.Figure(), Line: view.Costs.Line(),
			Before: view.Costs.Note()},
		healthFigure(view.Standing, h.health.LastVerification().At, len(h.health.Now(req.Context()).Of(doctor.Warning)))}
	return h.html("overview", view)
}

// lookBack fills in what has happened.
func (h *overview) lookBack(req *httpx.Request, view *overviewPage) (err error) {
	ctx := req.Context()
	rows, err := h.records.Audit.Page(ctx, record.AuditQuery{Limit: lastActs})
	if err != nil {
		return err
	}
	if view.Activity, err = attemptsOf(ctx, h.records.Pulls, h.records.Sessions, rows); err != nil {
		return err
	}
	if view.Counts.Running > 0 || view.Counts.Tabs == nil {
		if view.Running, err = h.sessions.running(req); err != nil {
			return err
		}
	}
	if view.Costs, err = costs(ctx, h.sessions.records, h.env.Now()); err != nil {
		return err
	}
	view.Chart, err = h.chart(ctx)
	return err
}

// refusals fills in why changes were refused, and returns how many were in 24 hours.
func (h *overview) refusals(ctx context.Context, view *overviewPage) (figure, error) {
	now := h.env.Now().UTC()
	day, err := h.records.Summary.RefusalsByCode(ctx, now.AddDate(0, 0, -1))
	if err != nil {
		return figure{}, err
	}
	all := 0
	for _, c := range day {
		all += c.Count
	}
	out := figure{Link: "changes?tab=refused&since=" + now.AddDate(0, 0, -1).Format(time.DateOnly),
		Label: "Refused, 24 hours", Value: views.Count(all), Before: "none"}
	if len(day) > 0 {
		out.Before = views.Count(day[0].Count) + " of them: " + views.Lowered(record.CodeText(day[0].Code))
	}
	since := now.AddDate(0, 0, -refusalDays)
	counts, err := h.records.Summary.RefusalsByCode(ctx, since)
	for _, c := range counts[:min(len(counts), maxBars)] {
		q := url.Values{"code": {string(c.Code)}, "tab": {"refused"}, "since": {since.Format(time.DateOnly)}}
		view.Refusals = append(view.Refusals, bar{
			Label: record.CodeText(c.Code), Value: views.Count(c.Count), Link: changesPath + "?" + q.Encode(),
			Width: barWidth(float64(c.Count), float64(counts[0].Count)),
		})
	}
	return out, err
}

// figure says how many items wait, and for whom.
func (w waiting) figure(whom string) figure {
	out := figure{Link: "?show=all", Label: "Waiting for " + whom, Value: views.Count(w.all()), At: w.oldest()}
	if merge := w.counts[waitsMerge]; merge > 0 {
		out.Before = views.Count(merge) + " to merge"
	}
	switch {
	case out.At.IsZero():
		if w.all() == 0 {
			out.Before = "all is done"
		}
	case out.Before == "":
		out.Before = "oldest "
	default:
		out.Before += ", oldest "
	}
	return out
}

// brokenFigure says how many items are broken.
func (w waiting) brokenFigure() figure {
	out := figure{Link: "?show=broken", Label: "Broken now", Value: views.Count(w.counts[waitsBroken]), Before: "nothing"}
	if w.counts[waitsBroken] > 0 {
		out.Tone, out.Before = string(views.Bad), "first in the list"
	}
	return out
}

// healthFigure says how the server is, when its records were verified, and how many of its parts work and are not as
// they should be.
func healthFigure(s pages.ServerStatus, verified time.Time, minded int) figure {
	out := figure{Link: strings.TrimPrefix(healthPath, "/"), Label: "Server health", Tone: s.Tone, Before: s.Health}
	switch s.Tone {
	case string(views.Bad):
		out.Icon, out.Value = "circle-x", "Look"
	case "":
		out.Icon, out.Value = "circle-dashed", "Not yet"
	default:
		out.Icon, out.Value = "circle-check", "Good"
	}
	switch {
	case s.Tone != string(views.Good):
	case verified.IsZero():
		out.Before = "Records are being verified"
	default:
		out.Before, out.At, out.Since = "Records whole, ", verified, true
	}
	if minded > 0 {
		out.After = ", " + views.Count(minded) + " to mind"
	}
	return out
}

// needs returns what waits for a person, the most urgent first.
func (h *overview) needs(ctx context.Context) (out []waitItem, err error) {
	for _, f := range h.health.Now(ctx).Of(doctor.Problem) {
		out = append(out, partWait(healthPart{f}))
	}
	unfinished, err := h.records.Summary.Unfinished(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range unfinished {
		if p.Abandoned || p.State == record.StateUnsettled {
			out = append(out, proposalWait(p, views.Proposal(p.State, p.Abandoned), "Did not finish:",
				" its process ended or gave up; the next proposal settles it"))
		}
	}
	deployments, err := h.toolsets.need()
	if err != nil {
		return nil, err
	}
	out = append(out, deployments...)
	sessions, err := h.sessions.needs(ctx)
	if err != nil {
		return nil, err
	}
	out = append(out, sessions...)
	return out, nil
}

// Groups of what waits for a person, the worst first.
const (
	waitsBroken = "broken"
	waitsMerge  = "merge"
	waitsReview = "review"
	waitsDryRun = "dry"
)

// waitItem is something that waits for a person: what it is, why, and the one thing that moves it.
type waitItem struct {
	Group      string
	Word       views.Word
	Title      string // untrusted
	Why        string // in short
	More       string // the rest of why; untrusted
	Link       string // without the base
	Act        string // what the link is called
	At         time.Time
	Repository string // untrusted
	Number     int    // of a pull request; 0 for none
	Tags       string // see record.PullRecord
}

// Key implements pages.Part: it is the whole.
func (w waitItem) Key() any { return w }

// Moment implements pages.Part.
func (w waitItem) Moment() time.Time { return w.At }

// waitGroup is a link to what waits of a kind.
type waitGroup struct {
	Name, Text string
	Count      int64
	Shown      bool
}

// Key implements pages.Part: it is the whole.
func (g waitGroup) Key() any { return g }

// Moment returns no time.
func (waitGroup) Moment() time.Time { return time.Time{} }

// waiting lists what waits for a person.
type waiting struct {
	items  []waitItem
	counts map[string]int64 // by group, of those that were not read, too

	oldestDryRun time.Time // zero for none
}

// all returns the number of items that wait.
func (w waiting) all() (n int64) {
	for _, count := range w.counts {
		n += count
	}
	return n
}

// oldest returns since when the oldest item waits; zero for none.
func (w waiting) oldest() time.Time {
	at := w.oldestDryRun
	for _, i := range w.items {
		if !i.At.IsZero() && (at.IsZero() || i.At.Before(at)) {
			at = i.At
		}
	}
	return at
}

// showTo names the acts for people who may review or, for those who may not, that they may look.
func (w waiting) showTo(reviews bool) {
	if reviews {
		return
	}
	for i := range w.items {
		w.items[i].Act = "Open"
	}
}

// groups returns the links to what waits, with the one that is shown.
func (w waiting) groups(shown string) []waitGroup {
	out := []waitGroup{{"", "All", w.all(), shown == "" || shown == "all"}}
	for _, g := range []waitGroup{{Name: waitsBroken, Text: "Broken"}, {Name: waitsMerge, Text: "Merge"},
		{Name: waitsReview, Text: "Review"}, {Name: waitsDryRun, Text: "Dry runs"}} {
		g.Count, g.Shown = w.counts[g.Name], shown == g.Name
		out = append(out, g)
	}
	return out
}

// groupRows returns the rows of a group, and how many there are beside them.
func (w waiting) groupRows(group string) (rows []waitItem, more int64) {
	most, of := len(w.items), w.counts[group]
	switch group {
	case "":
		most, of = firstRows, w.all()
	case "all":
		group, of = "", w.all()
	}
	for _, i := range w.items {
		if (group == "" || i.Group == group) && len(rows) < most {
			rows = append(rows, i)
		}
	}
	return rows, of - int64(len(rows))
}

// waits returns what waits for a person, the worst first, and within a kind the oldest first; of pull requests at most
// most for each standing.
func (h *overview) waits(ctx context.Context, counts record.FrameCounts, most int) (waiting, error) {
	needs, err := h.needs(ctx)
	if err != nil {
		return waiting{}, err
	}
	totals := counts.Pulls
	if totals == nil {
		if totals, err = h.records.Pulls.PullTotals(ctx, false); err != nil {
			return waiting{}, err
		}
	}
	standings := slices.DeleteFunc(record.WaitingStandings(), func(s record.NextActor) bool { return totals[s] == 0 })
	open, err := h.records.Pulls.StandingPulls(ctx, standings, most)
	if err != nil {
		return waiting{}, err
	}
	w := waiting{items: needs}
	for _, p := range open {
		if item, waits := waitOf(p); waits {
			if p.Reminded() {
				item.Why += ", and nobody has acted on it for " + views.Age(h.env.Now().Sub(p.WaitsSince())) +
					closesText(p, h.policy)
			}
			w.items = append(w.items, item)
		}
	}
	w.counts = map[string]int64{
		waitsBroken: int64(len(needs)) + totals[record.StandingFailed], waitsMerge: totals[record.StandingReady],
		waitsReview: totals[record.StandingReview] + totals[record.StandingRunning],
		waitsDryRun: counts.Tabs[record.TabWaiting] - totals.Waiting(),
	}
	if err := h.dryRuns(ctx, &w, most); err != nil {
		return waiting{}, err
	}
	order := []string{waitsBroken, waitsMerge, waitsReview, waitsDryRun}
	slices.SortStableFunc(w.items, func(a, b waitItem) int {
		return slices.Index(order, a.Group) - slices.Index(order,
			b.Group)
	})
	return w, nil
}

// dryRuns adds the dry runs that wait. They come last: where the first rows alone are shown, and others fill them, only
// the time of the oldest is read.
func (h *overview) dryRuns(ctx context.Context, w *waiting, most int) (err error) {
	since := record.DryRunsWaitSince(h.env.Now())
	if w.oldestDryRun, err = h.records.Summary.OldestDryRun(ctx, since); err != nil || w.oldestDryRun.IsZero() ||
		most == firstRows && len(w.items) >= firstRows {
		return err
	}
	dry, err := h.records.Summary.WaitingDryRuns(ctx, since)
	slices.Reverse(dry)
	for _, p := range dry {
		item := proposalWait(p, views.Outcome(record.OutcomeDryRun), "Nothing was written.",
			" Opening it runs all checks again")
		item.Group, item.Act = waitsDryRun, "Open it"
		w.items = append(w.items, item)
	}
	return err
}

// closesText says when a pull request will be closed unless somebody acts; "" for never.
func closesText(p record.PullRecord, effective func() (policy.Policy, error)) string {
	at := closesAt(p, effective)
	if at.IsZero() {
		return ""
	}
	return "; it will be closed on " + at.UTC().Format(time.DateOnly) + ", unless somebody acts"
}

// closesAt returns when a pull request will be closed unless somebody acts; zero for never, and where the policy cannot
// be read.
func closesAt(p record.PullRecord, effective func() (policy.Policy, error)) time.Time {
	rules, err := effective()
	if err != nil {
		return time.Time{}
	}
	return p.ClosesAt(rules.RemindAfter, rules.CloseAfter)
}

// waitOf returns a person's task for an open pull request; false if it is with the agent.
func waitOf(p record.PullRecord) (waitItem, bool) {
	link := pullLinkOf(p.PullKey, "", "")
	if link == nil {
		return waitItem{}, false
	}
	item := waitItem{
		Word: views.Pull(p), Title: p.Title, Link: link.Page, At: p.OpenedAt, Repository: p.Owner + "/" + p.Repo,
		Number: p.Number, Tags: p.Tags,
	}
	switch p.NextActor() {
	case record.StandingFailed:
		item.Group, item.Act, item.Why = waitsBroken, "Open", "The forge's checks fail"
	case record.StandingReady:
		item.Group, item.Act, item.Why = waitsMerge, "Merge", "Approved"
		if p.Approvals > 1 {
			item.Why += " by " + views.Count(p.Approvals)
		}
		if p.Checks == gitprovider.ChecksSuccess {
			item.More = ", checks passed"
		}
	case record.StandingRunning:
		item.Group, item.Act, item.Why = waitsReview, "Open", "The forge's checks run"
	case record.StandingReview:
		item.Group, item.Act, item.Why = waitsReview, "Review", "Nobody has reviewed it"
		if p.ChangesRequested > 0 {
			item.Why = "Revised since somebody asked for changes"
		}
	default:
		return item, false
	}
	return item, true
}

// proposalWait returns a proposal that needs a person.
func proposalWait(p record.Proposal, word views.Word, why, more string) waitItem {
	return waitItem{
		Group: waitsBroken, Word: word, Title: p.Title, Why: why, More: more, Link: proposalPath(p.ID), Act: "Open",
		At:         p.CreatedAt,
		Repository: p.Owner + "/" + p.Repo, Tags: p.Tags,
	}
}

// partWait returns a part of the server that is broken.
func partWait(p healthPart) waitItem {
	link := healthPath
	if to := p.Button(); to != nil {
		link = to.To
	}
	item := brokenWait(p.Title(), "", link, p.Moment())
	item.Why, item.More = p.Stopped(), " "+p.Detail()+" "+p.Remedy()
	return item
}

// brokenWait returns an item about a problem of the server that needs a person.
func brokenWait(title, why, link string, at time.Time) waitItem {
	return waitItem{
		Group: waitsBroken, Word: views.Word{Text: "Broken", Tone: views.Bad, Icon: "alert-triangle"}, Title: title,
		More: why, Link: link, Act: "Open", At: at,
	}
}
