package dashboard

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/web/records"
)

// costRow is what the sessions of a tier used in the last days, today included.
type costRow struct {
	Tier        string   // "All" for the sum
	Week, Month usageRow // 7 days, and 30
}

// costs is what sessions cost in the last 7 and 30 days, by tier; nil if there were none.
func costs(ctx context.Context, r records.Sessions, now time.Time) ([]costRow, error) {
	groups, err := r.UsageByDay(ctx, now.AddDate(0, 0, -29))
	if err != nil || len(groups) == 0 {
		return nil, err
	}
	week := now.UTC().AddDate(0, 0, -6).Format(time.DateOnly)
	byTier := map[gitprovider.Tier]*costRow{}
	all := &costRow{Tier: "All"}
	for _, g := range groups {
		row := byTier[g.Tier]
		if row == nil {
			row = &costRow{Tier: g.Tier.String()}
			byTier[g.Tier] = row
		}
		for _, r := range []*costRow{row, all} {
			r.add(g, g.Day >= week)
		}
	}
	var rows []costRow
	for _, row := range byTier {
		rows = append(rows, *row)
	}
	slices.SortFunc(rows, func(a, b costRow) int { return strings.Compare(a.Tier, b.Tier) })
	if len(rows) > 1 {
		rows = append(rows, *all)
	}
	return rows, nil
}

func (r *costRow) add(g sessions.UsageGroup, thisWeek bool) {
	r.Month.count(g)
	if thisWeek {
		r.Week.count(g)
	}
}

func (u *usageRow) count(g sessions.UsageGroup) {
	u.Usage, u.Sessions = u.Add(g.Usage), u.Sessions+g.Sessions
}
