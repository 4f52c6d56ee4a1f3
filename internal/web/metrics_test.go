package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/system/sandbox"
	"github.com/claudeops/claudeops/internal/testkit/must"
	"github.com/claudeops/claudeops/internal/web"
	"github.com/claudeops/claudeops/internal/web/health"
	"github.com/claudeops/claudeops/internal/web/views"
)

func TestMetricsSayWhatStandsOpenAndHowProposalsEnded(t *testing.T) {
	t.Parallel()
	broken := &brokenSummary{}
	w := newWorld(t, func(w *world) {
		broken.Summary = w.web.Records.Summary
		w.web.Records.Summary = broken
	})
	w.measures("claudeops_records_readable 1", `claudeops_notices{state="waiting"} 0`, "!claudeops_open_pull_requests{",
		"!claudeops_audit_whole ")
	w.refuse(2)
	w.opened(nil)
	w.verify()
	const open = `claudeops_open_pull_requests{age="`
	w.measures(`claudeops_proposals_total{outcome="opened"} 1`, `claudeops_proposals_total{outcome="refused"} 2`,
		`claudeops_refusals_total{gate="scope"} 2`, "claudeops_audit_whole 1", "claudeops_audit_rows 3",
		"claudeops_audit_verified_timestamp_seconds ",
		open+`under_1d",provider="fake",repository="joe/infra"} 1`,
		open+`over_30d",provider="fake",repository="joe/infra"} 0`)
	w.advance(8 * 24 * time.Hour)
	w.measures(open+`under_1d",provider="fake",repository="joe/infra"} 0`,
		open+`7d_to_30d",provider="fake",repository="joe/infra"} 1`)
	broken.err = errors.New("the disk is gone")
	w.measures("claudeops_records_readable 0", `claudeops_proposals_total{outcome="refused"} 2`)
}

// measures fails the test unless the metrics have each line, or lack it if it stands behind "!". One that ends in a
// brace or a space is the beginning of a line.
func (w *world) measures(lines ...string) {
	w.Helper()
	w.advance(10 * time.Second) // what was just read is not read again
	text := string(w.get("/metrics").body)
	for _, line := range lines {
		line, absent := strings.CutPrefix(line, "!")
		if !strings.HasSuffix(line, "{") && !strings.HasSuffix(line, " ") {
			line += "\n"
		}
		if strings.Contains("\n"+text, "\n"+line) == absent {
			w.Errorf("the metrics have %q: %t\n%s", line, absent, text)
		}
	}
}

// brokenSummary cannot be read once err is set.
type brokenSummary struct {
	views.Summary
	err error
}

func (b *brokenSummary) Totals(ctx context.Context) ([]record.OutcomeTotal, []record.GateTotal, error) {
	if b.err != nil {
		return nil, nil, b.err
	}
	return b.Summary.Totals(ctx)
}

// A series that first appears above zero is missed by every rate: what is known to come is zero from the start.
func TestCountersWithKnownLabelsBeginAtZero(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.web.Webhooks.Senders = web.KnownWebhooks(hookSecret) })
	w.measures(
		`claudeops_proposals_total{outcome="failed"} 0`, `claudeops_refusals_total{gate="content"} 0`,
		`claudeops_sessions_total{state="failed",tier="1"} 0`, `claudeops_sessions_by_boundary_total{boundary="user"} 0`,
		`claudeops_session_tokens_total{kind="input",tier="3"} 0`, `claudeops_session_cost_usd_total{source="client",tier="2"} 0`,
		`claudeops_schedule_sessions_total{state="failed"} 0`, `claudeops_schedule_skips_total{reason="refused"} 0`,
		`claudeops_schedule_skips_total{reason="busy"} 0`, `claudeops_schedule_last_success_timestamp_seconds 0`,
		`claudeops_schedule_interval_seconds 0`, `claudeops_webhook_deliveries_total{provider="gitea",result="taken"} 0`)
}

func TestAScheduleThatNeverRunsIsSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.agents.plan = session.Plan{Every: time.Hour, Missing: "the policy requires a boundary, and there is none"}
	w.page("/", 200).lacks("The schedule starts no session")
	good := sessions.Record{ID: "run-0", StartedAt: w.Now(), Ending: sessions.Ending{State: sessions.StateRunning},
		Task: sessions.Task{Tier: 1, Trigger: sessions.TriggerSchedule}}
	w.begun(good)
	good.State, good.EndedAt = sessions.StateSucceeded, w.Now()
	must.Do(t, w.store.AgentSessions.SaveSession(t.Context(), good))
	succeeded := strconv.FormatFloat(float64(w.Now().Unix()), 'g', -1, 64)
	w.advance(time.Hour)
	for _, id := range []string{"run-1", "run-2"} {
		w.begun(sessions.Record{ID: id, EndedAt: w.Now(), Task: sessions.Task{Trigger: sessions.TriggerSchedule},
			Ending: sessions.Ending{State: sessions.StateSkipped, Cause: sessions.CauseRefused, Reason: "no boundary"}})
	}
	w.measures(
		`claudeops_schedule_skips_total{reason="refused"} 2`, `claudeops_schedule_interval_seconds 3600`,
		`claudeops_schedule_sessions_total{state="succeeded"} 1`,
		"claudeops_schedule_last_success_timestamp_seconds "+succeeded)
	w.page("/", 200).has("The schedule starts no session", "the policy requires a boundary")
	w.says(w.get("/healthz"), "ok")
}

func TestMetricsSayHowManyRequestsAreLeftAtAProvider(t *testing.T) {
	t.Parallel()
	left := map[string]int{}
	w := newWorld(t, func(w *world) { w.web.Providers.Remaining = func() map[string]int { return left } })
	const name = "claudeops_provider_requests_remaining"
	w.measures("!" + name + "{")
	left["github"] = 4711
	w.measures(name + `{provider="github"} 4711`)
}

func TestMetricsSayHowLongProvidersTook(t *testing.T) {
	t.Parallel()
	latency := health.NewProviderLatency()
	w := newWorld(t, func(w *world) { w.web.Providers.Latency = latency })
	latency.Observe("github", "2xx", 40*time.Millisecond)
	latency.Observe("github", "2xx", 3*time.Second)
	latency.Observe("gitea", "timeout", 30*time.Second)
	const name = "claudeops_provider_request_duration_seconds"
	w.measures(
		name+`_bucket{outcome="2xx",provider="github",le="0.05"} 1`, name+`_bucket{outcome="2xx",provider="github",le="5"} 2`,
		name+`_sum{outcome="2xx",provider="github"} 3.04`, name+`_count{outcome="timeout",provider="gitea"} 1`)
}

// spent records sessions that used tokens: two of tier 1 today, one of them without the client's figure, and one of
// tier 3 the day before.
func spent(w *world) {
	w.Helper()
	used := func(id string, tier int, began time.Time, state sessions.State, u sessions.Usage) {
		w.begun(sessions.Record{ID: id, StartedAt: began, EndedAt: began.Add(time.Minute),
			Task: sessions.Task{Tier: gitprovider.Tier(tier)}, Ending: sessions.Ending{State: state},
			Work: sessions.Work{Usage: u}})
	}
	used("run-1", 3, w.Now().AddDate(0, 0, -1), sessions.StateSucceeded, sessions.Usage{
		InputTokens: 1000, OutputTokens: 200, CacheReadTokens: 5000, CacheWriteTokens: 700, CostUSD: 1.5,
		CostSource: sessions.CostClient,
	})
	used("run-2", 1, w.Now(), sessions.StateSucceeded, sessions.Usage{InputTokens: 10, OutputTokens: 2, CostUSD: 0.25,
		CostSource: sessions.CostClient})
	used("run-3", 1, w.Now(), sessions.StateTimeout, sessions.Usage{InputTokens: 20, OutputTokens: 4, CostUSD: 0.5,
		CostSource: sessions.CostEstimate})
}

