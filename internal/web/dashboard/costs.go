package dashboard

import (
	"context"
	"fmt"
	"html/template"
	"math"
	"strconv"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/web/records"
	"github.com/claudeops/claudeops/internal/web/words"
)

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
func costs(ctx context.Context, r records.Sessions, now time.Time) (spending, error) {
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
			s.Tiers = append(s.Tiers, bar{Label: "Tier " + tier.String(), Value: words.Cost(u),
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
		said += " " + words.Money(d)
	}
	//nolint:gosec // numbers of ours
	return template.HTML(`<svg class="spark" viewBox="0 0 60 24" preserveAspectRatio="none" role="img" aria-label="` +
		said +
		`"><polygon points="0,24 ` + points + `60,24"/><polyline points="` + points + `"/></svg>`)
}
