// This file counts what happens, for Prometheus.

package health

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/views"
)

// Metrics counts what happens. Attempts are counted from the record, so that those of other processes, the agent's
// MCP server above all, are counted, too: every row that was added since this process started.
type Metrics struct {
	registry  *prometheus.Registry
	attempts  *prometheus.CounterVec
	took      *prometheus.HistogramVec
	exchanges *prometheus.CounterVec
	latency   *prometheus.HistogramVec
	hooks     *prometheus.CounterVec

	records  views.Records
	agents   *agents
	standing *standing
	mu       sync.Mutex
	begun    bool
	seen     int64 // the last row that was counted
}

// MetricsOptions configures Metrics.
type MetricsOptions struct {
	Settings httpx.Settings
	Records  views.Records
	Health   *Checker
	Now      func() time.Time
	// Remaining returns how many requests each provider last said are left, by name; nil where no provider says so.
	Remaining func() map[string]int
	Latency   *ProviderLatency // of requests to providers; nil where it is not measured
	// Boundary returns the boundary between agents and our files now; nil where it is not known.
	Boundary func() Boundary
	// Room is what the records take, and the disk that they are on; nil where it is not known.
	Room func(ctx context.Context) (Room, error)
	// ScheduledEvery is how often sessions are scheduled; 0 or nil: never.
	ScheduledEvery func() time.Duration
	// Streams returns the number of pages that listen for changes.
	Streams func() int
}

// NewMetrics makes Metrics that have counted nothing.
func NewMetrics(o MetricsOptions) *Metrics {
	m := &Metrics{
		records:  o.Records,
		agents:   &agents{boundary: boundaries{now: o.Boundary}, schedule: schedule{every: o.ScheduledEvery}},
		standing: &standing{records: o.Records, health: o.Health, now: o.Now, room: o.Room},
		registry: prometheus.NewRegistry(),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "claudeops_attempts_total",
			Help: "Attempts at proposals that were recorded, by any process, since this one looked first; gate is the first " +
				"that refused.",
		}, []string{"outcome", "code", "gate", "provider", "door"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "claudeops_attempt_duration_seconds", Help: "How long they took.",
			Buckets: []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 180},
		}, []string{"outcome", "door"}),
		exchanges: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "claudeops_http_requests_total", Help: "Answers to HTTP requests.",
		}, []string{"route", "status"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "claudeops_http_request_duration_seconds", Help: "How long HTTP requests took.",
		}, []string{"route"}),
		hooks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "claudeops_webhook_deliveries_total",
			Help: "Webhooks of forges; result is taken, ignored, pong or the code of a refusal.",
		}, []string{"provider", "result"}),
	}
	if o.Remaining != nil {
		m.registry.MustRegister(remaining{o.Remaining})
	}
	if o.Latency != nil {
		m.registry.MustRegister(o.Latency.took, o.Latency.failed)
	}
	m.registry.MustRegister(m.attempts, m.took, m.exchanges, m.latency, m.hooks, info{o.Settings}, &m.agents.usage,
		&m.agents.boundary, &m.agents.schedule,
		m.standing,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "claudeops_event_streams", Help: "Pages that listen for changes.",
		}, func() float64 { return float64(o.Streams()) }),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// remaining asks how many requests are left at the providers when it is scraped. A provider that has not said so yet
// has none.
type remaining struct{ now func() map[string]int }

func (remaining) desc() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_provider_requests_remaining",
		"Requests that the provider last said are left in its current window.", []string{"provider"}, nil)
}

// Describe implements prometheus.Collector.
func (r remaining) Describe(out chan<- *prometheus.Desc) { out <- r.desc() }

// Collect implements prometheus.Collector.
func (r remaining) Collect(out chan<- prometheus.Metric) {
	for provider, n := range r.now() {
		out <- prometheus.MustNewConstMetric(r.desc(), prometheus.GaugeValue, float64(n), provider)
	}
}

// Exchange counts an answer to an HTTP request. route is the pattern that matched, so that callers cannot make labels.
func (m *Metrics) Exchange(route string, status int, took time.Duration) {
	if route == "" {
		route = "none"
	}
	m.exchanges.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.latency.WithLabelValues(route).Observe(took.Seconds())
}

// ExpectDeliveries has the webhooks of a source counted from zero.
func (m *Metrics) ExpectDeliveries(source string) {
	for _, result := range []string{"taken", "ignored", string(fault.Unauthenticated)} {
		m.hooks.WithLabelValues(source, result)
	}
}

// Delivery counts the result of a webhook's delivery.
func (m *Metrics) Delivery(source, result string) { m.hooks.WithLabelValues(source, result).Inc() }

// Bounds of how many rows one scrape counts; the next one goes on.
const (
	maxCatchUp = 10_000
	atOnce     = 200
)

// CatchUp counts the rows that were added since it was called last, and reads what sessions used and what stands open.
// The first call only looks where the record ends.
func (m *Metrics) CatchUp(ctx context.Context) error {
	return errors.Join(m.countAttempts(ctx), m.agents.reload(ctx, m.records.Sessions), m.standing.reload(ctx))
}

func (m *Metrics) countAttempts(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.begun {
		head, _, err := m.records.Audit.Head(ctx)
		m.seen, m.begun = head, err == nil
		return err
	}
	for counted := 0; counted < maxCatchUp; {
		rows, err := m.records.Audit.Page(ctx, record.AuditQuery{After: m.seen, Ascending: true, Limit: atOnce})
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, r := range rows {
			m.countAttempt(r)
		}
		counted += len(rows)
	}
	return nil
}

func (m *Metrics) countAttempt(r record.RecordedAttempt) {
	m.seen = r.Seq
	gate := ""
	for _, v := range r.Verdicts {
		if v.Ruling == record.Deny {
			gate = string(v.Gate)
			break
		}
	}
	if r.Action == record.ActionCreate || r.Action == record.ActionPromote || r.Action == record.ActionSettle {
		m.attempts.WithLabelValues(string(r.Outcome), string(r.Code), gate, r.Provider, string(r.Door)).Inc()
		m.took.WithLabelValues(string(r.Outcome), string(r.Door)).Observe(r.Duration.Seconds())
	}
}

// Text returns all of it in Prometheus's text format.
func (m *Metrics) Text() (text []byte, contentType string, err error) {
	families, err := m.registry.Gather()
	if err != nil {
		return nil, "", err
	}
	var b bytes.Buffer
	format := expfmt.NewFormat(expfmt.TypeTextPlain)
	encoder := expfmt.NewEncoder(&b, format)
	for _, family := range families {
		if err := encoder.Encode(family); err != nil {
			return nil, "", err
		}
	}
	return b.Bytes(), string(format), nil
}

// info says what runs, by the rules as they are when it is asked.
type info struct{ settings httpx.Settings }

func infoDesc() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_info", "What runs.", []string{"version", "tier", "dry_run", "read_only"}, nil)
}

// Describe implements prometheus.Collector.
func (i info) Describe(ch chan<- *prometheus.Desc) { ch <- infoDesc() }

// Collect implements prometheus.Collector.
func (i info) Collect(ch chan<- prometheus.Metric) {
	now := i.settings.Rules()
	ch <- prometheus.MustNewConstMetric(infoDesc(), prometheus.GaugeValue, 1, i.settings.Version,
		i.settings.Tier.String(), strconv.FormatBool(now.DryRun), strconv.FormatBool(now.ReadOnly != ""))
}

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
