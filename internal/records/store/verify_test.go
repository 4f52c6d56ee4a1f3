package store

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

func TestVerifyNamesTheFirstBadRow(t *testing.T) {
	t.Parallel()
	columns := strings.Join(auditColumnNames()[1:], ", ") // all but seq
	swap := func(target string) string {
		return "UPDATE audit SET (" + columns + ", hash) = (" +
			"SELECT " + columns + ", hash FROM kept WHERE seq = " + target + ")"
	}
	tests := map[string]struct {
		statements []string
		bad        int64
		problem    string
	}{
		"a text altered":        {[]string{"UPDATE audit SET caller = caller || '!' WHERE seq = 4"}, 4, "was altered"},
		"a number altered":      {[]string{"UPDATE audit SET tier = 3 WHERE seq = 4"}, 4, "was altered"},
		"a time altered":        {[]string{"UPDATE audit SET time_us = time_us + 1 WHERE seq = 10"}, 10, "was altered"},
		"a hash altered":        {[]string{"UPDATE audit SET hash = upper(hash) WHERE seq = 4"}, 4, "was altered"},
		"the first row altered": {[]string{"UPDATE audit SET code = '' WHERE seq = 1"}, 1, "was altered"},
		"text moved between columns": {[]string{"UPDATE audit SET owner = owner || repo, repo = '' WHERE seq = 4"},
			4, "was altered"},
		"a row missing":      {[]string{"DELETE FROM audit WHERE seq = 4"}, 4, "is missing"},
		"the beginning gone": {[]string{"DELETE FROM audit WHERE seq < 4"}, 1, "is missing"},
		"a row missing, the others renumbered": {[]string{"DELETE FROM audit WHERE seq = 4",
			"UPDATE audit SET seq = seq - 1 WHERE seq > 4"}, 4, "does not follow"},
		"rows reordered": {[]string{swap("5") + " WHERE seq = 4", swap("4") + " WHERE seq = 5"}, 4,
			"does not follow"},
		"a row copied":                      {[]string{swap("10") + " WHERE seq = 4"}, 4, "does not follow"},
		"a column that is no text any more": {textNoMore(), 4, "was altered"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := openNew(t)
			for i := range 10 {
				recordAttempts(t, s, attempt(fmt.Sprint(i+1)))
			}
			tamper(t, s, test.statements...)
			got := verify(t, s, "")
			if got.OK() || got.FirstBad != test.bad || got.Rows != test.bad-1 || !strings.Contains(got.Problem, test.problem) {
				t.Fatalf("got %+v", got)
			}
		})
	}
}

// tamper does what somebody does who can write to the disk.
func tamper(t testing.TB, s *Store, statements ...string) {
	t.Helper()
	db := raw(t, s)
	mustExec(t, db, dropGuards()...)
	mustExec(t, db, "CREATE TABLE kept AS SELECT * FROM audit")
	mustExec(t, db, statements...)
}

func TestVerifyKnowsTheExpectedHead(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	wantEqual(t, verify(t, s, genesisHash), record.AuditReport{Head: genesisHash})
	recordAttempts(t, s, attempt("1"), attempt("2"))
	_, head, err := s.Audit.Head(ctx)
	wantEqual(t, err, nil)
	recordAttempts(t, s, attempt("3"))

	got := verify(t, s, " "+strings.ToUpper(head)+"\n")
	if !got.OK() || got.ExpectedSeq != 2 || got.Rows != 3 || got.HeadSeq != 3 {
		t.Fatalf("a later head is fine: %+v", got)
	}
	if got := verify(t, s, genesisHash); !got.OK() {
		t.Fatalf("every chain contains its beginning: %+v", got)
	}
	for _, malformed := range []string{"x", head[:63], head + "0", "g" + head[1:]} {
		_, err := s.Audit.Verify(ctx, malformed)
		wantCode(t, err, fault.InvalidArgument)
	}
}

func TestVerifyNoticesACutTailOnlyByItsHead(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]string{
		"the last rows": "DELETE FROM audit WHERE seq > 1", "all rows": "DELETE FROM audit",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, s := context.Background(), openNew(t)
			recordAttempts(t, s, attempt("1"), attempt("2"), attempt("3"))
			_, head, err := s.Audit.Head(ctx)
			wantEqual(t, err, nil)
			tamper(t, s, cut)
			if got := verify(t, s, ""); !got.OK() {
				t.Fatalf("what is left is a chain: %+v", got)
			}
			got := verify(t, s, head)
			if got.OK() || got.FirstBad != 0 || !strings.Contains(got.Problem, "does not contain the expected head") {
				t.Fatalf("got %+v", got)
			}
		})
	}
}

func TestADamagedRowIsNotShownAsIfItWereNone(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	recordAttempts(t, s, attempt("1"))
	tamper(t, s, "UPDATE audit SET verdicts = '[{' WHERE seq = 1")
	_, err := s.Audit.Page(context.Background(), record.AuditQuery{})
	wantCode(t, err, fault.Internal)
	if !strings.Contains(err.Error(), "row 1 of the audit") {
		t.Fatalf("got %v", err)
	}
}
