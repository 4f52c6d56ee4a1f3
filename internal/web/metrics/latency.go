package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// ProviderLatency measures what this process waits for at providers, and counts what they fail at. It is safe for
// concurrent use.
type ProviderLatency struct {
	took   *prometheus.HistogramVec
	failed *prometheus.CounterVec
}

// NewProviderLatency makes one that has seen nothing. Its buckets reach from a forge next door to the longest that a
// request with its retries may take.
func NewProviderLatency() *ProviderLatency {
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "claudeops_provider_request_duration_seconds",
		Help: "How long requests to providers took, retries included; outcome is the class of the status, or why there " +
			"was no answer.",
		Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 90},
	}, []string{"provider", "outcome"})
	failed := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "claudeops_provider_errors_total",
		Help: "Requests to providers that ended with a status of 400 or above, or without an answer; outcome as for their durations.",
	}, []string{"provider", "outcome"})
	return &ProviderLatency{took, failed}
}

// Expect has the failures of a provider counted from zero.
func (l *ProviderLatency) Expect(provider string) {
	for _, outcome := range []string{"4xx", "5xx", string(fault.Timeout), string(fault.UpstreamError)} {
		l.failed.WithLabelValues(provider, outcome)
	}
}

// Observe notes a request that ended.
func (l *ProviderLatency) Observe(provider, outcome string, took time.Duration) {
	l.took.WithLabelValues(provider, outcome).Observe(took.Seconds())
	if outcome != "2xx" && outcome != "3xx" {
		l.failed.WithLabelValues(provider, outcome).Inc()
	}
}
