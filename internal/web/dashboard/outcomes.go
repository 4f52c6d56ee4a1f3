package dashboard

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/views"
)

// outcomesPath is the address of how changes ended.
const outcomesPath = "/outcomes"

// outcomePages show how the changes of agents ended.
type outcomePages struct {
	*renderer
	records views.Summary
}

type outcomeParams struct {
	Days int    `json:"days,omitempty" minimum:"1" maximum:"3650"`
	By   string `json:"by,omitempty" enum:"agent,tier,repository,session"`
	Sort string `json:"sort,omitempty" maxLength:"40"` // see ordering
}

// outcomePage is the content of the page.
type outcomePage struct {
	pages.Page
	Days    int
	By      record.OutcomesBy
	Report  record.OutcomeReport
	Ends    []bar // how many changes ended so
	Numbers outcomeRow
	Rows    []outcomeRow
	Periods []outcomeChoice
	Groups  []outcomeChoice
	sortable
}

// outcomeColumns returns the columns of groups of changes. The first is named after what they are grouped by.
func outcomeColumns(by record.OutcomesBy) []column[outcomeRow] {
	number := func(name, key, class string, of func(outcomeRow) float64) column[outcomeRow] {
		return column[outcomeRow]{name: name, key: key, class: class, largest: true, compare: func(a, b outcomeRow) int {
			return cmp.Compare(of(a), of(b))
		}}
	}
	name := string(by)
	return []column[outcomeRow]{
		{name: strings.ToUpper(name[:1]) + name[1:], key: "name", compare: func(a, b outcomeRow) int {
			return compareNames(a.Label, b.Label)
		}},
		number("Proposed", "proposed", "number", func(r outcomeRow) float64 { return float64(r.Proposed) }),
		number("Merged", "merged", "number", func(r outcomeRow) float64 { return float64(r.Merged) }),
		number("Closed", "closed", "number wide", func(r outcomeRow) float64 { return float64(r.Closed) }),
		number("Ignored", "ignored", "number wide", func(r outcomeRow) float64 { return float64(r.Ignored) }),
		number("Refused", "refused", "number", func(r outcomeRow) float64 { return float64(r.Refused) }),
		{name: "Until merged", class: "number wide"},
		number("Cost, each merged", "cost", "number wide", func(r outcomeRow) float64 { return r.CostPerMerge }),
	}
}

// outcomeChoice is a link to another view of the report.
type outcomeChoice struct {
	Text, Query string
	Shown       bool
}

// outcomeRow is a group of changes as people read it.
type outcomeRow struct {
	record.OutcomeSum
	Label    string // untrusted
	Link     string // without the base; "" for none
	Why      string // the most frequent reasons of refusals
	Share    string // of those that people decided about, how many were merged
	ToReview string
	ToMerge  string
	Cost     string // for each merged change
	Spent    string
}

// Key returns nothing: a row has few neighbours, and changes with each of its numbers.
func (outcomeRow) Key() any { return nil }

// Moment returns no time.
func (outcomeRow) Moment() time.Time { return time.Time{} }

const (
	outcomeDays = 30
	maxReasons  = 3
)

func (h *outcomePages) show(req *httpx.Request, q outcomeParams) (httpx.Response, error) {
	if q.Days == 0 {
		q.Days = outcomeDays
	}
	if q.By == "" {
		q.By = string(record.ByAgent)
	}
	view := outcomePage{Page: h.frame(req, "Outcomes", outcomesPath), Days: q.Days, By: record.OutcomesBy(q.By)}
	report, err := h.records.Outcomes(req.Context(), h.env.Now().AddDate(0, 0, -q.Days), view.By)
	if err != nil {
		return httpx.Response{}, err
	}
	view.Report, view.Numbers, view.Ends = report, outcomeRowOf(report, report.Total), outcomeBars(report)
	for _, g := range report.Groups {
		view.Rows = append(view.Rows, outcomeRowOf(report, g))
	}
	if view.sortable, err = sortRows(req.URL.Query(), "", outcomeColumns(view.By), view.Rows); err != nil {
		return httpx.Response{}, err
	}
	for _, days := range []int{7, outcomeDays, 90, 365} {
		view.Periods = append(view.Periods, outcomeChoice{strconv.Itoa(days) + " days", outcomeQuery(days, q.By),
			days == q.Days})
	}
	for _, by := range record.OutcomesBys() {
		view.Groups = append(view.Groups, outcomeChoice{outcomeGroupText(by), outcomeQuery(q.Days, string(by)),
			by == view.By})
	}
	return h.html("outcomes", view)
}

// outcomeQuery returns the query of the page, with its question mark: a template would quote what comes after one.
func outcomeQuery(days int, by string) string {
	return "?" + url.Values{"days": {strconv.Itoa(days)}, "by": {by}}.Encode()
}

func outcomeGroupText(by record.OutcomesBy) string {
	return map[record.OutcomesBy]string{record.ByAgent: "Agents", record.ByTier: "Tiers",
		record.ByRepository: "Repositories", record.BySession: "Sessions"}[by]
}

// outcomeBars draws how changes stand. Each change is in one bar.
func outcomeBars(r record.OutcomeReport) (out []bar) {
	t := r.Total
	refused := changesPath + "?" + url.Values{"tab": {string(record.TabRefused)},
		"since": {r.Since.Format(time.DateOnly)}}.Encode()
	most := int64(1)
	for _, b := range []struct {
		label, link string
		n           int64
	}{
		{"Merged as proposed", "", t.Merged - t.Revised}, {"Merged after a revision", "", t.Revised},
		{"Closed without a merge", "", t.Closed}, {"Nobody looked for a week", "", t.Ignored},
		{"Still open", "", t.Open}, {"No longer on the forge", "", t.Gone},
		{"Refused by a rule", refused, t.Refused},
	} {
		if b.n == 0 && b.label == "No longer on the forge" {
			continue
		}
		most = max(most, b.n)
		out = append(out, bar{Label: b.label, Value: views.Count(b.n), Link: b.link, Width: int(b.n)})
	}
	for i, b := range out {
		out[i].Width = barWidth(float64(b.Width), float64(most))
	}
	return out
}

func outcomeRowOf(r record.OutcomeReport, s record.OutcomeSum) outcomeRow {
	row := outcomeRow{OutcomeSum: s, Label: s.Name, ToReview: record.MinutesText(s.MinutesToReview),
		ToMerge: record.MinutesText(s.MinutesToMerge)}
	if ended := s.Merged + s.Closed; ended > 0 {
		row.Share = strconv.FormatInt(100*s.Merged/ended, 10) + " %"
	}
	if s.CostPerMerge > 0 {
		row.Cost = views.Money(s.CostPerMerge)
	}
	if s.CostUSD > 0 {
		row.Spent = views.Money(s.CostUSD)
	}
	var reasons []string
	for _, c := range s.Reasons[:min(len(s.Reasons), maxReasons)] {
		reasons = append(reasons, record.CodeText(c.Code)+" "+views.Count(c.Count))
	}
	row.Why = strings.Join(reasons, ", ")
	switch r.By {
	case record.ByTier:
		row.Label = "Tier " + s.Name
	case record.BySession:
		row.Link = sessionsPath + "/" + url.PathEscape(s.Name)
	case record.ByAgent:
		row.Link = auditPath + "?" + url.Values{"who": {s.Name}}.Encode()
	case record.ByRepository:
		row.Link = changesPath + "?" + url.Values{"since": {r.Since.Format(time.DateOnly)}, "repo": {s.Name}}.Encode()
	}
	return row
}
