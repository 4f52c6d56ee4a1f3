package dashboard

import (
	"context"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/web/views"
)

// chart is a bar a day, with a part for each outcome of attempts at proposals and for each end of a pull request.
type chart struct {
	Days     []chartDay
	Outcomes []record.Outcome // that there were, in the order of the parts from below
}

// chartDay is the bar of one day.
type chartDay struct {
	Day    time.Time
	Month  string // below the day of the first bar, and of the first of a month
	Total  int
	Counts []int // in the order of Outcomes
	Parts  []chartPart
}

// chartPart is a part of a bar, in hundredths of the drawing.
type chartPart struct {
	Outcome   record.Outcome
	Y, Height float64
}

// chartWeek is the least number of days that are drawn, today included.
const chartWeek = 7

// chart draws the last days: as many as have anything, at least chartWeek and at most chartDays.
func (h *overview) chart(ctx context.Context) (chart, error) {
	today := h.env.Now().UTC().Truncate(24 * time.Hour)
	first := today.AddDate(0, 0, 1-chartDays)
	counts, err := h.records.Summary.OutcomesByDay(ctx, first)
	if err != nil {
		return chart{}, err
	}
	if week := today.AddDate(0, 0, 1-chartWeek); len(counts) == 0 || counts[0].Day.After(week) {
		first = week
	} else {
		first = counts[0].Day
	}
	return drawChart(first, today, counts), nil
}

func drawChart(first, today time.Time, counts []record.OutcomeCount) (c chart) {
	for _, outcome := range []record.Outcome{
		record.OutcomeOpened, record.OutcomeReused, record.OutcomeDryRun, record.OutcomeRefused, record.OutcomeFailed,
		record.EndedMerged, record.EndedClosed,
	} {
		if slices.ContainsFunc(counts, func(n record.OutcomeCount) bool { return n.Outcome == outcome }) {
			c.Outcomes = append(c.Outcomes, outcome)
		}
	}
	most := 1
	for day := first; !day.After(today); day = day.AddDate(0, 0, 1) {
		d := chartDay{Day: day, Counts: make([]int, len(c.Outcomes))}
		if day.Equal(first) || day.Day() == 1 {
			d.Month = day.Format("Jan")
		}
		for _, n := range counts {
			if at := slices.Index(c.Outcomes, n.Outcome); at >= 0 && n.Day.Equal(day) {
				d.Counts[at] += n.Count
				d.Total += n.Count
			}
		}
		most = max(most, d.Total)
		c.Days = append(c.Days, d)
	}
	for i := range c.Days {
		c.Days[i].stack(c.Outcomes, most)
	}
	return c
}

// stack puts the parts of a bar on each other; most is the number that is as high as the drawing.
func (d *chartDay) stack(outcomes []record.Outcome, most int) {
	y := 100.0
	for i, n := range d.Counts {
		if n == 0 {
			continue
		}
		height := 100 * float64(n) / float64(most)
		y -= height
		d.Parts = append(d.Parts, chartPart{outcomes[i], y, height})
	}
}

// Drawing returns a column for each day: its number, its bar and its name. Like Legend and Table it holds numbers, days
// and outcomes alone, and changes with each attempt; a template takes twenty times as long.
func (c chart) Drawing() template.HTML {
	const ofDay = 640 // bytes, about
	b := make([]byte, 0, len(c.Days)*ofDay)
	for _, d := range c.Days {
		b = append(append(append(b, `<li title="`...), c.dayTitle(d)...), `"><span>`...)
		if d.Total > 0 {
			b = strconv.AppendInt(b, int64(d.Total), 10)
		}
		b = append(b, `</span><svg viewBox="0 0 10 100" preserveAspectRatio="none" aria-hidden="true">`...)
		for _, p := range d.Parts {
			b = append(append(append(b, `<rect class="`...), p.Outcome...), `" width="10"`...)
			b = strconv.AppendFloat(append(b, ` y="`...), p.Y, 'f', 1, 64)
			b = append(strconv.AppendFloat(append(b, `" height="`...), p.Height, 'f', 1, 64), `"/>`...)
		}
		b = strconv.AppendInt(append(b, "</svg><span>"...), int64(d.Day.Day()), 10)
		b = append(append(append(b, "</span><small>"...), d.Month...), "</small></li>\n"...)
	}
	return template.HTML(b) //nolint:gosec // the outcomes are those of drawChart
}

// dayTitle says in words what a day had.
func (c chart) dayTitle(d chartDay) string {
	out := d.Day.Format("2 Jan") + ": nothing"
	for i, n := range d.Counts {
		switch {
		case n == 0:
			continue
		case strings.HasSuffix(out, "nothing"):
			out = strings.TrimSuffix(out, "nothing")
		default:
			out += ", "
		}
		out += views.Count(n) + " " + views.Lowered(outcomeWords(c.Outcomes[i]))
	}
	return out
}

// Legend returns what each colour means, and how many there were of it.
func (c chart) Legend() template.HTML {
	var b []byte
	for i, o := range c.Outcomes {
		sum := 0
		for _, d := range c.Days {
			sum += d.Counts[i]
		}
		b = append(append(append(b, `<span class="key"><svg viewBox="0 0 10 10" aria-hidden="true"><rect class="`...), o...),
			`" width="10" height="10"/></svg> `...)
		b = append(append(append(b, outcomeWords(o)...), " <strong>"...), views.Count(sum)...)
		b = append(b, "</strong></span> "...)
	}
	return template.HTML(b) //nolint:gosec // the outcomes are those of drawChart
}

