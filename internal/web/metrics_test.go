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
	lines := func(want ...string) {
		t.Helper()
		w.advance(10 * time.Second) // what was just read is not read again
		text := string(w.get("/metrics").body)
		for _, line := range want {
			if absent, without := strings.CutPrefix(line, "!"); strings.Contains(text, absent) == without {
				t.Errorf("%s in\n%s", line, text)
			}
		}
	}
	lines("claudeops_records_readable 1\n", `claudeops_notices{state="waiting"} 0`+"\n", "!claudeops_open_pull_requests{",
		"!claudeops_audit_whole")
	w.refuse(2)
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
	w.verify()
	const open = `claudeops_open_pull_requests{age="`
	lines(`claudeops_proposals_total{outcome="opened"} 1`+"\n", `claudeops_proposals_total{outcome="refused"} 2`+"\n",
		`claudeops_refusals_total{gate="scope"} 2`+"\n", "claudeops_audit_whole 1\n", "claudeops_audit_rows 3\n",
		"claudeops_audit_verified_timestamp_seconds ",
		open+`under_1d",provider="fake",repository="joe/infra"} 1`+"\n",
		open+`over_30d",provider="fake",repository="joe/infra"} 0`+"\n")
	w.advance(8 * 24 * time.Hour)
	lines(open+`under_1d",provider="fake",repository="joe/infra"} 0`+"\n",
		open+`7d_to_30d",provider="fake",repository="joe/infra"} 1`+"\n")
	broken.err = errors.New("the disk is gone")
	lines("claudeops_records_readable 0\n", `claudeops_proposals_total{outcome="refused"} 2`+"\n")
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
	text := string(w.get("/metrics").body)
	for _, line := range []string{
		`claudeops_proposals_total{outcome="failed"} 0`, `claudeops_refusals_total{gate="content"} 0`,
		`claudeops_sessions_total{state="failed",tier="1"} 0`, `claudeops_sessions_by_boundary_total{boundary="user"} 0`,
		`claudeops_session_tokens_total{kind="input",tier="3"} 0`, `claudeops_session_cost_usd_total{source="client",tier="2"} 0`,
		`claudeops_schedule_sessions_total{state="failed"} 0`, `claudeops_schedule_skips_total{reason="refused"} 0`,
		`claudeops_schedule_skips_total{reason="busy"} 0`, `claudeops_schedule_last_success_timestamp_seconds 0`,
		`claudeops_schedule_interval_seconds 0`, `claudeops_webhook_deliveries_total{provider="gitea",result="taken"} 0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%s is missing", line)
		}
	}
}

func TestAScheduleThatNeverRunsIsSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.agents.plan = session.Plan{Every: time.Hour, Missing: "the policy requires a boundary, and there is none"}
	if strings.Contains(w.page("/", 200).text, "The schedule starts no session") {
		t.Error("the schedule is said to fail before it was due")
	}
	good := sessions.Record{ID: "run-0", StartedAt: w.Now(), Ending: sessions.Ending{State: sessions.StateRunning},
		Task: sessions.Task{Tier: 1, Trigger: sessions.TriggerSchedule}}
	w.begun(good)
	good.State, good.EndedAt = sessions.StateSucceeded, w.Now()
	if err := w.store.AgentSessions.SaveSession(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	succeeded := strconv.FormatFloat(float64(w.Now().Unix()), 'g', -1, 64)
	w.advance(time.Hour)
	for _, id := range []string{"run-1", "run-2"} {
		w.begun(sessions.Record{ID: id, EndedAt: w.Now(), Task: sessions.Task{Trigger: sessions.TriggerSchedule},
			Ending: sessions.Ending{State: sessions.StateSkipped, Cause: sessions.CauseRefused, Reason: "no boundary"}})
	}
	text := string(w.get("/metrics").body)
	for _, line := range []string{
		`claudeops_schedule_skips_total{reason="refused"} 2`, `claudeops_schedule_interval_seconds 3600`,
		`claudeops_schedule_sessions_total{state="succeeded"} 1`,
		"claudeops_schedule_last_success_timestamp_seconds " + succeeded,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%s is missing in %s", line, text)
		}
	}
	page := w.page("/", 200)
	page.has("The schedule starts no session")
	page.has("the policy requires a boundary")
	if health := string(w.get("/healthz").body); !strings.Contains(health, "ok") {
		t.Error(health)
	}
}

func TestMetricsSayHowManyRequestsAreLeftAtAProvider(t *testing.T) {
	t.Parallel()
	left := map[string]int{}
	w := newWorld(t, func(w *world) { w.web.Providers.Remaining = func() map[string]int { return left } })
	const name = "claudeops_provider_requests_remaining"
	if text := string(w.get("/metrics").body); strings.Contains(text, name) {
		t.Errorf("it is known before anybody said it:\n%s", text)
	}
	left["github"] = 4711
	if text := string(w.get("/metrics").body); !strings.Contains(text, name+`{provider="github"} 4711`) {
		t.Errorf("not in %s", text)
	}
}

func TestMetricsSayHowLongProvidersTook(t *testing.T) {
	t.Parallel()
	latency := health.NewProviderLatency()
	w := newWorld(t, func(w *world) { w.web.Providers.Latency = latency })
	latency.Observe("github", "2xx", 40*time.Millisecond)
	latency.Observe("github", "2xx", 3*time.Second)
	latency.Observe("gitea", "timeout", 30*time.Second)
	const name = "claudeops_provider_request_duration_seconds"
	text := string(w.get("/metrics").body)
	for _, want := range []string{
		`_bucket{outcome="2xx",provider="github",le="0.05"} 1`, `_bucket{outcome="2xx",provider="github",le="5"} 2`,
		`_sum{outcome="2xx",provider="github"} 3.04`, `_count{outcome="timeout",provider="gitea"} 1`,
	} {
		if !strings.Contains(text, name+want) {
			t.Errorf("%s%s is missing in\n%s", name, want, text)
		}
	}
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
	if err := json.Unmarshal(a.body, &got); err != nil {
		t.Fatal(err)
	}
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
	if a := w.get("/api/v1/session-usage?days=1"); !strings.Contains(string(a.body), `"sessions":2`) ||
		strings.Contains(string(a.body), `"tier":3`) {
		t.Errorf("today %s", a.body)
	}
	for _, days := range []string{"0", "367", "x"} {
		w.want(w.get("/api/v1/session-usage?days="+days), 400, fault.InvalidArgument)
	}
	one := w.get("/api/v1/sessions/run-3")
	for _, part := range []string{`"input_tokens":20`, `"cost_usd":0.5`, `"cost_source":"estimate"`} {
		if !strings.Contains(string(one.body), part) {
			t.Errorf("a session lacks %s: %s", part, one.body)
		}
	}
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
	text := string(w.get("/metrics").body)
	for _, want := range []string{
		`claudeops_sessions_total{state="succeeded",tier="1"} 1`, `claudeops_sessions_total{state="timeout",tier="1"} 1`,
		`claudeops_session_tokens_total{kind="input",tier="1"} 30`,
		`claudeops_session_tokens_total{kind="cache_read",tier="3"} 5000`,
		`claudeops_session_cost_usd_total{source="client",tier="3"} 1.5`,
		`claudeops_session_cost_usd_total{source="estimate",tier="1"} 0.5`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
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
		if err := w.store.AgentSessions.SaveSession(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	w.begun(sessions.Record{ID: "run-5"}) // it runs, and is not counted yet
	text := string(w.get("/metrics").body)
	for _, want := range []string{
		`claudeops_sessions_by_boundary_total{boundary="user"} 2`, `claudeops_sessions_by_boundary_total{boundary="none"} 1`,
		`claudeops_sessions_by_boundary_total{boundary="unrecorded"} 1`,
		`claudeops_boundary_info{boundary="landlock",landlock_abi="7",whole="true"} 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

func TestThePageOfSessionsShowsWhatTheyCost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	spent(w)
	d := w.page("/sessions", 200)
	d.has("Tokens and cost of the last 7 days", "about $0.75", "$1.50", "about $2.25")
	if strings.Contains(w.page("/sessions?state=failed", 200).text, "Tokens and cost") {
		t.Error("a part of the list has the sums of all")
	}
}
