package store

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

func TestCheckNoticesMissingGuards(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	mustExec(t, raw(t, s), dropOneGuard())
	err := s.Check(context.Background())
	wantCode(t, err, fault.Internal)
	if !strings.Contains(err.Error(), "removed the triggers") {
		t.Fatalf("got %v", err)
	}
}

func TestEveryMethodHonoursACancelledContext(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, openErr := openPlace(ctx, newPlace(t), Options{})
	_, openedErr := s.History.ByDigest(ctx, "d")
	_, reserveErr := s.Ledger.Reserve(ctx, proposal("1", "checks/a.md"), record.Claim{})
	_, auditErr := s.Audit.Page(ctx, record.AuditQuery{})
	_, verifyErr := s.Audit.Verify(ctx, "")
	_, prErr := s.LocalPulls.PRs(ctx, "demo/home-cluster", "")
	for name, err := range map[string]error{
		"Open": openErr, "Opened": openedErr, "Reserve": reserveErr, "Audit": auditErr, "VerifyAudit": verifyErr,
		"PRs":    prErr,
		"Record": s.Ledger.Record(ctx, attempt("1"), nil), "Check": s.Check(ctx), "Ping": s.Ping(ctx),
	} {
		if fault.CodeOf(err) != fault.Timeout {
			t.Errorf("%s: %v (cause %v)", name, err, errCause(err))
		}
	}
}

func TestAWaitingWriterHonoursItsContext(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	release := holdWriteLock(t, s)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	wantCode(t, s.Ledger.Record(ctx, attempt("1"), nil), fault.Timeout)
	release()
	recordAttempts(t, s, attempt("1"))
}
