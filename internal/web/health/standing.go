package health

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/system/sandbox"
	"github.com/claudeops/claudeops/internal/web/views"
)

const (
	// maxRepositories bounds the label repository. What other repositories have is counted under otherRepositories.
	maxRepositories   = 100
	otherRepositories = "other"
	// readAgain is the maximum age of values before they are read again, so that many scrapers cost no more than one.
	readAgain = 5 * time.Second
)

// standing tells what is recorded now, whatever process recorded it: a restart changes nothing, and servers that share
// records say the same. It asks no provider.
type standing struct {
	records views.Records
	health  *Checker
	now     func() time.Time
	room    func(ctx context.Context) (Room, error) // nil: not known

	mu       sync.Mutex
	at       time.Time // when it was read
	readable bool      // the last reading succeeded
	outcomes []record.OutcomeTotal
	gates    []record.GateTotal
	open     []record.OpenPulls
	others   record.OpenPulls
	notices  record.NoticeCounts
	exports  exports
	taken    Room
	ends     record.OutcomeReport // of the last endDays
}

// endDays is how far back the metrics of outcomes look.
const endDays = 30

// Room is what the records take, and the disk of the state folder. What is not known is 0.
type Room struct{ Records, DiskFree, Disk uint64 }

// reload takes what is recorded as it is now, unless it was just read. What cannot be read keeps its last values.
func (s *standing) reload(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if s.readable && now.Sub(s.at) < readAgain && !now.Before(s.at) {
		return nil
	}
	s.readable = false
	outcomes, gates, err := s.records.Summary.Totals(ctx)
	if err != nil {
		return err
	}
	open, others, err := s.records.Pulls.OpenPullCounts(ctx, maxRepositories)
	if err != nil {
		return err
	}
	notices, err := s.records.Notices.NoticeCounts(ctx)
	if err != nil {
		return err
	}
	ends, err := s.records.Summary.Outcomes(ctx, now.AddDate(0, 0, -endDays), record.ByTier)
	if err != nil {
		return err
	}
	if err := s.exports.reload(ctx, s.records.Audit); err != nil {
		return err
	}
	if s.room != nil {
		if s.taken, err = s.room(ctx); err != nil {
			return err
		}
	}
	s.at, s.readable = now, true
	s.outcomes, s.gates, s.open, s.others, s.notices, s.ends = outcomes, gates, open, others, notices, ends
	return nil
}

func (*standing) recordsRead() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_records_readable",
		"1 if the records could be read for this answer, 0 if not: what comes from them is older then.", nil, nil)
}

func (*standing) proposals() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_proposals_total",
		"Attempts at proposals by how they ended, of all that are recorded.", []string{"outcome"}, nil)
}

func (*standing) refusals() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_refusals_total",
		"Refused attempts by the gates that refused them, of all that are recorded; one that several gates refused counts at each.", []string{"gate"}, nil)
}

func (*standing) ended() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_outcomes", "How the changes of the last 30 days ended: merged, revised "+
		"(merged after a revision), closed, ignored, open, gone or refused. Each change counts once.",
		[]string{"outcome"}, nil)
}

func (*standing) waited() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_outcome_median_seconds",
		"Median of the time until a pull request of the last 30 days had a review, and was merged; absent without one.",
		[]string{"until"}, nil)
}

func (*standing) mergeCost() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_outcome_cost_usd_per_merged",
		"What the sessions of the last 30 days cost for each change that was merged; absent where nothing was, or no cost "+
			"is known.", nil, nil)
}

func (*standing) openPulls() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_open_pull_requests",
		"Our pull requests that are open as last seen; age is under_1d, 1d_to_7d, 7d_to_30d or over_30d. Repositories "+
			"beyond the first 100 are other.",
		[]string{"provider", "repository", "age"}, nil)
}

func (*standing) noticesLeft() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_notices",
		"Messages to people that were not delivered; state is waiting, or given_up in the last 30 days.", []string{"state"},
		nil)
}

