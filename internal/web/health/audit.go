package health

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// How often the audit is verified behind the pages: what was added since, and all of it.
const (
	addedInterval = 5 * time.Minute
	wholeInterval = 24 * time.Hour
)

// Verification is the result of verifying the audit.
type Verification struct {
	Known   bool // there is a Report
	Report  record.AuditReport
	Failure string    // why the last one could not be made, or ""
	At      time.Time // of the last one
}

// lastVerification is the last verification. Pages show it with its age and never wait for a new one.
type lastVerification struct {
	last    Verification
	expect  string    // head of the last one that found the audit whole; it must stay in the chain
	wholeAt time.Time // of the last one that began with the first row; zero if the next one has to
}

func (m *lastVerification) keep(report record.AuditReport, err error, whole bool, now time.Time) {
	m.last.At, m.last.Failure = now, ""
	if err != nil {
		m.last.Failure = fault.From(err).Message
		return
	}
	m.last.Known, m.last.Report = true, report
	if whole {
		m.wholeAt = now
	}
	if report.OK() {
		m.expect = report.Head
	} else {
		m.wholeAt = time.Time{}
	}
}

// next returns the report to go on from, the head to expect, and whether all has to be read again: daily, and as long
// as something is wrong.
func (m *lastVerification) next(now time.Time) (known record.AuditReport, expect string, whole bool) {
	return m.last.Report, m.expect, m.wholeAt.IsZero() || now.Sub(m.wholeAt) >= wholeInterval
}

// KeepVerifying verifies the audit now and then again and again, until ctx ends.
func (c *Checker) KeepVerifying(ctx context.Context) {
	ticker := time.NewTicker(addedInterval)
	defer ticker.Stop()
	for {
		c.VerifyOnce(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// VerifyOnce verifies what was added to the audit since the last time, or all of it if that is due. A whole
// verification also expects the last head, so that rows that were cut off and written anew are noticed.
func (c *Checker) VerifyOnce(ctx context.Context) {
	done, err := c.verifying.Wait(ctx)
	if err != nil {
		return
	}
	defer done()
	c.mu.Lock()
	known, expect, whole := c.verified.next(c.env.Now())
	c.mu.Unlock()
	var report record.AuditReport
	if whole {
		report, err = c.audit.Verify(ctx, expect)
	} else {
		report, err = c.audit.VerifyAfter(ctx, known)
	}
	if ctx.Err() != nil {
		return
	}
	c.keep(report, err, whole)
	if err != nil || !report.OK() {
		c.env.Log.Error("the audit is not known to be whole", "problem", c.env.Redact(report.Problem), "first_bad",
			report.FirstBad, "error", err)
	}
}

func (c *Checker) keep(report record.AuditReport, err error, whole bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.verified.keep(report, err, whole, c.env.Now())
	c.judge()
}

// LastVerification returns the last verification of the audit. It waits for none.
func (c *Checker) LastVerification() Verification {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.verified.last
}

// VerifyAudit verifies the whole audit now, which also must contain the head, if one is given, and agree with the marks
// of pull requests at the providers, if pulls is true. Others wait meanwhile.
func (c *Checker) VerifyAudit(ctx context.Context, expectHead string, pulls bool) (record.AuditReport, error) {
	done, err := c.verifying.Wait(ctx)
	if err != nil {
		return record.AuditReport{}, err
	}
	defer done()
	report, err := c.audit.Verify(ctx, expectHead)
	if err == nil && pulls && c.compare != nil {
		checks, failed := c.compare(ctx)
		report, err = report.Against(checks...), failed
	}
	if err == nil && !report.OK() && expectHead == "" {
		c.keep(report, nil, true) // bad news is for the pages, too
	}
	return report, err
}
