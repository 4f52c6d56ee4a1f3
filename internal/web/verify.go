package web

import (
	"context"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/web/pages"
)

// How often the audit is verified behind the pages: what was added since, and all of it.
const (
	addedInterval = 5 * time.Minute
	wholeInterval = 24 * time.Hour
)

// verifiedMemo is the last verification. Pages show it with its age and never wait for a new one.
type verifiedMemo struct {
	mu      sync.Mutex
	known   bool
	report  AuditReport
	expect  string    // head of the last one that found the audit whole; it must stay in the chain
	failure string    // why the last one could not be made, or ""
	at      time.Time // of the last one
	wholeAt time.Time // of the last one that began with the first row; zero if the next one has to
}

func (m *verifiedMemo) keep(report AuditReport, err error, whole bool, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at, m.failure = now, ""
	if err != nil {
		m.failure = fault.From(err).Message
		return
	}
	m.known, m.report = true, report
	if whole {
		m.wholeAt = now
	}
	if report.OK {
		m.expect = report.Head
	} else {
		m.wholeAt = time.Time{}
	}
}

// next is the report to go on from, the head to expect, and whether all has to be read again: daily, and as long as
// something is wrong.
func (m *verifiedMemo) next(now time.Time) (known AuditReport, expect string, whole bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.report, m.expect, m.wholeAt.IsZero() || now.Sub(m.wholeAt) >= wholeInterval
}

// KeepVerifying verifies the audit now and then again and again, until ctx ends.
func (s *Server) KeepVerifying(ctx context.Context) {
	ticker := time.NewTicker(addedInterval)
	defer ticker.Stop()
	for {
		s.VerifyOnce(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// VerifyOnce verifies what was added to the audit since the last time, or all of it if that is due. A whole verification
// also expects the last head, so that rows that were cut off and written anew are noticed.
func (s *Server) VerifyOnce(ctx context.Context) {
	done, err := enter(ctx, s.heavy)
	if err != nil {
		return
	}
	defer done()
	known, expect, whole := s.checked.next(s.Now())
	var report AuditReport
	if whole {
		report, err = s.Audit.Verify(ctx, expect)
	} else {
		report, err = s.Audit.VerifyAfter(ctx, known)
	}
	if ctx.Err() != nil {
		return
	}
	s.checked.keep(report, err, whole, s.Now())
	if err != nil || !report.OK {
		s.Log.Error("the audit is not known to be whole", "problem", s.Redact(report.Problem), "first_bad", report.FirstBad, "error", err)
	}
}

// verified is what pages show.
func (s *Server) verified() pages.Verification {
	m := &s.checked
	m.mu.Lock()
	defer m.mu.Unlock()
	out := pages.Verification{
		State: "whole", Rows: m.report.Rows, Head: m.report.Head, Problem: s.words(m.report.Problem), At: pages.WhenOf(m.at, s.Now()),
	}
	switch {
	case m.failure != "":
		return pages.Verification{State: "failed", Problem: s.words(m.failure), At: out.At}
	case !m.known:
		return pages.Verification{State: "running"}
	case !m.report.OK:
		out.State = "broken"
	}
	return out
}
