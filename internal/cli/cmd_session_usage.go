package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/records/sessions"
)

// maxUsageDays limits how many days back sums reach.
const maxUsageDays = 366

func sessionUsageCommand(a *commandLine) *cobra.Command {
	var days int
	cmd := &cobra.Command{
		Use: "usage", Short: "Sum the tokens and the cost of sessions, by day and tier", Args: usageArgs(cobra.NoArgs),
		Long: "usage sums what sessions used, by the day (UTC) on which they began and by tier. A cost with ~ before it is " +
			"at least in part our\n" +
			"estimate by list prices, or a guess of the client's; ? says that the price of a model is not known.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if days < 1 || days > maxUsageDays {
				return app.Usage(fmt.Errorf("--days is 1 to %d", maxUsageDays))
			}
			groups, err := a.program().Wire(app.Needs{Records: true}).Store.AgentSessions.UsageByDay(cmd.Context(),
				time.Now().AddDate(0, 0, 1-days))
			if err != nil {
				return err
			}
			report := sessions.NewUsageReport(groups)
			return a.print(report, func(w *strings.Builder) {
				rows := [][]string{{"DAY", "TIER", "SESSIONS", "INPUT", "OUTPUT", "CACHE READ", "CACHE WRITE", "USD"}}
				for _, g := range report.Days {
					rows = append(rows, usageRow(g.Day, strconv.Itoa(g.Tier), g.Sessions, g.Usage))
				}
				columns(w, append(rows, usageRow("all", "", report.Total.Sessions, report.Total.Usage)))
			})
		},
	}
	cmd.Flags().IntVar(&days, "days", 30, "how many days, today included")
	return cmd
}

func usageRow(day, tier string, sessions int, u sessions.Usage) []string {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return []string{
		day, tier, strconv.Itoa(sessions), number(u.InputTokens), number(u.OutputTokens), number(u.CacheReadTokens),
		number(u.CacheWriteTokens),
		shortCost(u),
	}
}

// shortCost returns a cost in a table: ~ where it is an estimate or a guess, ? where a price is not known.
func shortCost(u sessions.Usage) string {
	switch u.CostSource {
	case sessions.CostEstimate, sessions.CostClientGuess:
		return fmt.Sprintf("~%.4f", u.CostUSD)
	case sessions.CostUnknown:
		return fmt.Sprintf("~%.4f?", u.CostUSD)
	}
	return fmt.Sprintf("%.4f", u.CostUSD)
}

// usageText describes what a session used.
func usageText(u sessions.Usage) string { return u.Words() + "; cost: " + u.Cost() }
