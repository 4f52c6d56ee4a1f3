package web_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/system/confine"
	"github.com/claudeops/claudeops/internal/web/metrics"
)

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
	w.page("/", 200).has("Cost, 7 days about $2.25 nothing the week before",
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
		w.web.Rules.Boundary = func() metrics.Boundary { return metrics.Boundary{Kind: "landlock", ABI: 7, Whole: true} }
	})
	for id, kind := range map[string]confine.Kind{"run-1": confine.User, "run-2": confine.User, "run-3": confine.None,
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
