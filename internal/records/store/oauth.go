package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
)

// InsertClient keeps a program, replaces what was known by its id, and appends the rows to the audit. Beyond keep,
// those are removed that came first and have no token and no code that are good.
func (a *Access) InsertClient(ctx context.Context, c access.Client, keep int, rows ...record.Attempt) error {
	return a.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM oauth_clients WHERE id IN (SELECT c.id FROM oauth_clients c
			WHERE NOT EXISTS (SELECT 1 FROM oauth_codes o WHERE o.client = c.id AND o.token = '' AND o.expires_us > $1)
			AND NOT EXISTS (SELECT 1 FROM oauth_grants g JOIN api_tokens t ON t.id = g.token
				WHERE g.client = c.id AND t.revoked_us IS NULL AND g.refresh_until_us > $1)
			ORDER BY c.created_us, c.id
			LIMIT (SELECT CASE WHEN COUNT(*) < $2 THEN 0 ELSE COUNT(*) - $2 + 1 END FROM oauth_clients))`,
			timeColumn(&c.CreatedAt), int64(keep))
		if err != nil {
			return err
		}
		if _, err = tx.ExecContext(ctx,
			"INSERT INTO oauth_clients (id, name, redirects, created_us) VALUES ("+placeholders(1, 4)+`) ON CONFLICT (id)
				DO UPDATE SET name = excluded.name, redirects = excluded.redirects, created_us = excluded.created_us`,
			textColumn(c.ID), textColumn(c.Name), textList(c.Redirects), timeColumn(&c.CreatedAt)); err != nil {
			return err
		}
		return a.db.appendAll(ctx, tx, rows)
	})
}

// FindClient returns the program with the id, if it has registered or a person has let it in.
func (a *Access) FindClient(ctx context.Context, id string) (c access.Client, found bool, err error) {
	found, err = a.db.first(ctx, []any{(*textColumn)(&c.ID), (*textColumn)(&c.Name), (*textList)(&c.Redirects),
		timeColumn(&c.CreatedAt)},
		"SELECT id, name, redirects, created_us FROM oauth_clients WHERE id = $1", textColumn(id))
	return c, found, err
}

const codeColumns = "hash, client, redirect, challenge, name, max_tier, repos, dry_run, owner_issuer, owner_subject, grantor, " +
	"maker, expires_us, token"

// InsertCode keeps a code, drops those that were good until before, and appends the rows to the audit. What
// access.CheckMaker refuses is forbidden.
func (a *Access) InsertCode(ctx context.Context, c access.Code, before time.Time, rows ...record.Attempt) error {
	if err := access.CheckMaker(c.Token.Maker); err != nil {
		return err
	}
	return a.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM oauth_codes WHERE expires_us < $1", micros(before)); err != nil {
			return err
		}
		t := c.Token
		if _, err := tx.ExecContext(ctx, "INSERT INTO oauth_codes ("+codeColumns+") VALUES ("+placeholders(1, 14)+")",
			textColumn(c.Hash), textColumn(c.ClientID), textColumn(c.Redirect), textColumn(c.Challenge), textColumn(t.Name),
			int64(t.MaxTier),
			strings.Join(t.Repos, " "), asNumber(t.DryRun), textColumn(t.Owner.Issuer), textColumn(t.Owner.Subject),
			textColumn(t.Grantor),
			actor(t.Maker), timeColumn(&c.ExpiresAt),
			textColumn(t.ID)); err != nil {
			return err
		}
		return a.db.appendAll(ctx, tx, rows)
	})
}

// FindCode returns the code with the hash, used ones included.
func (a *Access) FindCode(ctx context.Context, hash string) (c access.Code, found bool, err error) {
	var repos string
	var dryRun int64
	t := &c.Token
	found, err = a.db.first(ctx, []any{(*textColumn)(&c.Hash), (*textColumn)(&c.ClientID), (*textColumn)(&c.Redirect),
		(*textColumn)(&c.Challenge), (*textColumn)(&t.Name), &t.MaxTier, &repos, &dryRun, (*textColumn)(&t.Owner.Issuer),
		(*textColumn)(&t.Owner.Subject),
		(*textColumn)(&t.Grantor), (*actor)(&t.Maker), timeColumn(&c.ExpiresAt), (*textColumn)(&t.ID)},
		"SELECT "+codeColumns+" FROM oauth_codes WHERE hash = $1", textColumn(hash))
	if repos != "" {
		t.Repos = strings.Fields(repos)
	}
	t.Agent, t.DryRun = true, dryRun != 0
	return c, found, err
}

// maxTwins limits the valid tokens of one name that are distinguished by a number.
const maxTwins = 99

// UseCode makes the token of a grant in place of an unused code, and appends the row to the audit. used is false, and
// nothing is written, if the code is not there or was used by another call. A name that another good token has gets a
// number; row is given the one that it is.
func (a *Access) UseCode(ctx context.Context, hash string, g access.Grant,
	row func(t access.Token) record.Attempt) (t access.Token, used bool, err error) {
	t = g.Token
	err = a.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		used, err = changesOne(tx.ExecContext(ctx, "UPDATE oauth_codes SET token = $1 WHERE hash = $2 AND token = ''",
			textColumn(t.ID), textColumn(hash)))
		if err != nil || !used {
			return err
		}
		if t.Name, err = freeName(ctx, tx, g.Token.Name); err != nil {
			return err
		}
		if err := insertToken(ctx, tx, t); err != nil {
			return err
		}
		k := g.Keys
		if _, err := tx.ExecContext(ctx, `INSERT INTO oauth_grants (token, client, client_name, family, refresh,
			refresh_until_us, access, access_until_us, former, former_until_us) VALUES (`+placeholders(1, 10)+")",
			textColumn(t.ID), textColumn(g.ClientID), textColumn(t.Client), textColumn(k.Family), textColumn(k.Refresh),
			timeColumn(&k.RefreshUntil), textColumn(k.Access), timeColumn(&k.AccessUntil), "", int64(0)); err != nil {
			return err
		}
		return a.db.appendAll(ctx, tx, []record.Attempt{row(t)})
	})
	return t, used && err == nil, err
}

// freeName returns a name that no valid token and no person has.
func freeName(ctx context.Context, tx *sql.Tx, name string) (string, error) {
	for n, free := 1, name; n <= maxTwins; n, free = n+1, fmt.Sprintf("%s %d", name, n+1) {
		var taken bool
		err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM api_tokens
			WHERE revoked_us IS NULL AND lower(name) = lower(CAST($1 AS TEXT)))
			OR EXISTS (SELECT 1 FROM people WHERE lower(name) = lower(CAST($1 AS TEXT)))`, textColumn(free)).Scan(&taken)
		if err != nil || !taken {
			return free, err
		}
	}
	return "", fault.New(fault.Conflict, "%q has %d tokens already; revoke those that are of no use", name, maxTwins)
}

