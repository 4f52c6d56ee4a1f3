package web_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/records"
)

// scriptedAudit answers verifications from a list and remembers what was asked.
type scriptedAudit struct {
	records.Audit
	answers []record.AuditReport
	err     error
	asked   []string
}

func (a *scriptedAudit) next() (record.AuditReport, error) {
	if a.err != nil {
		return record.AuditReport{}, a.err
	}
	r := a.answers[0]
	a.answers = a.answers[1:]
	return r, nil
}

func (a *scriptedAudit) Verify(_ context.Context, expect string) (record.AuditReport, error) {
	a.asked = append(a.asked, "whole "+expect)
	return a.next()
}

func (a *scriptedAudit) VerifyAfter(_ context.Context, known record.AuditReport) (record.AuditReport, error) {
	a.asked = append(a.asked, fmt.Sprintf("after %d", known.HeadSeq))
	return a.next()
}

func TestTheAuditIsVerifiedFromWhereTheLastTimeEndedAndWholeOnceADay(t *testing.T) {
	t.Parallel()
	sound := func(seq int64) record.AuditReport {
		return record.AuditReport{Rows: seq, HeadSeq: seq, Head: fmt.Sprintf("head-%d", seq)}
	}
	broken := record.AuditReport{Rows: 2, HeadSeq: 2, Head: "head-2", Problem: "rows were cut off"}
	audit := &scriptedAudit{answers: []record.AuditReport{sound(3), sound(5), sound(6), broken, broken, sound(7),
		sound(8)}}
	w := newWorld(t, func(w *world) { audit.Audit = w.web.Records.Audit; w.web.Records.Audit = audit })
	for i, want := range []string{"whole", "whole", "whole", "broken", "broken", "whole", "whole"} {
		if i == 2 {
			w.advance(20 * time.Hour)
		}
		w.advance(5 * time.Minute)
		w.verify()
		w.page("/audit", 200).has("The record is " + want + ":")
	}
	want := "whole |after 3|after 5|after 6|whole head-6|whole head-6|after 7"
	if got := strings.Join(audit.asked, "|"); got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
	audit.answers = []record.AuditReport{sound(8)}
	w.advance(24 * time.Hour)
	w.verify()
	if last := audit.asked[len(audit.asked)-1]; last != "whole head-8" {
		t.Errorf("after a day: %s", last)
	}
	audit.err = fault.Wrap(errors.New("x"), fault.Internal, "the disk is gone")
	w.advance(5 * time.Minute)
	w.verify()
	w.page("/", 200).has("The records could not be verified", "The disk is gone.")
}

func TestNoPageVerifies(t *testing.T) {
	t.Parallel()
	audit := &scriptedAudit{}
	w := newWorld(t, func(w *world) { audit.Audit = w.web.Records.Audit; w.web.Records.Audit = audit })
	w.page("/", 200)
	w.page("/audit", 200).has("The record is being verified")
	if len(audit.asked) != 0 {
		t.Errorf("asked %q", audit.asked)
	}
	audit.answers = []record.AuditReport{{Problem: "row 1 was altered", FirstBad: 1}}
	w.want(w.get("/api/v1/audit/verify"), 200, "") // somebody who asks gets a real one
	w.page("/audit", 200).has("The record is broken", "row 1 was altered")
}
