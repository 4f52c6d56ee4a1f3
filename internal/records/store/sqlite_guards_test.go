//go:build !postgres

package store

import (
	"strings"
	"testing"
)

func TestTheDatabaseRefusesToChangeTheAudit(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	recordAttempts(t, s, attempt("1"), attempt("2"), attempt("3"))
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