// Table returns the numbers of the days that have any as the head and the body of a table.
func (c chart) Table() template.HTML {
	b := []byte(`<thead><tr><th scope="col">Day</th>`)
	for _, o := range c.Outcomes {
		b = append(append(append(b, `<th scope="col" class="number">`...), outcomeWords(o)...), "</th>"...)
	}
	b = append(b, "</tr></thead>\n<tbody>\n"...)
	for _, d := range c.Days {
		if d.Total == 0 {
			continue
		}
		b = append(d.Day.AppendFormat(append(b, `<tr><th scope="row">`...), time.DateOnly), "</th>"...)
		for _, n := range d.Counts {
			b = append(strconv.AppendInt(append(b, `<td class="number">`...), int64(n), 10), "</td>"...)
		}
		b = append(b, "</tr>\n"...)
	}
	return template.HTML(append(b, "</tbody>"...)) //nolint:gosec // the outcomes are those of drawChart
}

func outcomeWords(o record.Outcome) string { return views.Outcome(o).Text }

// costDays is the number of days over which costs are summed, today included.
const costDays = 7

// bar is a line of a chart of bars.
type bar struct {
	Label, Value string
	Link         string // without the base; "" for none
	Width        int    // of 100
}

// barWidth returns the width of a bar beside the longest one: at least 1 for what is not 0, so that it is seen.
func barWidth(n, most float64) int {
	if n <= 0 {
		return 0
	}
	return max(1, int(100*n/most))
}

// Key implements pages.Part: it is the whole.
func (b bar) Key() any { return b }

// Moment returns no time.
func (bar) Moment() time.Time { return time.Time{} }

// spending holds the costs of sessions in the last days.
type spending struct {
	Sum   sessions.Usage
	Trend string            // against the days before, in words
	Days  [costDays]float64 // US dollars, the oldest first
	Tiers []bar
}

// costs returns the costs of sessions in the last days, and in as many before.
func costs(ctx context.Context, r views.Sessions, now time.Time) (spending, error) {
	var s spending
	groups, err := r.UsageByDay(ctx, now.AddDate(0, 0, 1-2*costDays))
	if err != nil {
		return s, err
	}
	before, tiers := 0.0, map[gitprovider.Tier]sessions.Usage{}
	for _, g := range groups {
		day, err := time.Parse(time.DateOnly, g.Day)
		if err != nil {
			return s, err
		}
		age := int(now.UTC().Truncate(24*time.Hour).Sub(day).Hours()) / 24
		if age >= costDays {
			before += g.CostUSD
			continue
		}
		s.Sum = s.Sum.Add(g.Usage)
		s.Days[costDays-1-max(age, 0)] += g.CostUSD
		tiers[g.Tier] = tiers[g.Tier].Add(g.Usage)
	}
	most := 0.01
	for _, u := range tiers {
		most = max(most, u.CostUSD)
	}
	for tier := gitprovider.Tier(1); tier <= 3; tier++ {
		if u, used := tiers[tier]; used {
			s.Tiers = append(s.Tiers, bar{Label: "Tier " + tier.String(), Value: views.Cost(u),
				Width: barWidth(u.CostUSD, most)})
		}
	}
	s.Trend = trend(s.Sum.CostUSD, before)
	return s, nil
}

// trend compares two weeks in words.
func trend(now, before float64) string {
	switch change := math.Round(100 * (now - before) / max(before, 0.01)); {
	case now == 0 && before == 0:
		return "no session in 2 weeks"
	case before < 0.01:
		return "nothing the week before"
	case change > 0:
		return fmt.Sprintf("%.0f %% up on last week", change)
	case change < 0:
		return fmt.Sprintf("%.0f %% down on last week", -change)
	}
	return "as last week"
}

// Figure is the cost of all days, without the word that it is an estimate.
func (s spending) Figure() string { return strings.TrimPrefix(views.Cost(s.Sum), estimated) }

// Note says whether the figure is an estimate, and compares it with the days before.
func (s spending) Note() string {
	if strings.HasPrefix(views.Cost(s.Sum), estimated) {
		return "estimated, " + s.Trend
	}
	return s.Trend
}

// estimated stands before the cost that is an estimate; see views.Cost.
const estimated = "about "

// Line draws the cost of each day.
func (s spending) Line() template.HTML {
	const width, height = 60.0, 22.0
	most, points, said := 0.01, "", "Cost of each day:"
	for _, d := range s.Days {
		most = max(most, d)
	}
	for i, d := range s.Days {
		x, y := width*float64(i)/(costDays-1), height-(height-2)*d/most
		points += strconv.FormatFloat(x, 'f', 1, 64) + "," + strconv.FormatFloat(y, 'f', 1, 64) + " "
		said += " " + views.Money(d)
	}
	//nolint:gosec // numbers of ours
	return template.HTML(`<svg class="spark" viewBox="0 0 60 24" preserveAspectRatio="none" role="img" aria-label="` +
		said +
		`"><polygon points="0,24 ` + points + `60,24"/><polyline points="` + points + `"/></svg>`)
}