func (*standing) auditVerified() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_audit_verified_timestamp_seconds",
		"When this process last verified the audit, as Unix time; absent before.", nil, nil)
}

func (*standing) auditWhole() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_audit_whole",
		"1 if the last verification found the audit whole, 0 if not or if it failed; absent before.", nil, nil)
}

func (*standing) auditRows() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_audit_rows", "Rows of the audit at its last verification; absent before.", nil,
		nil)
}

func (*standing) healthPartDesc() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_health_part",
		"1 for each part of the server's health with its status, as on the page Health: ok, off, warning, held or problem.",
		[]string{"part", "status", "blocks"}, nil)
}

func (*standing) recordsBytes() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_records_bytes", "Bytes that the records take, in their file or in PostgreSQL.", nil,
		nil)
}

func (*standing) diskFree() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_state_disk_free_bytes",
		"Bytes of the disk of the state folder that are free for the server; absent where that is not known.", nil, nil)
}

func (*standing) disk() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_state_disk_bytes", "Bytes that this disk has.", nil, nil)
}

func (*standing) canOpen() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_can_open", "1 if nothing stops a pull request, 0 if any part does.", nil, nil)
}

// Describe implements prometheus.Collector.
func (s *standing) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		s.recordsRead(), s.proposals(), s.refusals(), s.ended(), s.waited(), s.mergeCost(), s.openPulls(),
		s.noticesLeft(), s.auditVerified(), s.auditWhole(),
		s.auditRows(), s.healthPartDesc(), s.canOpen(), s.exports.waiting(), s.exports.failing(),
		s.recordsBytes(), s.diskFree(), s.disk(),
	} {
		out <- desc
	}
}

// Collect implements prometheus.Collector.
func (s *standing) Collect(out chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	send := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, kind, value, labels...)
	}
	send(s.recordsRead(), prometheus.GaugeValue, boolValue(s.readable))
	s.collectAudit(send)
	if s.at.IsZero() {
		return // nothing was ever read
	}
	outcomes, gates := map[record.Outcome]int64{}, map[record.Gate]int64{} // zeros, too: what appears above zero is missed
	for _, outcome := range record.Outcomes() {
		if outcome != record.OutcomeDone { // what people did is not an attempt at a proposal
			outcomes[outcome] = 0
		}
	}
	for _, gate := range record.Gates() {
		gates[gate] = 0
	}
	for _, o := range s.outcomes {
		outcomes[o.Outcome] = o.Count
	}
	for _, g := range s.gates {
		gates[g.Gate] = g.Count
	}
	for outcome, n := range outcomes {
		send(s.proposals(), prometheus.CounterValue, float64(n), string(outcome))
	}
	for gate, n := range gates {
		send(s.refusals(), prometheus.CounterValue, float64(n), string(gate))
	}
	s.collectOutcomes(send)
	send(s.noticesLeft(), prometheus.GaugeValue, float64(s.notices.Pending), "waiting")
	send(s.noticesLeft(), prometheus.GaugeValue, float64(s.notices.GivenUp), "given_up")
	if s.taken.Records > 0 {
		send(s.recordsBytes(), prometheus.GaugeValue, float64(s.taken.Records))
	}
	if s.taken.Disk > 0 {
		send(s.diskFree(), prometheus.GaugeValue, float64(s.taken.DiskFree))
		send(s.disk(), prometheus.GaugeValue, float64(s.taken.Disk))
	}
	for _, o := range s.open {
		s.collectOpen(send, o, o.Provider, o.Owner+"/"+o.Name)
	}
	s.exports.collect(send)
	if s.others.All() > 0 {
		s.collectOpen(send, s.others, otherRepositories, otherRepositories)
	}
}

