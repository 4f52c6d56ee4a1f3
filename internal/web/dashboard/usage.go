package dashboard

import (
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/web/handler"
)

// usageDays is the number of days in the table of costs, today included.
const usageDays = 7

// usageTable holds the usage of the sessions of the last days, by day and tier.
type usageTable struct {
	Days  int
	Rows  []usageRow
	Total usageRow
}

// usageRow is a line of the table.
type usageRow struct {
	Day      string
	Tier     int
	Sessions int
	sessions.Usage
}

// usage returns nil if no session began in the last days, and on other pages than the first of all sessions.
func (h *sessionPages) usage(req *handler.Request) (*usageTable, error) {
	groups, err := h.records.UsageByDay(req.Context(), h.env.Now().AddDate(0, 0, 1-usageDays))
	if err != nil || len(groups) == 0 {
		return nil, err
	}
	report := sessions.NewUsageReport(groups)
	t := &usageTable{Days: usageDays, Total: usageRow{Sessions: report.Total.Sessions, Usage: report.Total.Usage}}
	for _, d := range report.Days {
		t.Rows = append(t.Rows, usageRow{d.Day, d.Tier, d.Sessions, d.Usage})
	}
	if len(t.Rows) > 1 {
		all := t.Total
		all.Day = "All"
		t.Rows = append(t.Rows, all)
	}
	return t, nil
}

// Certainty says what kind of figure the cost is; "" if it is the client's own.
func (s sessionRow) Certainty() string {
	switch s.CostSource {
	case sessions.CostEstimate:
		return "an estimate by list prices: Claude Code has not said its own figure"
	case sessions.CostClientGuess:
		return "Claude Code's guess: it does not know the price of the model"
	case sessions.CostUnknown:
		return "the price of a model is not known"
	}
	return ""
}
