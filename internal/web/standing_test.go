package web_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/web"
	"github.com/claudeops/claudeops/internal/web/records"
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
	records.Summary
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
	for _, id := range []string{"run-1", "run-2"} {
		w.begun(sessions.Record{ID: id, EndedAt: w.Now(), Task: sessions.Task{Trigger: sessions.TriggerSchedule},
			Ending: sessions.Ending{State: sessions.StateSkipped, Cause: sessions.CauseRefused, Reason: "no boundary"}})
	}
	text := string(w.get("/metrics").body)
	for _, line := range []string{`claudeops_schedule_skips_total{reason="refused"} 2`, `claudeops_schedule_interval_seconds 3600`} {
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