func (s *standing) collectOutcomes(send sender) {
	t := s.ends.Total
	for outcome, n := range map[string]int64{"merged": t.Merged - t.Revised, "revised": t.Revised, "closed": t.Closed,
		"ignored": t.Ignored, "open": t.Open, "gone": t.Gone, "refused": t.Refused} {
		send(s.ended(), prometheus.GaugeValue, float64(n), outcome)
	}
	for until, minutes := range map[string]int64{"review": t.MinutesToReview, "merge": t.MinutesToMerge} {
		if minutes > 0 {
			send(s.waited(), prometheus.GaugeValue, float64(60*minutes), until)
		}
	}
	if t.CostPerMerge > 0 {
		send(s.mergeCost(), prometheus.GaugeValue, t.CostPerMerge)
	}
}

type sender func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string)

func (s *standing) collectOpen(send sender, o record.OpenPulls, provider, repository string) {
	for _, age := range []struct {
		name  string
		count int64
	}{{"under_1d", o.Day}, {"1d_to_7d", o.Week}, {"7d_to_30d", o.Month}, {"over_30d", o.Older}} {
		send(s.openPulls(), prometheus.GaugeValue, float64(age.count), provider, repository, age.name)
	}
}

func (s *standing) collectAudit(send sender) {
	now := s.health.Now(context.Background()) // only the first call waits for it
	for _, f := range now.Parts {
		send(s.healthPartDesc(), prometheus.GaugeValue, 1, f.Name, f.Status, strconv.FormatBool(f.Blocks))
	}
	send(s.canOpen(), prometheus.GaugeValue, boolValue(now.CanOpen()))
	v := s.health.LastVerification()
	if v.At.IsZero() {
		return
	}
	send(s.auditVerified(), prometheus.GaugeValue, float64(v.At.Unix()))
	send(s.auditWhole(), prometheus.GaugeValue, boolValue(v.Known && v.Failure == "" && v.Report.OK()))
	send(s.auditRows(), prometheus.GaugeValue, float64(v.Report.Rows))
}

func boolValue(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// exports tells how far the heads of the audit were exported, by whatever process.
type exports struct {
	head  int64
	sinks []record.AuditExport
}

func (e *exports) reload(ctx context.Context, audit views.Audit) error {
	sinks, err := audit.Exports(ctx)
	if err != nil {
		return err
	}
	head, _, err := audit.Head(ctx)
	if err != nil {
		return err
	}
	e.sinks, e.head = sinks, head
	return nil
}

func (exports) waiting() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_audit_export_waiting_rows",
		"Rows of the audit whose heads a sink has not taken yet.", []string{"sink"}, nil)
}

func (exports) failing() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_audit_export_failing",
		"1 while the heads of the audit cannot be exported to a sink, else 0.", []string{"sink"}, nil)
}

func (e exports) collect(send sender) {
	for _, sink := range e.sinks {
		send(e.waiting(), prometheus.GaugeValue, float64(max(e.head-sink.Last.Seq, 0)), sink.Sink)
		send(e.failing(), prometheus.GaugeValue, boolValue(sink.Problem != ""), sink.Sink)
	}
}

// sessionUsage tells what the sessions of agents used that have ended, whatever process ran them: all that is recorded,
// so that a restart changes nothing and servers that share records say the same.
type sessionUsage struct {
	mu     sync.Mutex
	groups []sessions.UsageGroup
}

// reload takes the sums as they are now.
func (s *sessionUsage) reload(ctx context.Context, of func(context.Context) ([]sessions.UsageGroup, error)) error {
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

func (a *agents) reload(ctx context.Context, sessions views.Sessions) error {
	return errors.Join(a.usage.reload(ctx, sessions.UsageOfEnded), a.boundary.reload(ctx, sessions.SessionsByBoundary),
		a.schedule.reload(ctx, sessions.ScheduledSessions))
}

// reload takes the counts as they are now.
func (b *boundaries) reload(ctx context.Context, of func(context.Context) (map[string]int64, error)) error {
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
	counts := map[string]int64{string(sandbox.User): 0, string(sandbox.Landlock): 0, string(sandbox.None): 0}
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
