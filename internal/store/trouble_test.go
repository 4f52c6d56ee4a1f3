package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
)

func TestCallsAfterTheFileIsReplacedAreRefused(t *testing.T) {
	s := openNew(t)
	if err := os.Rename(s.Path(), s.Path()+".old"); err != nil {
		t.Fatal(err)
	}
	err := s.Record(context.Background(), attempt("1"), nil)
	wantCode(t, err, fault.Internal)
	if !strings.Contains(err.Error(), "restart claudeops") {
		t.Fatalf("got %v", err)
	}
	wantCode(t, s.Ping(context.Background()), fault.Internal)
}

func TestADiskThatIsFullIsNamed(t *testing.T) {
	s := openNew(t)
	if _, err := s.writer.Exec("PRAGMA max_page_count = 1"); err != nil {
		t.Fatal(err)
	}
	var err error
	for i := 0; i < 1000 && err == nil; i++ {
		err = s.Record(context.Background(), attempt(fmt.Sprint(i)), nil)
	}
	wantCode(t, err, fault.Internal)
	if !strings.Contains(err.Error(), "is full; free some space") {
		t.Fatalf("got %v", err)
	}
	if got := verify(t, s, ""); !got.OK() {
		t.Fatalf("got %+v", got)
	}
}

func TestDamageFoundLaterAsksForABackup(t *testing.T) {
	s := openNew(t)
	for i := range 200 {
		record(t, s, attempt(fmt.Sprint(i)))
	}
	wantEqual(t, s.Check(context.Background()), nil)
	path := s.Path()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	middle := info.Size() / 2 / 4096 * 4096 // the tables' definitions stay readable
	overwrite(t, path, middle, int(info.Size()-middle))
	s = open(t, filepath.Dir(path), Options{})
	for name, err := range map[string]error{
		"Check":  s.Check(context.Background()),
		"Record": s.Record(context.Background(), attempt("x"), nil),
	} {
		wantCode(t, err, fault.Internal)
		const want = "is damaged; run `claudeops audit verify` and restore a backup"
		if !strings.Contains(err.Error(), want) || errCause(err) == nil {
			t.Errorf("%s: %v (cause %v)", name, err, errCause(err))
		}
	}
}

func TestCheckNoticesMissingGuards(t *testing.T) {
	s := openNew(t)
	mustExec(t, raw(t, s), "DROP TRIGGER audit_refuses_update")
	err := s.Check(context.Background())
	wantCode(t, err, fault.Internal)
	if !strings.Contains(err.Error(), "removed the triggers") {
		t.Fatalf("got %v", err)
	}
}

func TestEveryMethodHonoursACancelledContext(t *testing.T) {
	s := openNew(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, openErr := Open(ctx, filepath.Join(t.TempDir(), "state"), Options{})
	_, openedErr := s.ByDigest(ctx, "d")
	_, reserveErr := s.Reserve(ctx, proposal("1", "checks/a.md"), 0)
	_, auditErr := s.Audit(ctx, AuditQuery{})
	_, verifyErr := s.VerifyAudit(ctx, "")
	_, prErr := s.PRs(ctx, "demo/home-cluster", "")
	for name, err := range map[string]error{
		"Open": openErr, "Opened": openedErr, "Reserve": reserveErr, "Audit": auditErr, "VerifyAudit": verifyErr,
		"PRs":    prErr,
		"Record": s.Record(ctx, attempt("1"), nil), "Check": s.Check(ctx), "Ping": s.Ping(ctx),
	} {
		if fault.CodeOf(err) != fault.Timeout {
			t.Errorf("%s: %v (cause %v)", name, err, errCause(err))
		}
	}
}

func TestAWaitingWriterHonoursItsContext(t *testing.T) {
	s := openNew(t)
	other := raw(t, s)
	mustExec(t, other, "BEGIN IMMEDIATE")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	wantCode(t, s.Record(ctx, attempt("1"), nil), fault.Timeout)
	mustExec(t, other, "ROLLBACK")
	record(t, s, attempt("1"))
}
