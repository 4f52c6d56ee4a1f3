package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/record"
)

// A copy of a database is looked at before it is kept, and again before it takes the place of another.

// inspected is what is known of a database file that nobody uses.
type inspected struct {
	schema int64
	report record.AuditReport
}

// inspect reads a whole database file: that it is ours and no newer than this program, its structure, its references, the
// guards of the audit, and the chain with the expected head ("" for any). What is wrong with it is invalid_argument; what
// names the file in messages, as in "the backup".
func inspect(ctx context.Context, path, what, expectHead string) (found inspected, err error) {
	db, err := openPool(path, defaultBusyTimeout, false)
	if err != nil {
		return inspected{}, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if found.schema, err = knownSchema(ctx, db, what); err != nil {
		return inspected{}, damagedAs(what, err)
	}
	if err := soundFile(ctx, db, what); err != nil {
		return inspected{}, damagedAs(what, err)
	}
	v, err := newVerifier(expectHead)
	if err != nil {
		return inspected{}, err
	}
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return inspected{}, damagedAs(what, err)
	}
	defer func() { _ = tx.Rollback() }()
	if found.report, err = v.verify(ctx, tx); err != nil {
		return inspected{}, damagedAs(what, err)
	}
	if !found.report.OK() {
		return inspected{}, fault.New(fault.InvalidArgument, "the audit in %s is not whole: %s", what, found.report.Problem)
	}
	return found, nil
}

// damagedAs turns what SQLite says of a file that is no sound database into invalid_argument.
func damagedAs(what string, err error) error {
	switch causeOf(err) {
	case causeForeign, causeCorrupt, causeUnopenable:
		return fault.Wrap(err, fault.InvalidArgument, "the database in %s is damaged", what)
	}
	return err
}

// knownSchema is the version of the tables, if this program can read them.
func knownSchema(ctx context.Context, db *sql.DB, what string) (int64, error) {
	newest, err := newestVersion(sqliteMigrations)
	if err != nil {
		return 0, err
	}
	state, err := readState(ctx, db)
	switch {
	case err != nil:
		return 0, err
	case state.application != applicationID:
		return 0, fault.New(fault.InvalidArgument, "the database in %s belongs to another program", what)
	case state.version > newest:
		return 0, fault.New(fault.InvalidArgument, "%s was written by a newer claudeops (schema %d, this one knows %d); use that version",
			what, state.version, newest)
	}
	return state.version, nil
}

// soundFile looks for damage of the structure, dangling references and missing guards.
func soundFile(ctx context.Context, db *sql.DB, what string) error {
	var finding string
	if err := db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&finding); err != nil {
		return err
	}
	if finding != "ok" {
		return fault.Wrap(errors.New(finding), fault.InvalidArgument, "the database in %s is damaged", what)
	}
	var dangling int
	if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM pragma_foreign_key_check").Scan(&dangling); err != nil {
		return err
	}
	if dangling > 0 {
		return fault.New(fault.InvalidArgument, "the database in %s is damaged: %d rows refer to rows that are missing", what, dangling)
	}
	guards, err := sqliteGuards(ctx, db)
	if err == nil && guards != 3 {
		err = fault.New(fault.InvalidArgument, "somebody removed the triggers that protect the audit in %s", what)
	}
	return err
}

// sameTables refuses a database of the newest version whose tables, indexes and triggers are not exactly those that this
// program makes: one that was put in by hand would act on everything that is written from then on.
func sameTables(ctx context.Context, path, scratch, what string) error {
	fresh := place{dir: scratch, path: filepath.Join(scratch, "fresh.db")}
	if err := fresh.create(ctx, Options{BusyTimeout: defaultBusyTimeout}); err != nil {
		return err
	}
	want, err := definitions(ctx, fresh.path)
	if err != nil {
		return err
	}
	got, err := definitions(ctx, path)
	if err != nil {
		return err
	}
	for _, definition := range got {
		if !slices.Contains(want, definition) {
			return fault.Wrap(fmt.Errorf("not ours: %s", definition), fault.InvalidArgument,
				"the database in %s has tables, indexes or triggers that claudeops does not make", what)
		}
	}
	if len(got) != len(want) {
		return fault.New(fault.InvalidArgument, "the database in %s lacks tables, indexes or triggers", what)
	}
	return nil
}

// definitions are the statements that made what is in a database file.
func definitions(ctx context.Context, path string) (out []string, err error) {
	db, err := openPool(path, defaultBusyTimeout, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.QueryContext(ctx, `SELECT type || ' ' || name || ' ' || tbl_name || ' ' || COALESCE(sql, '') FROM sqlite_schema
		WHERE name NOT LIKE 'sqlite_stat%' ORDER BY 1`)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var definition string
		if err := rows.Scan(&definition); err != nil {
			return nil, err
		}
		out = append(out, definition)
	}
	return out, rows.Err()
}
