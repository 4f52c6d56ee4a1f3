//go:build postgres

package store

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
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
	insert := "INSERT INTO audit (" + all + ") SELECT "
	for name, statement := range map[string]string{
		"update":                  "UPDATE audit SET caller = 'x' WHERE seq = 2",
		"update of nothing":       "UPDATE audit SET caller = 'x' WHERE seq = 99",
		"delete":                  "DELETE FROM audit WHERE seq = 3",
		"delete of all":           "DELETE FROM audit",
		"truncate":                "TRUNCATE audit",
		"truncate of all":         "TRUNCATE audit, notices CASCADE",
		"merge":                   "MERGE INTO audit a USING (VALUES (3)) v (n) ON a.seq = n WHEN MATCHED THEN DELETE",
		"upsert":                  insert + all + " FROM audit WHERE seq = 2 ON CONFLICT (seq) DO UPDATE SET caller = 'x'",
		"insert or nothing":       insert + all + " FROM audit WHERE seq = 2 ON CONFLICT DO NOTHING",
		"insert with a gap":       insert + forged("5", lastHash) + " FROM audit WHERE seq = 3",
		"insert before the first": insert + forged("0", lastHash) + " FROM audit WHERE seq = 3",
		"insert without a number": insert + forged("NULL", lastHash) + " FROM audit WHERE seq = 3",
		"insert on another hash":  insert + forged("4", "prev_hash") + " FROM audit WHERE seq = 3",
		"insert on a null hash":   insert + forged("4", "NULL") + " FROM audit WHERE seq = 3",
		"insert of two": insert + "n, " + strings.TrimPrefix(all, "seq, ") +
			" FROM audit, (VALUES (3), (4)) v (n) WHERE seq = 2",
	} {
		t.Run(name, func(t *testing.T) {
			before := verify(t, s, "")
			for _, setting := range []string{"SET session_replication_role = origin", "SET session_replication_role = replica"} {
				db := raw(t, s)
				mustExec(t, db, setting)
				if _, err := db.Exec(statement); err == nil || !strings.Contains(err.Error(), "the audit is ") {
					t.Errorf("%s: %v", setting, err)
				}
				wantEqual(t, verify(t, s, ""), before)
			}
		})
	}
	if _, err := raw(t, s).Exec(insert + forged("4", lastHash) + " FROM audit WHERE seq = 3"); err != nil {
		t.Fatalf("a row that follows must be accepted, or this test proves nothing: %v", err)
	}
}

func TestNoTemporaryTableStandsInForTheAudit(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	recordAttempts(t, s, attempt("1"))
	db := raw(t, s)
	mustExec(t, db, "CREATE TEMPORARY TABLE audit AS SELECT 41::bigint AS seq, repeat('0', 64) AS hash")
	all := strings.Join(auditColumnNames(), ", ") + ", hash"
	var schema string
	wantEqual(t, readerOf(s).QueryRow("SELECT current_schema()").Scan(&schema), nil)
	_, err := db.Exec(fmt.Sprintf("INSERT INTO %s.audit (%s) SELECT 42, repeat('0', 64), %s FROM %s.audit", schema, all,
		strings.TrimPrefix(all, "seq, prev_hash, "), schema))
	if err == nil || !strings.Contains(err.Error(), "the audit is a chain") {
		t.Fatalf("got %v", err)
	}
}

// grants returns the statements that docs/explain/records.md lists for a user that does not own the tables.
func grants(schema, role string) []string {
	return []string{
		"GRANT USAGE ON SCHEMA " + schema + " TO " + role,
		"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA " + schema + " TO " + role,
		"REVOKE UPDATE, DELETE ON " + schema + ".audit FROM " + role,
		"REVOKE INSERT, UPDATE, DELETE ON " + schema + ".claudeops_versions FROM " + role,
	}
}

func TestAUserThatDoesNotOwnTheTablesCanWorkAndCannotUnguardTheAudit(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	u, err := url.Parse(place)
	wantEqual(t, err, nil)
	schema, role, admin := u.Query().Get("search_path"), "r_"+
		u.Query().Get("search_path"), connect(t, os.Getenv(testDatabase))
	mustExec(t, admin, "CREATE ROLE "+role+" LOGIN PASSWORD 'user-password'")
	t.Cleanup(func() { mustExec(t, admin, "DROP OWNED BY "+role, "DROP ROLE "+role) })
	asUser := changed(t, place, func(u *url.URL) { u.User = url.UserPassword(role, "user-password") })

	mustExec(t, admin, grants(schema, role)[0])
	_, err = openPlace(t.Context(), asUser, Options{}) // there is nothing yet, and it may not make it
	wantCode(t, err, fault.Misconfigured)
	if !strings.Contains(err.Error(), "denies the user") || !strings.Contains(err.Error(), "docs/explain/records.md") {
		t.Fatalf("got %v", err)
	}
	open(t, place, Options{})
	mustExec(t, admin, "SET search_path = "+schema)
	mustExec(t, admin, grants(schema, role)...)
	useAll(t, open(t, asUser, Options{Now: noon}))
	for _, statement := range append(dropGuards(), dropOneGuard(), "DELETE FROM audit", "TRUNCATE audit",
		"DROP TABLE audit",
		"CREATE OR REPLACE FUNCTION audit_refuses_changes() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
		"INSERT INTO claudeops_versions (version_id, is_applied) VALUES (99, true)") {
		if _, err := connect(t, asUser).Exec(statement); sqlState(err) != stateNoPrivilege {
			t.Errorf("%s: %v", statement, err)
		}
	}
}

// useAll calls what needs rights.
func useAll(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	dryRun := proposal("dry", "checks/a.md")
	wantEqual(t, s.Ledger.Record(ctx, attempt("dry"), &dryRun, notice("a")), nil)
	reserve(t, s, proposal("1", "checks/a.md"), 0)
	wantEqual(t, s.Ledger.Advance(ctx, "1", record.Progress{State: record.StateCommitted}), nil)
	finish(t, s, "1", opened(1))
	wantEqual(t, claim(t, s, noon(), 1), "a/0")
	settle(t, s, 1, record.NoticeSettlement{Delivered: true})
	wantEqual(t, claim(t, s, noon().AddDate(1, 0, 0), 1), "")
	insert(t, s, demoRepo, pull("a"))
	wantEqual(t, s.LocalPulls.UpdatePR(ctx, demoRepo, 1, closePR), nil)
	wantEqual(t, s.Check(ctx), nil)
	wantEqual(t, abandoned(t, s), map[string]bool{})
}
