package web_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
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
