package sessions

import (
	"fmt"
	"slices"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// CostSource says where a cost comes from.
type CostSource string

// The sources of a cost.
const (
	// CostClient is the CLI's own figure, from its last word.
	CostClient CostSource = "client"
	// CostClientGuess is the CLI's own figure for a model whose price it does not know itself.
	CostClientGuess CostSource = "client_guess"
	// CostEstimate is our sum by list prices over the messages that came: the session runs, or ended without the CLI's
	// last word.
	CostEstimate CostSource = "estimate"
	// CostUnknown says that tokens were used, and the price of at least one model is not known. The cost is that of the
	// others.
	CostUnknown CostSource = "unknown"
)

// CostSources lists them, the most certain first.
func CostSources() []CostSource {
	return []CostSource{CostClient, CostClientGuess, CostEstimate, CostUnknown}
}

// Usage is a session's use of its models, and its cost. While the session runs, and where it ended without the CLI's
// last message, it is the sum over the messages received.
type Usage struct {
	InputTokens      int64      `json:"input_tokens" doc:"Neither read from the cache nor written to it"`
	OutputTokens     int64      `json:"output_tokens"`
	CacheReadTokens  int64      `json:"cache_read_tokens"`
	CacheWriteTokens int64      `json:"cache_write_tokens"`
	CostUSD          float64    `json:"cost_usd"`
	CostSource       CostSource `json:"cost_source,omitempty" enum:"client,client_guess,estimate,unknown" doc:"client: Claude Code's own figure; client_guess: its figure for a model whose price it does not know; estimate: ours by list prices, while a session runs and where it ended without Claude Code's last word; unknown: the price of a model is not known, and cost_usd is that of the others. Of a sum the least certain one. Absent: nothing was used"`
}

// Tokens returns the sum of the tokens of all kinds.
func (u Usage) Tokens() int64 {
	return u.InputTokens + u.OutputTokens + u.CacheReadTokens + u.CacheWriteTokens
}

// Words says how many tokens of each kind there are.
func (u Usage) Words() string {
	if u.Tokens() == 0 {
		return "no tokens recorded"
	}
	return fmt.Sprintf("%d tokens: %d input, %d output, %d read from the cache, %d written to it",
		u.Tokens(), u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens)
}

// Add adds what another session used. Of two sources the less certain one stands.
func (u Usage) Add(o Usage) Usage {
	certain := append([]CostSource{""}, CostSources()...)
	return Usage{
		InputTokens: u.InputTokens + o.InputTokens, OutputTokens: u.OutputTokens + o.OutputTokens,
		CacheReadTokens: u.CacheReadTokens + o.CacheReadTokens, CacheWriteTokens: u.CacheWriteTokens + o.CacheWriteTokens,
		CostUSD:    u.CostUSD + o.CostUSD,
		CostSource: certain[max(slices.Index(certain, u.CostSource), slices.Index(certain, o.CostSource), 0)],
	}
}

// UsageGroup is the usage of a group of sessions.
type UsageGroup struct {
	Day      string // on which they began, in UTC, as 2006-01-02; "" if not grouped by day
	Tier     gitprovider.Tier
	State    State // "" if not grouped by state
	Sessions int
	Usage    // with the least certain of their sources, if CostSource does not tell them apart
}

// UsageReport is the usage of sessions for programs.
type UsageReport struct {
	Days  []UsageOfDay `json:"days"`
	Total UsageSum     `json:"total"`
}

// UsageOfDay is the usage of the sessions of one tier that began on one day.
type UsageOfDay struct {
	Day  string `json:"day" doc:"On which the sessions began, in UTC"`
	Tier int    `json:"tier"`
	UsageSum
}

// UsageSum is the usage of several sessions.
type UsageSum struct {
	Sessions int `json:"sessions"`
	Usage
}

// NewUsageReport makes one of the sums by day and tier.
func NewUsageReport(groups []UsageGroup) UsageReport {
	out := UsageReport{Days: []UsageOfDay{}}
	for _, g := range groups {
		out.Days = append(out.Days, UsageOfDay{g.Day, int(g.Tier), UsageSum{g.Sessions, g.Usage}})
		out.Total.Sessions += g.Sessions
		out.Total.Usage = out.Total.Add(g.Usage)
	}
	return out
}
