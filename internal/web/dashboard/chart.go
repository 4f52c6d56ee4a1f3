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

// chart is a bar a day, with a part for each outcome of attempts at proposals.
type chart struct {
	Days          []chartDay
	Outcomes      []record.Outcome // that there were, in the order of the parts from below
	Lines         []chartLine
	Width, Height int // of the drawing, in its own units
}

// chartLine is a line of the axis.
type chartLine struct{ Number, Y int }

// chartDay is the bar of one day.
type chartDay struct {
	Day    time.Time
	Label  string // below the bar; "" for most
	Middle int    // of the bar, from the left
	Total  int
	Counts []int // in the order of Outcomes
	Parts  []chartPart
}

// Key returns the numbers of the day: its row of the table is a part of the page, and its bar, which grows and shrinks
// with those of other days, is not.
func (d chartDay) Key() any {
	b := d.Day.AppendFormat(nil, time.DateOnly)
	for _, n := range d.Counts {
		b = strconv.AppendInt(append(b, ' '), int64(n), 10)
	}
	return string(b)
}

// Moment returns no time.
func (chartDay) Moment() time.Time { return time.Time{} }

// chartPart is a part of a bar.
type chartPart struct {
	Outcome             record.Outcome
	Count               int
	X, Y, Width, Height float64
}

// Measures of the drawing, in its own units.
const (
	chartBar    = 24.0
	chartGap    = 8.0
	chartHeight = 100.0
	chartFoot   = 18 // for the labels
	chartHead   = 6.0
	chartLeft   = 28.0 // for the numbers
)

// chart draws the last chartDays days.
func (h *overview) chart(ctx context.Context) (chart, error) {
	today := h.env.Now().UTC().Truncate(24 * time.Hour)
	first := today.AddDate(0, 0, 1-chartDays)
	counts, err := h.records.Summary.OutcomesByDay(ctx, first)
	if err != nil {
		return chart{}, err
	}
	return drawChart(first, counts), nil
}

func drawChart(first time.Time, counts []record.OutcomeCount) chart {
	c := chart{Width: int(chartLeft + chartDays*(chartBar+chartGap) + chartGap), Height: int(chartHeight) + chartFoot}
	for _, outcome := range []record.Outcome{
		record.OutcomeOpened, record.OutcomeReused, record.OutcomeDryRun, record.OutcomeRefused, record.OutcomeFailed,
	} {
		if slices.ContainsFunc(counts, func(n record.OutcomeCount) bool { return n.Outcome == outcome }) {
			c.Outcomes = append(c.Outcomes, outcome)
		}
	}
	most := 1
	for i := range chartDays {
		d := chartDay{Day: first.AddDate(0, 0, i),
			Middle: int(chartLeft + chartGap + float64(i)*(chartBar+chartGap) + chartBar/2),
			Counts: make([]int, len(c.Outcomes))}
		if i%7 == (chartDays-1)%7 {
			d.Label = d.Day.Format("2 Jan")
		}
		for _, n := range counts {
			if at := slices.Index(c.Outcomes, n.Outcome); at >= 0 && n.Day.Equal(d.Day) {
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
	for _, number := range slices.Compact([]int{0, most / 2, most}) {
		c.Lines = append(c.Lines, chartLine{number, int(chartHeight - (chartHeight-chartHead)*float64(number)/float64(most))})
	}
	return c
}

// stack puts the parts of a bar on each other; most is the number that is as high as the drawing.
func (d *chartDay) stack(outcomes []record.Outcome, most int) {
	y := chartHeight
	for i, n := range d.Counts {
		if n == 0 {
			continue
		}
		height := (chartHeight - chartHead) * float64(n) / float64(most)
		y -= height
		d.Parts = append(d.Parts, chartPart{outcomes[i], n, float64(d.Middle) - chartBar/2, y, chartBar, height})
	}
}

// Drawing returns the lines, the bars and their labels. It holds numbers, days and outcomes alone; a template takes
// twenty times as long.
func (c chart) Drawing() template.HTML {
	var b []byte
	number := func(name string, n float64) {
		b = append(append(b, ' '), name...)
		b = append(strconv.AppendFloat(append(b, `="`...), n, 'f', -1, 64), '"')
	}
	for _, line := range c.Lines {
		y := float64(line.Y)
		b = append(b, "<line"...)
		number("x1", chartLeft)
		number("x2", float64(c.Width))
		number("y1", y)
		number("y2", y)
		b = append(b, `/><text class="of"`...)
		number("x", chartLeft)
		number("y", y)
		b = append(strconv.AppendInt(append(b, ` dx="-6" dy="3">`...), int64(line.Number), 10), "</text>\n"...)
	}
	for _, d := range c.Days {
		for _, p := range d.Parts {
			b = append(append(append(b, `<rect class="`...), p.Outcome...), '"')
			number("x", p.X)
			number("y", p.Y)
			number("width", p.Width)
			number("height", p.Height)
			b = strconv.AppendInt(append(b, "><title>"...), int64(p.Count), 10)
			b = append(append(append(b, ' '), outcomeWords(p.Outcome)...), "</title></rect>\n"...)
		}
		if d.Label != "" {
			b = append(b, "<text"...)
			number("x", float64(d.Middle))
			b = append(append(append(b, ` y="115">`...), d.Label...), "</text>"...)
		}
	}
	return template.HTML(b) //nolint:gosec // the outcomes are those of drawChart
}

// Names returns the outcomes as people read them.
func (c chart) Names() []string {
	names := make([]string, len(c.Outcomes))
	for i, o := range c.Outcomes {
		names[i] = outcomeWords(o)
	}
	return names
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
				Width: int(100 * u.CostUSD / most)})
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
