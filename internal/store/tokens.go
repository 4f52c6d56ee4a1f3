package store

import (
	"context"
	"database/sql"
	"errors"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/record"
)

var (
	_ access.Tokens   = (*Store)(nil)
	_ access.Sessions = (*Store)(nil)
)

const tokenColumns = "id, name, hash, max_tier, scopes, created_us, revoked_us"

// InsertToken keeps a token, and appends the rows to the audit. Its name must be new among the tokens that are good; else it is
// conflict, and nothing is kept.
func (s *Store) InsertToken(ctx context.Context, t access.Token, rows ...record.Attempt) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO api_tokens ("+tokenColumns+") VALUES ("+placeholders(1, 7)+")",
			text(t.ID), text(t.Name), text(t.Hash), int64(t.MaxTier), t.Scopes.String(), at(&t.CreatedAt), at(&t.RevokedAt))
		if causeOf(err) == causeUnique {
			return fault.Wrap(err, fault.Conflict, "there is a token with the name %q already; revoke it, or choose another name", t.Name)
		}
		if err != nil {
			return err
		}
		return s.appendAll(ctx, tx, rows)
	})
}

// Tokens returns every token, oldest first.
func (s *Store) Tokens(ctx context.Context) (out []access.Token, err error) {
	err = s.read(ctx, func(tx *sql.Tx) error {
		out, err = selectTokens(ctx, tx, "ORDER BY created_us, id")
		return err
	})
	return out, err
}

// FindToken implements access.Tokens.
func (s *Store) FindToken(ctx context.Context, hash string) (t access.Token, found bool, err error) {
	err = s.read(ctx, func(tx *sql.Tx) error {
		tokens, err := selectTokens(ctx, tx, "WHERE hash = $1", text(hash))
		if len(tokens) > 0 {
			t, found = tokens[0], true
		}
		return err
	})
	return t, found, err
}

// TokenNamed implements access.Tokens.
func (s *Store) TokenNamed(ctx context.Context, name string) (found bool, err error) {
	err = s.read(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM api_tokens WHERE lower(name) = lower(CAST($1 AS TEXT)))", text(name)).Scan(&found)
	})
	return found, err
}

// AnyToken reports whether a token was ever made, revoked ones included.
func (s *Store) AnyToken(ctx context.Context) (found bool, err error) {
	err = s.read(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM api_tokens)").Scan(&found)
	})
	return found, err
}

// RevokeToken makes the good token with the id or name useless from now on, and appends the rows to the audit; not_found if
// there is none.
func (s *Store) RevokeToken(ctx context.Context, idOrName string, rows ...record.Attempt) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx,
			"UPDATE api_tokens SET revoked_us = $1 WHERE revoked_us IS NULL AND (id = $2 OR name = $2)",
			micros(s.opts.Now()), text(idOrName))
		if err != nil {
			return err
		}
		revoked, err := result.RowsAffected()
		if err == nil && revoked == 0 {
			return fault.New(fault.NotFound, "there is no good token with the name or id %q; `claudeops token list` shows them", idOrName)
		}
		if err != nil {
			return err
		}
		return s.appendAll(ctx, tx, rows)
	})
}

// appendAll appends rows to the audit.
func (s *Store) appendAll(ctx context.Context, tx *sql.Tx, rows []record.Attempt) error {
	for _, row := range rows {
		if _, err := s.appendAudit(ctx, tx, row); err != nil {
			return err
		}
	}
	return nil
}

func selectTokens(ctx context.Context, tx *sql.Tx, clauses string, args ...any) (out []access.Token, err error) {
	rows, err := tx.QueryContext(ctx, "SELECT "+tokenColumns+" FROM api_tokens "+clauses, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var t access.Token
		var scopes string
		if err := rows.Scan((*text)(&t.ID), (*text)(&t.Name), (*text)(&t.Hash), &t.MaxTier, &scopes,
			at(&t.CreatedAt), at(&t.RevokedAt)); err != nil {
			return nil, err
		}
		if t.Scopes, err = access.ParseScopes(scopes); err != nil {
			return nil, fault.Wrap(err, fault.Internal, "the token %q has scopes that this program does not know; revoke it", t.Name)
		}
		out = append(out, t)
	}
	return out, rows.Err()
}
