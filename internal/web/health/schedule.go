package health

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/claudeops/claudeops/internal/records/sessions"
)

// schedule tells how the sessions of the schedule ended, whatever process ran them.
type schedule struct {
	every func() time.Duration // nil: nothing is scheduled

	mu    sync.Mutex
	known bool
	now   sessions.Scheduled
}

// reload takes what is recorded now.
func (s *schedule) reload(ctx context.Context, of func(context.Context) (sessions.Scheduled, error)) error {
	now, err := of(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now, s.known = now, true
	return nil
}

func (*schedule) interval() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_schedule_interval_seconds",
		"How often a session of the schedule starts on this server; 0 if none does.", nil, nil)
}

func (*schedule) endedDesc() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_schedule_sessions_total",
		"Sessions of the schedule that have ended, of all that are recorded.", []string{"state"}, nil)
}

func (*schedule) skips() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_schedule_skips_total",
		"Sessions that were due and did not start, of all that are recorded: another one ran (busy), or settings do not let "+
			"sessions start (refused).", []string{"reason"}, nil)
}

func (*schedule) lastGood() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_schedule_last_success_timestamp_seconds",
		"When the last session of the schedule succeeded, as Unix time; 0 if none has.", nil, nil)
}

// Describe implements prometheus.Collector.
func (s *schedule) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{s.interval(), s.endedDesc(), s.skips(), s.lastGood()} {
		out <- desc
	}
}

// Collect implements prometheus.Collector.
func (s *schedule) Collect(out chan<- prometheus.Metric) {
	every := time.Duration(0)
	if s.every != nil {
		every = s.every()
	}
	out <- prometheus.MustNewConstMetric(s.interval(), prometheus.GaugeValue, every.Seconds())
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.known {
		return
	}
	for _, state := range endings() {
		out <- prometheus.MustNewConstMetric(s.endedDesc(), prometheus.CounterValue, float64(s.now.Ended[state]),
			string(state))
	}
	for _, cause := range []sessions.Cause{sessions.CauseBusy, sessions.CauseRefused,
		sessions.CausePaused} {
		out <- prometheus.MustNewConstMetric(s.skips(), prometheus.CounterValue, float64(s.now.Skipped[cause]), string(cause))
	}
	last := float64(0)
	if !s.now.LastGood.IsZero() {
		last = float64(s.now.LastGood.Unix())
	}
	out <- prometheus.MustNewConstMetric(s.lastGood(), prometheus.GaugeValue, last)
}

// endings are the states in which a session that began has ended.
func endings() (out []sessions.State) {
	for _, state := range sessions.States() {
		if state != sessions.StateRunning && state != sessions.StateSkipped {
			out = append(out, state)
		}
	}
	return out
}
