package store

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/fault"
)

func TestTheDatabaseRefusesToChangeTheAudit(t *testing.T) {
	s := openNew(t)
	record(t, s, attempt("1"), attempt("2"), attempt("3"))
	all := strings.Join(auditColumnNames(), ", ") + ", hash"
	forged := func(seq, prev string) string {
		return strings.Replace(strings.Replace(all, "seq,", seq+",", 1), "prev_hash,", prev+",", 1)
	}
	const lastHash = "(SELECT hash FROM audit WHERE seq = 3)"
	insert := " INTO audit (" + all + ") SELECT "
	for name, statement := range map[string]string{
		"update":                       "UPDATE audit SET caller = 'x' WHERE seq = 2",
		"update of nothing but a hash": "UPDATE OR REPLACE audit SET hash = hash WHERE seq = 2",
		"update of a number":           "UPDATE OR REPLACE audit SET seq = 2 WHERE seq = 3",
		"delete":                       "DELETE FROM audit WHERE seq = 3",
		"delete of all":                "DELETE FROM audit",
		"replace":                      "REPLACE" + insert + all + " FROM audit WHERE seq = 3",
		"insert or replace":            "INSERT OR REPLACE" + insert + all + " FROM audit WHERE seq = 2",
		"insert or ignore":             "INSERT OR IGNORE" + insert + forged("2", "prev_hash") + " FROM audit WHERE seq = 3",
		"upsert": "INSERT" + insert + all +
			" FROM audit WHERE seq = 2 ON CONFLICT DO UPDATE SET caller = 'x'",
		"insert with a gap":             "INSERT" + insert + forged("5", lastHash) + " FROM audit WHERE seq = 3",
		"insert before the first":       "INSERT" + insert + forged("0", lastHash) + " FROM audit WHERE seq = 3",
		"insert without a number":       "INSERT" + insert + forged("NULL", lastHash) + " FROM audit WHERE seq = 3",
		"insert on another hash":        "INSERT" + insert + forged("4", "prev_hash") + " FROM audit WHERE seq = 3",
		"insert or fail on a null hash": "INSERT OR FAIL" + insert + forged("4", "NULL") + " FROM audit WHERE seq = 3",
	} {
		t.Run(name, func(t *testing.T) {
			before := verify(t, s, "")
			for _, pragma := range []string{"PRAGMA recursive_triggers = 0", "PRAGMA recursive_triggers = 1"} {
				db := raw(t, s)
				mustExec(t, db, pragma)
				if _, err := db.Exec(statement); err == nil || !strings.Contains(err.Error(), "the audit is ") {
					t.Errorf("%s: %v", pragma, err)
				}
				wantEqual(t, verify(t, s, ""), before)
			}
		})
	}
	if _, err := raw(t, s).Exec("INSERT" + insert + forged("4", lastHash) + " FROM audit WHERE seq = 3"); err != nil {
		t.Fatalf("a row that follows must be accepted, or this test proves nothing: %v", err)
	}
}

func TestVerifyNamesTheFirstBadRow(t *testing.T) {
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
		"rows reordered": {[]string{swap("5") + " WHERE seq = 4", swap("4") + " WHERE seq = 5"}, 4, "does not follow"},
		"a row copied":   {[]string{swap("10") + " WHERE seq = 4"}, 4, "does not follow"},
		"a column that is no text any more": {[]string{
			"CREATE TABLE loose AS SELECT * FROM audit", "DROP TABLE audit", "ALTER TABLE loose RENAME TO audit",
			"UPDATE audit SET message = NULL, paths = x'00ff' WHERE seq = 4"}, 4, "was altered"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := openNew(t)
			for i := range 10 {
				record(t, s, attempt(fmt.Sprint(i+1)))
			}
			tamper(t, s, test.statements...)
			got := verify(t, s, "")
			if got.OK() || got.FirstBad != test.bad || got.Rows != test.bad-1 || !strings.Contains(got.Problem, test.problem) {
				t.Fatalf("got %+v", got)
			}
		})
	}
}

// tamper does what somebody does who can write the file.
func tamper(t testing.TB, s *Store, statements ...string) {
	t.Helper()
	db := raw(t, s)
	mustExec(t, db, "DROP TRIGGER audit_refuses_update", "DROP TRIGGER audit_refuses_delete",
		"DROP TRIGGER audit_insert_extends_chain", "CREATE TABLE kept AS SELECT * FROM audit")
	mustExec(t, db, statements...)
}

func TestVerifyKnowsTheExpectedHead(t *testing.T) {
	ctx, s := context.Background(), openNew(t)
	wantEqual(t, verify(t, s, GenesisHash), AuditReport{Head: GenesisHash})
	record(t, s, attempt("1"), attempt("2"))
	_, head, err := s.Head(ctx)
	wantEqual(t, err, nil)
	record(t, s, attempt("3"))

	got := verify(t, s, " "+strings.ToUpper(head)+"\n")
	if !got.OK() || got.ExpectedSeq != 2 || got.Rows != 3 || got.HeadSeq != 3 {
		t.Fatalf("a later head is fine: %+v", got)
	}
	if got := verify(t, s, GenesisHash); !got.OK() {
		t.Fatalf("every chain contains its beginning: %+v", got)
	}
	for _, malformed := range []string{"x", head[:63], head + "0", "g" + head[1:]} {
		_, err := s.VerifyAudit(ctx, malformed)
		wantCode(t, err, fault.InvalidArgument)
	}
}

func TestVerifyNoticesACutTailOnlyByItsHead(t *testing.T) {
	for name, cut := range map[string]string{
		"the last rows": "DELETE FROM audit WHERE seq > 1", "all rows": "DELETE FROM audit",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, s := context.Background(), openNew(t)
			record(t, s, attempt("1"), attempt("2"), attempt("3"))
			_, head, err := s.Head(ctx)
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
	s := openNew(t)
	record(t, s, attempt("1"))
	tamper(t, s, "UPDATE audit SET verdicts = '[{' WHERE seq = 1")
	_, err := s.Audit(context.Background(), AuditQuery{})
	wantCode(t, err, fault.Internal)
	if !strings.Contains(err.Error(), "row 1 of the audit") {
		t.Fatalf("got %v", err)
	}
}
