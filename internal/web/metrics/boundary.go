package metrics

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/claudeops/claudeops/internal/system/confine"
	"github.com/claudeops/claudeops/internal/web/records"
)

// Boundary describes the separation of agents from our files and processes now.
type Boundary struct {
	Kind  string // user, landlock or none; invalid where settings let no session start
	ABI   int    // of the kernel's Landlock whose rules hold; 0 for none
	Whole bool   // it lacks nothing
}

// unrecorded is the label of sessions of which it is not recorded what kept their agents from our files.
const unrecorded = "unrecorded"

// boundaries tells which boundary holds now, and which held for the sessions that have ended, all that are recorded.
type boundaries struct {
	now func() Boundary // nil: it is not known

	mu     sync.Mutex
	counts map[string]int64
}

// agents collects metrics of the sessions of agents.
type agents struct {
	usage    sessionUsage
	boundary boundaries
	schedule schedule
}

func (a *agents) read(ctx context.Context, sessions records.Sessions) error {
	return errors.Join(a.usage.read(ctx, sessions.UsageOfEnded), a.boundary.read(ctx, sessions.SessionsByBoundary),
		a.schedule.read(ctx, sessions.ScheduledSessions))
}

// read takes the counts as they are now.
func (b *boundaries) read(ctx context.Context, of func(context.Context) (map[string]int64, error)) error {
	counts, err := of(ctx)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counts = counts
	return nil
}

func (*boundaries) info() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_boundary_info",
		"What keeps agents from our files and processes now: user, landlock or none; invalid where settings let no session "+
			"start. whole is true if it lacks nothing.",
		[]string{"boundary", "landlock_abi", "whole"}, nil)
}

func (*boundaries) sessions() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_sessions_by_boundary_total",
		"Sessions of agents that have ended by the boundary that held, of all that are recorded.", []string{"boundary"}, nil)
}

// Describe implements prometheus.Collector.
func (b *boundaries) Describe(out chan<- *prometheus.Desc) {
	out <- b.info()
	out <- b.sessions()
}

// Collect implements prometheus.Collector.
func (b *boundaries) Collect(out chan<- prometheus.Metric) {
	if b.now != nil {
		now := b.now()
		out <- prometheus.MustNewConstMetric(b.info(), prometheus.GaugeValue, 1, now.Kind, strconv.Itoa(now.ABI),
			strconv.FormatBool(now.Whole))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	counts := map[string]int64{string(confine.User): 0, string(confine.Landlock): 0, string(confine.None): 0}
	for kind, n := range b.counts {
		if kind == "" {
			kind = unrecorded
		}
		counts[kind] = n
	}
	for kind, n := range counts {
		out <- prometheus.MustNewConstMetric(b.sessions(), prometheus.CounterValue, float64(n), kind)
	}
}