func TestWhatSessionsUsedIsSummedForPrograms(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	spent(w)
	a := w.get("/api/v1/session-usage")
	w.want(a, 200, "")
	var got sessions.UsageReport
	must.Do(t, json.Unmarshal(a.body, &got))
	if len(got.Days) != 2 || got.Days[0].Tier != 1 || got.Days[0].Sessions != 2 || got.Days[0].InputTokens != 30 ||
		got.Days[0].CostUSD != 0.75 ||
		got.Days[0].CostSource != sessions.CostEstimate || got.Days[1].Tier != 3 ||
		got.Days[1].CostSource != sessions.CostClient {
		t.Errorf("days %s", a.body)
	}
	if got.Total.Sessions != 3 || got.Total.CostUSD != 2.25 || got.Total.CacheReadTokens != 5000 ||
		got.Total.CostSource != sessions.CostEstimate {
		t.Errorf("total %s", a.body)
	}
	w.says(w.get("/api/v1/session-usage?days=1"), `"sessions":2`, `!"tier":3`)
	for _, days := range []string{"0", "367", "x"} {
		w.want(w.get("/api/v1/session-usage?days="+days), 400, fault.InvalidArgument)
	}
	w.says(w.get("/api/v1/sessions/run-3"), `"input_tokens":20`, `"cost_usd":0.5`, `"cost_source":"estimate"`)
}

func TestTheOverviewSaysWhatAgentsCost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.page("/", 200)
	spent(w)
	w.page("/", 200).has("Cost, 7 days $2.25 estimated, nothing the week before",
		"Cost by tier 7 days Tier 1 about $0.75 Tier 3 $1.50")
	w.advance(7 * 24 * time.Hour)
	w.page("/", 200).has("100 % down on last week")
}

func TestWhatSessionsUsedIsMeasured(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	spent(w)
	// it runs, and is not counted yet
	w.begun(sessions.Record{ID: "run-4", Work: sessions.Work{Usage: sessions.Usage{InputTokens: 7}}})
	w.measures(
		`claudeops_sessions_total{state="succeeded",tier="1"} 1`, `claudeops_sessions_total{state="timeout",tier="1"} 1`,
		`claudeops_session_tokens_total{kind="input",tier="1"} 30`,
		`claudeops_session_tokens_total{kind="cache_read",tier="3"} 5000`,
		`claudeops_session_cost_usd_total{source="client",tier="3"} 1.5`,
		`claudeops_session_cost_usd_total{source="estimate",tier="1"} 0.5`)
}

func TestTheBoundaryOfSessionsIsMeasured(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) {
		w.web.Rules.Boundary = func() health.Boundary { return health.Boundary{Kind: "landlock", ABI: 7, Whole: true} }
	})
	for id, kind := range map[string]sandbox.Kind{"run-1": sandbox.User, "run-2": sandbox.User, "run-3": sandbox.None,
		"run-4": ""} {
		r := sessions.Record{ID: id, StartedAt: w.Now()}
		if kind != "" {
			r.Boundary = &sessions.Boundary{Kind: kind}
		}
		w.begun(r)
		r.Tier, r.State, r.EndedAt = 1, sessions.StateSucceeded, w.Now()
		must.Do(t, w.store.AgentSessions.SaveSession(t.Context(), r))
	}
	w.begun(sessions.Record{ID: "run-5"}) // it runs, and is not counted yet
	w.measures(
		`claudeops_sessions_by_boundary_total{boundary="user"} 2`, `claudeops_sessions_by_boundary_total{boundary="none"} 1`,
		`claudeops_sessions_by_boundary_total{boundary="unrecorded"} 1`,
		`claudeops_boundary_info{boundary="landlock",landlock_abi="7",whole="true"} 1`)
}

func TestThePageOfSessionsShowsWhatTheyCost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	spent(w)
	w.page("/sessions", 200).has("Tokens and cost of the last 7 days", "about $0.75", "$1.50", "about $2.25")
	w.page("/sessions?state=failed", 200).lacks("Tokens and cost")
}
