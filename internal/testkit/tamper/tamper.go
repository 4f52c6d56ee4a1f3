// Package tamper rewrites the audit, for tests of what notices it.
package tamper

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	_ "modernc.org/sqlite" // the driver
)

// columns returns the columns that the hash of a row covers, as the package documentation of internal/records/store has
// them.
func columns() []string {
	return strings.Split(
		"seq, prev_hash, time_us, request_id, door, caller, tier, action, provider, owner, repo, base, branch, "+
			"title, paths, digest, verdicts, outcome, code, message, pr_number, pr_url, duration_us, "+
			"actor, policy", ", ")
}

// Rewrite does what somebody can do who may write the database: it removes rows of the audit, numbers the rest anew,
// and hashes the chain again by the documented algorithm, so that it is sound.
func Rewrite(path string, remove ...int64) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	ctx := context.Background()
	guards, err := column[string](ctx, db, "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'audit'")
	if err != nil {
		return err
	}
	triggers, err := column[string](ctx, db,
		"SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'audit'")
	if err != nil {
		return err
	}
	for _, name := range triggers {
		if _, err := db.ExecContext(ctx, "DROP TRIGGER "+name); err != nil {
			return err
		}
	}
	// the index, whose rows have numbers of the audit
	if _, err := db.ExecContext(ctx, "DELETE FROM attempts"); err != nil {
		return err
	}
	for _, seq := range remove {
		if _, err := db.ExecContext(ctx, "DELETE FROM audit WHERE seq = ?", seq); err != nil {
			return err
		}
	}
	seqs, err := column[int64](ctx, db, "SELECT seq FROM audit ORDER BY seq")
	if err != nil {
		return err
	}
	prev := strings.Repeat("0", sha256.Size*2)
	for i, was := range seqs {
		if prev, err = rehash(ctx, db, was, int64(i+1), prev); err != nil {
			return err
		}
	}
	for _, guard := range guards {
		if _, err := db.ExecContext(ctx, guard); err != nil {
			return err
		}
	}
	return nil
}

func column[T any](ctx context.Context, db *sql.DB, query string) (out []T, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var one T
		if err := rows.Scan(&one); err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, rows.Err()
}

// rehash gives a row another number and the hash of the row before, and returns its own.
func rehash(ctx context.Context, db *sql.DB, was, seq int64, prev string) (string, error) {
	if _, err := db.ExecContext(ctx, "UPDATE audit SET seq = ?, prev_hash = ? WHERE seq = ?", seq, prev, was); err != nil {
		return "", err
	}
	names := columns()
	values, dest := make([]any, len(names)), make([]any, len(names))
	for j := range values {
		dest[j] = &values[j]
	}
	query := "SELECT " + strings.Join(names, ", ") + " FROM audit WHERE seq = ?" // #nosec G202: names of ours
	if err := db.QueryRowContext(ctx, query, seq).Scan(dest...); err != nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString("claudeops-audit-v1\n")
	for j, name := range names {
		value := fmt.Sprint(values[j])
		if (name == "actor" || name == "policy") && value == "" {
			continue
		}
		fmt.Fprintf(&text, "%s=%d:%s\n", name, len(value), value)
	}
	sum := sha256.Sum256([]byte(text.String()))
	hash := hex.EncodeToString(sum[:])
	_, err := db.ExecContext(ctx, "UPDATE audit SET hash = ? WHERE seq = ?", hash, seq)
	return hash, err
}