// FindGrant returns the grant whose refresh tokens begin with what has the hash.
func (a *Access) FindGrant(ctx context.Context, family string) (access.Grant, bool, error) {
	return a.grantBy(ctx, "g.family = $1", textColumn(family))
}

// FindAccess implements access.Tokens.
func (a *Access) FindAccess(ctx context.Context, hash string, now time.Time) (access.Token, bool, error) {
	g, found, err := a.GrantOfAccess(ctx, hash, now)
	return g.Token, found, err
}

// GrantOfAccess implements oauth.Store.
func (a *Access) GrantOfAccess(ctx context.Context, hash string, now time.Time) (access.Grant, bool, error) {
	return a.grantBy(ctx, "g.access = $1 AND g.access_until_us > $2 OR g.former = $1 AND g.former_until_us > $2",
		textColumn(hash), micros(now))
}

func (a *Access) grantBy(ctx context.Context, condition string, args ...any) (g access.Grant, found bool, err error) {
	err = a.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		grants, err := selectRows(ctx, tx, func(rows *sql.Rows, g *access.Grant) error {
			return rows.Scan((*textColumn)(&g.Token.ID), (*textColumn)(&g.ClientID), (*textColumn)(&g.Family),
				(*textColumn)(&g.Refresh),
				timeColumn(&g.RefreshUntil), (*textColumn)(&g.Access), timeColumn(&g.AccessUntil))
		}, "SELECT token, client, family, refresh, refresh_until_us, access, access_until_us FROM oauth_grants g WHERE "+
			condition, args...)
		if err != nil || len(grants) == 0 {
			return err
		}
		tokens, err := selectTokens(ctx, tx, "WHERE id = $1", textColumn(grants[0].Token.ID))
		if err == nil && len(tokens) > 0 {
			g, found = grants[0], true
			g.Token = tokens[0]
		}
		return err
	})
	return g, found, err
}

// Rotate gives a grant other keys, in place of the refresh token with the hash was. rotated is false, and nothing is
// written, if the grant has another one by now, or its token is revoked. The access token so far is good to its end.
func (a *Access) Rotate(ctx context.Context, token, was string, k access.Keys) (rotated bool, err error) {
	err = a.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rotated, err = changesOne(tx.ExecContext(ctx, `UPDATE oauth_grants SET former = access,
			former_until_us = access_until_us, refresh = $3, refresh_until_us = $4, access = $5, access_until_us = $6
			WHERE token = $1 AND refresh = $2
			AND EXISTS (SELECT 1 FROM api_tokens t WHERE t.id = oauth_grants.token AND t.revoked_us IS NULL)`,
			textColumn(token), textColumn(was), textColumn(k.Refresh), timeColumn(&k.RefreshUntil), textColumn(k.Access),
			timeColumn(&k.AccessUntil)))
		return err
	})
	return rotated && err == nil, err
}

// EndGrant revokes the token of a grant and appends the rows to the audit; ended is false, and nothing is written, if
// it is good no more.
func (a *Access) EndGrant(ctx context.Context, token string, rows ...record.Attempt) (ended bool, err error) {
	err = a.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		ended, err = changesOne(tx.ExecContext(ctx,
			"UPDATE api_tokens SET revoked_us = $1 WHERE id = $2 AND revoked_us IS NULL", micros(a.db.now()), textColumn(token)))
		if err != nil || !ended {
			return err
		}
		return a.db.appendAll(ctx, tx, rows)
	})
	return ended && err == nil, err
}
