package metrics

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

// sessionUsage tells what the sessions of agents used that have ended, whatever process ran them: all that is recorded,
// so that a restart changes nothing and servers that share records say the same.
type sessionUsage struct {
	mu     sync.Mutex
	groups []sessions.UsageGroup
}

// read takes the sums as they are now.
func (s *sessionUsage) read(ctx context.Context, of func(context.Context) ([]sessions.UsageGroup, error)) error {
	groups, err := of(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups = append([]sessions.UsageGroup{}, groups...)
	return nil
}

func (*sessionUsage) sessions() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_sessions_total", "Sessions of agents that have ended, of all that are recorded.",
		[]string{"tier", "state"}, nil)
}

func (*sessionUsage) tokens() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_session_tokens_total",
		"Tokens that they used; kind is input, output, cache_read or cache_write.", []string{"tier", "kind"}, nil)
}

func (*sessionUsage) cost() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_session_cost_usd_total",
		"What they cost; source is client, client_guess, estimate or unknown.", []string{"tier", "source"}, nil)
}

// Describe implements prometheus.Collector.
func (s *sessionUsage) Describe(out chan<- *prometheus.Desc) {
	out <- s.sessions()
	out <- s.tokens()
	out <- s.cost()
}

// Collect implements prometheus.Collector.
func (s *sessionUsage) Collect(out chan<- prometheus.Metric) {
	s.mu.Lock()
	groups := s.groups
	s.mu.Unlock()
	type row struct{ tier, word string }
	sums, tokens, cost := map[row]float64{}, map[row]float64{}, map[row]float64{}
	if groups != nil { // they were read: a series that first appears above zero would be missed
		for tier := gitprovider.TierObserve; tier <= gitprovider.TierRemediate; tier++ {
			for _, state := range endings() {
				sums[row{tier.String(), string(state)}] = 0
			}
			for _, kind := range []string{"input", "output", "cache_read", "cache_write"} {
				tokens[row{tier.String(), kind}] = 0
			}
			for _, source := range sessions.CostSources() {
				cost[row{tier.String(), string(source)}] = 0
			}
		}
	}
	for _, g := range groups {
		tier := g.Tier.String()
		sums[row{tier, string(g.State)}] += float64(g.Sessions)
		for kind, n := range map[string]int64{
			"input": g.InputTokens, "output": g.OutputTokens, "cache_read": g.CacheReadTokens, "cache_write": g.CacheWriteTokens,
		} {
			tokens[row{tier, kind}] += float64(n)
		}
		if g.CostSource != "" {
			cost[row{tier, string(g.CostSource)}] += g.CostUSD
		}
	}
	for desc, rows := range map[*prometheus.Desc]map[row]float64{s.sessions(): sums, s.tokens(): tokens,
		s.cost(): cost} {
		for r, value := range rows {
			out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, value, r.tier, r.word)
		}
	}
}
