//go:build !postgres

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
)

func TestKeptStatementsAnswerAsOnesThatAreCompiledAnew(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	appendMany(t, s, 5)
	db := readerOf(s)
	db.SetMaxOpenConns(1)
	one := func(query string, args ...any) (n int) {
		t.Helper()
		if err := db.QueryRow(query, args...).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}

	t.Run("the same query while its rows are read", func(t *testing.T) {
		const query = "SELECT seq FROM audit WHERE seq >= $1 ORDER BY seq"
		tx, err := db.Begin()
		wantEqual(t, err, nil)
		var got []string
		err = queryRows(t.Context(), tx, func(rows *sql.Rows) error {
			var outer int
			if err := rows.Scan(&outer); err != nil {
				return err
			}
			return queryRows(t.Context(), tx, func(rows *sql.Rows) error {
				var inner int
				err := rows.Scan(&inner)
				got = append(got, fmt.Sprint(outer, inner))
				return err
			}, query, outer)
		}, query, 4)
		wantEqual(t, err, nil)
		wantEqual(t, got, []string{"4 4", "4 5", "5 5"})
		wantEqual(t, tx.Rollback(), nil)
	})
	t.Run("with other arguments, after rows that nobody read to their end, and after an error", func(t *testing.T) {
		const query = "SELECT seq FROM audit WHERE seq > $1 ORDER BY seq"
		wantEqual(t, one(query, 0), 1)
		wantEqual(t, one(query, 3), 4)
		if err := db.QueryRow(query, struct{}{}).Scan(new(int)); err == nil {
			t.Error("a struct is an argument")
		}
		wantEqual(t, one(query, 1), 2)
	})
	t.Run("after its caller went away", func(t *testing.T) {
		const endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + $1 FROM n) SELECT COUNT(*) FROM n"
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- db.QueryRowContext(ctx, endless, 1).Scan(new(int)) }()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		wantEqual(t, one("SELECT COUNT(*) FROM audit WHERE seq > $1", 3), 2)
	})
	t.Run("after another connection has changed the tables", func(t *testing.T) {
		const query = "SELECT COUNT(*) FROM later WHERE word <> $1"
		mustExec(t, writerOf(s), "CREATE TABLE later (word TEXT)", "INSERT INTO later VALUES ('a')")
		wantEqual(t, one(query, "b"), 1)
		mustExec(t, writerOf(s), "DROP TABLE later", "CREATE TABLE later (other INTEGER, word TEXT)",
			"INSERT INTO later VALUES (1, 'a'), (2, 'c')")
		wantEqual(t, one(query, "a"), 1)
		wantEqual(t, one("SELECT MAX(other) FROM later WHERE word <> $1", ""), 2)
	})
	t.Run("more of them than a connection keeps", func(t *testing.T) {
		for range 2 {
			for i := range maxStatements + 10 {
				wantEqual(t, one(fmt.Sprintf("SELECT seq + %d FROM audit WHERE seq = $1", i), 2), 2+i)
			}
		}
	})
}

func TestWhatIsKeptCompiled(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]bool{
		"SELECT 1": true, "\n\tINSERT INTO a VALUES (1)": true, "WITH a AS (SELECT 1) SELECT 1": true,
		"UPDATE a SET b = 1": true, "DELETE FROM a": true,
		"PRAGMA data_version": false, "BEGIN": false, "SELECT 1; SELECT 2": false, "": false, "VACUUM INTO 'x'": false,
		"CREATE TABLE a (b)": false,
	} {
		wantEqual(t, keepsCompiled(query), want)
	}
}
